"""Five owners, a coordinator and a lead over NVFlare on loopback, by the commands that the documents show."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest

import dsfr
from tests.federation.owners import FEATURES, RANGES, table, write_tables
from tests.tables import SumsAlone

pytest.importorskip("nvflare", reason="federations need NVFlare: pip install 'dsfr[federation]'")

NAMES = ("a", "b", "c", "d", "e")
FIT = ["--target", "y", "--features", "a,b,c", "--ranges", "ranges.toml"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Kits of everybody, tables, ranges and roster."""
    from dsfr.federation import kits
    from dsfr.federation.roster import fingerprint_of

    folder = tmp_path_factory.mktemp("federation")
    home, os.environ["HOME"] = os.environ.get("HOME", ""), str(folder)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    fingerprint = kits.init_project(folder / "project", "trial", "localhost", port)
    everybody = {"localhost": "coordinator", "lead@coord.org": "lead"} | dict.fromkeys(NAMES, "site")
    for name, kind in everybody.items():
        asked = kits.request(folder / f"request-{name}", "trial", name, "organisation", kind, port)
        kits.approve(folder / "project", asked, folder / f"{name}.zip")
        kits.join(folder / f"{name}.zip", folder / f"request-{name}", fingerprint, folder / name)
    roster = {name: fingerprint_of(folder / name / "startup" / "client.crt") for name in NAMES}
    (folder / "roster.toml").write_text("".join(f'{name} = "{found}"\n' for name, found in roster.items()))
    ranges = zip((*FEATURES, "y"), (*RANGES.lower, 0.0), (*RANGES.upper, 100.0), strict=True)
    (folder / "ranges.toml").write_text("".join(f"{name} = [{low}, {high}]\n" for name, low, high in ranges))
    X, y = table(n_rows=600, n_labels=150)
    write_tables(folder, NAMES, X, y)
    yield folder, X, y
    os.environ["HOME"] = home


def command(folder, *arguments, seconds=120):
    run = [sys.executable, "-m", "dsfr", "federation", *arguments]
    return subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=seconds, check=False)


@contextmanager
def daemons(folder):
    """Coordinator and owners, all ended afterwards."""
    commands = {"localhost": ["coordinator", "--kit", "localhost", "--roster", "roster.toml"]}
    for name in NAMES:
        commands[name] = ["agent", "--kit", name, "--data", f"{name}.csv", "--target", "y", "--roster", "roster.toml"]
        commands[name] += ["--standing-consent"] if name != "e" else []
    running = {}
    try:
        for name, arguments in commands.items():
            run = [sys.executable, "-m", "dsfr", "federation", *arguments]
            with (folder / f"{name}.log").open("w") as log:
                running[name] = subprocess.Popen(run, cwd=folder, stdout=log, stderr=log)
            if name == "localhost":
                wait_for(folder, ["localhost"], "Server started")
        wait_for(folder, NAMES, "Successfully registered client")
        yield running
    finally:
        for process in running.values():
            process.send_signal(signal.SIGINT)
        for process in running.values():
            process.wait(30)


def wait_for(folder, names, text, seconds=90):
    """Until the logs of these have a text."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if all(text in (folder / f"{name}.log").read_text() for name in names):
            return
        time.sleep(0.2)
    raise AssertionError({name: (folder / f"{name}.log").read_text()[-500:] for name in names})


def test_kits_keep_keys_private_and_replace_lax_defaults(place):
    folder, _, _ = place
    for name in (*NAMES, "localhost"):
        local = folder / name / "local"
        resources = json.loads((local / "resources.json").read_text())
        assert resources["allow_log_streaming"] is False
        assert all(entry.startswith("dsfr.federation.") for entry in resources["class_allow_list"])
        assert "/tmp/nvflare" not in json.dumps(resources)
        assert not any("log" in component["id"] for component in resources["components"])
        rights = json.loads((local / "authorization.json").read_text())["permissions"]
        assert list(rights) == ["lead"]
        assert rights["lead"]["byoc"] == rights["lead"]["shell_commands"] == rights["lead"]["operate"] == "none"
        for key in (folder / name / "startup").glob("*.key"):
            assert key.stat().st_mode & 0o077 == 0
    assert not list((folder / "project").rglob("client.key"))


@pytest.mark.slow
def test_five_owners_train_over_nvflare(place):
    folder, X, y = place
    fit = ["fit", "--kit", "lead@coord.org", "--roster", "roster.toml", *FIT, "--rules", "3", "--timeout", "90"]
    with daemons(folder):
        assert set(NAMES) <= set(command(folder, "status", "--kit", "lead@coord.org").stdout.split())
        refused = command(folder, *fit, "-o", "model.dsfr")
        assert refused.returncode == 2
        assert "e has not agreed to this fit" in " ".join(refused.stderr.split())
        asked = command(folder, "audit", "--kit", "e").stdout
        plan = json.loads(asked[asked.index("{") : asked.index("}\n") + 1])["plan"]
        assert command(folder, "consent", "--kit", "e", plan).returncode == 0
        done = command(folder, *fit, "-o", "model.dsfr")
        assert done.returncode == 0, done.stderr
        code = command_with_code(folder)
    model = dsfr.load(folder / "model.dsfr")
    names = np.array(NAMES)[np.arange(len(y)) % len(NAMES)]
    plain = dsfr.SFRRegressor(n_rules=3, solver="sums", scaling=RANGES, random_state=0)
    plain.fit_over(lambda settings: SumsAlone(dsfr.make_shards(X, y, names), dsfr.TASKS), FEATURES, "y")
    assert np.abs(model.predict(X) - plain.model_.predict(X)).max() <= 1e-8 * np.nanstd(y)
    assert set(model.training["federation"]["roster"]) == set(NAMES)
    audit = command(folder, "audit", "--kit", "a")
    assert "statistics" in audit.stdout
    assert audit.returncode == 0
    assert (folder / "localhost.log").read_text().count("Started run:") == 2, f"the job with code was run: {code}"
    assert "BYOC not permitted" in (folder / "localhost.log").read_text()
    logs = "".join((folder / f"{name}.log").read_text() for name in (*NAMES, "localhost"))
    assert "PRIVATE KEY" not in logs


def command_with_code(folder):
    """What a lead hears that submits a job with code of its own."""
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from dsfr.federation.nvflare_components import job_files\n"
        "from dsfr.federation.session import user_of\n"
        "from nvflare.fuel.flare_api.flare_api import new_secure_session\n"
        "job = Path('job-with-code')\n"
        "files = job_files({}, list('abcde'), 5.0) | {'app/custom/evil.py': 'print(1)'}\n"
        "for path, text in files.items():\n"
        "    (job / path).parent.mkdir(parents=True, exist_ok=True)\n"
        "    (job / path).write_text(text)\n"
        "session = new_secure_session(user_of(Path('lead@coord.org')), str(Path('lead@coord.org').resolve()))\n"
        "try:\n"
        "    number = session.submit_job(str(job.resolve()))\n"
        "    print('meta', session.wait_for_job(number, timeout=60, poll_interval=0.5))\n"
        "finally:\n"
        "    session.close()\n"
    )
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    return done.stdout + done.stderr
