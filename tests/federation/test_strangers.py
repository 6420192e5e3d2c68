"""Strangers get no connection to a coordinator, and a copied kit is noticed: over NVFlare, on loopback."""

import datetime
import itertools
import json
import shutil
import socket
import ssl
import time
from contextlib import suppress

import pytest

from dsfr.engines import EngineError
from dsfr.federation import kits
from dsfr.federation.copies import COPIES, CopyWatch, refuse_copied
from dsfr.federation.loopback import COORDINATOR, Loopback
from tests.federation.owners import key_pair, table, write_tables

EVICTED = "sfm_endpoint - INFO - Connection CN00002 is evicted for CN00005 from endpoint {} for exceeding limit 1"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
"""The first bytes of a client of HTTP/2, with empty settings: a server that talks answers with its own."""


@pytest.mark.parametrize(
    ("names", "gaps", "said"),
    [("a", [1], []), ("aa", [1], ["a"]), ("ab", [1], []), ("aa", [700], []), ("aaa", [1], ["a"]), ("abab", [1], "ab")],
)
def test_two_replaced_connections_of_an_owner_are_a_copy(tmp_path, names, gaps, said):
    (tmp_path / "local").mkdir()
    heard, clock = [], itertools.count(0, gaps[0])
    watch = CopyWatch(tmp_path, heard.append, lambda: next(clock))
    for name in names:
        watch.see(EVICTED.format(name))
        watch.see("another line")
    assert [text.split(":")[0].split()[-1] for text in heard] == list(said)
    for name in said:
        with pytest.raises(EngineError, match=f"two processes use the kit of {name}: find the copy"):
            refuse_copied(tmp_path, [name, "z"])
    refuse_copied(tmp_path, ["z"])


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    pytest.importorskip("nvflare", reason="federations need NVFlare: pip install 'dsfr[federation]'")
    found = Loopback(tmp_path_factory.mktemp("strangers"), ("a",), "y")
    found.provision()
    write_tables(found.folder, ["a", "copy"], *table())
    try:
        found.start(COORDINATOR)
        yield found
    finally:
        found.end()


def answer(sites, certificate=None, key=None):
    """What the coordinator answers to somebody who trusts it and shows this certificate."""
    profile = json.loads((sites.folder / "project" / "project.yaml").read_text())
    context = ssl.create_default_context(cafile=str(sites.folder / "a" / "startup" / "rootCA.pem"))
    context.set_alpn_protocols(["h2"])
    if certificate is not None:
        context.load_cert_chain(certificate, key)
    with socket.create_connection(("localhost", profile["server"]["fed_learn_port"]), timeout=10) as plain:
        try:
            with context.wrap_socket(plain, server_hostname="localhost") as link:
                link.sendall(PREFACE)
                return link.recv(1000)
        except (ssl.SSLError, ConnectionError):
            return b""


def certificate_of(sites, authority, days):
    """Files of a certificate for ``a`` by this authority that is valid for so many days from now."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization

    signer = x509.load_pem_x509_certificate((authority / "rootCA.pem").read_bytes())
    key = serialization.load_pem_private_key((authority / "rootCA.key").read_bytes(), None)
    own = x509.load_pem_x509_certificate((sites.folder / "a" / "startup" / "client.crt").read_bytes())
    pem, private = key_pair("a", "stranger")
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(own.subject)
        .issuer_name(signer.subject)
        .public_key(x509.load_pem_x509_certificate(pem).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=9))
        .not_valid_after(now + datetime.timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    files = sites.folder / f"{authority.parent.name}{days}.crt", sites.folder / "stranger.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(private)
    return files


@pytest.mark.slow
def test_strangers_get_no_connection(sites, monkeypatch):
    folder = sites.folder
    monkeypatch.setenv("HOME", str(folder))
    kits.init_project(folder / "foreign", "trial", "localhost", 1)
    project, foreign = folder / "project" / "ca", folder / "foreign" / "ca"
    startup = folder / "a" / "startup"
    assert answer(sites, startup / "client.crt", startup / "client.key"), "the owner itself is answered"
    assert answer(sites, *certificate_of(sites, project, days=1)), "the same with a certificate made here"
    assert not answer(sites, *certificate_of(sites, project, days=-1)), "expired"
    assert not answer(sites, *certificate_of(sites, foreign, days=1)), "of a foreign authority"
    assert not answer(sites), "without a certificate"
    port = json.loads((folder / "project" / "project.yaml").read_text())["server"]["fed_learn_port"]
    with socket.create_connection(("localhost", port), timeout=10) as stranger:
        stranger.sendall(PREFACE)
        stranger.settimeout(3)
        with suppress(TimeoutError, ConnectionError):
            assert not stranger.recv(1000), "plain text"
    assert sites.running[COORDINATOR].poll() is None


@pytest.mark.slow
def test_a_copied_kit_is_noticed(sites):
    """The second login ends the first, which comes back: the coordinator names the owner and refuses fits with it."""
    shutil.copytree(sites.folder / "a", sites.folder / "copy")
    sites.start("a")
    sites.start("copy")
    said, ends = "WARNING: two processes use the kit of a", time.monotonic() + 120.0
    while said not in sites.log(COORDINATOR).read_text() and time.monotonic() < ends:
        time.sleep(0.2)
    assert said in sites.log(COORDINATOR).read_text()
    assert (sites.folder / COORDINATOR / "local" / COPIES).read_text() == "a\n"
