"""Owners with kits, certificates and tables, reached by a function call in the place of NVFlare."""

from __future__ import annotations

import datetime
from functools import cache
from pathlib import Path

import numpy as np

from dsfr.engines import EngineError
from dsfr.federation.owner_site import OwnerSite, SiteConfiguration
from dsfr.federation.roster import Roster, fingerprint_of
from dsfr.training import RangeScaling
from tests.tables import make_table

FEATURES = ("a", "b", "c")
RANGES = RangeScaling(lower=(2.0, -7.0, -97.0), upper=(4.0, 13.0, 103.0), target_range=(0.0, 100.0))


def table(n_rows=360, n_labels=120, seed=0):
    X, _, y = make_table(seed, n_rows=n_rows, n_labels=n_labels)
    return X, y


def write_tables(folder: Path, names, X, y) -> None:
    """The rows of every owner as a CSV file."""
    for number, name in enumerate(names):
        rows = np.column_stack([X, y])[number :: len(names)]
        lines = [",".join("" if np.isnan(value) else repr(float(value)) for value in row) for row in rows]
        (folder / f"{name}.csv").write_text("a,b,c,y\n" + "\n".join(lines) + "\n")


def make_kit(kit: Path, name: str, whose: str = "", days: int = 1) -> None:
    """The parts of a kit that an owner needs: a key and a certificate; ``whose`` makes another key for a name."""
    certificate, private = key_pair(name, whose, days)
    (kit / "startup").mkdir(parents=True)
    (kit / "local").mkdir()
    (kit / "startup" / "client.crt").write_bytes(certificate)
    (kit / "startup" / "client.key").write_bytes(private)


@cache
def key_pair(name: str, whose: str, days: int = 1) -> tuple[bytes, bytes]:
    """A certificate and its private key, made once because keys take long."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=3))
        .not_valid_after(now + datetime.timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def make_owners(folder: Path, names=("a", "b", "c"), X=None, y=None, **configuration):
    """Owners by name, and their roster."""
    if X is None:
        X, y = table()
    write_tables(folder, names, X, y)
    for name in names:
        make_kit(folder / f"kit-{name}", name)
    fingerprints = {name: fingerprint_of(folder / f"kit-{name}" / "startup" / "client.crt") for name in names}
    (folder / "roster.toml").write_text("".join(f'{name} = "{found}"\n' for name, found in fingerprints.items()))
    for name in names:
        told = {"standing_consent": True, "target": "y", **configuration}
        told |= {"name": name, "data": str(folder / f"{name}.csv"), "roster": str(folder / "roster.toml")}
        SiteConfiguration(**told).write(folder / f"kit-{name}")
    return {name: OwnerSite(folder / f"kit-{name}") for name in names}, Roster(fingerprints)


def asking(owners):
    """Carries messages by function calls, to all owners even if one refuses."""

    def ask(data):
        answers, errors = {}, []
        for name, owner in owners.items():
            try:
                answers[name] = owner.answer(data)
            except EngineError as error:
                errors.append(type(error)(f"{name} refuses: {error}"))
        for error in errors:
            raise error
        return answers

    return ask
