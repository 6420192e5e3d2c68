"""Five owners, a coordinator and a lead over NVFlare on loopback, by the commands that the documents show."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import dsfr
from dsfr.federation.loopback import COORDINATOR, LEAD, Loopback
from dsfr.federation.processes import descendants
from tests.federation.owners import FEATURES, RANGES, table, write_tables

pytest.importorskip("nvflare", reason="federations need NVFlare: pip install 'dsfr[federation]'")

NAMES = ("a", "b", "c", "d", "e")
TABLE = table(n_rows=600, n_labels=150)
FIT = ["--target", "y", "--features", "a,b,c", "--ranges", "ranges.toml"]


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Kits of everybody, tables and ranges."""
    found = Loopback(tmp_path_factory.mktemp("federation"), NAMES, "y")
    found.provision()
    ranges = zip((*FEATURES, "y"), (*RANGES.lower, 0.0), (*RANGES.upper, 100.0), strict=True)
    (found.folder / "ranges.toml").write_text("".join(f"{name} = [{low}, {high}]\n" for name, low, high in ranges))
    write_tables(found.folder, NAMES, *TABLE)
    return found


def n_sent(folder, name):
    """Questions that an owner has answered, by its journal."""
    journal = folder / name / "local" / "journal.jsonl"
    return journal.read_text().count('"event": "sent"') if journal.is_file() else 0


def test_kits_keep_keys_private_and_replace_lax_defaults(sites):
    folder = sites.folder
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
def test_five_owners_train_over_nvflare_although_one_is_killed(sites):
    """The fit that loses an owner names it in time; the next one resumes, and gives the model of plain sums."""
    folder, (X, y) = sites.folder, TABLE
    fit = ["fit", "--kit", LEAD, "--roster", "roster.toml", *FIT, "--round-seconds", "20", "-o", "model.dsfr"]
    with sites:
        assert set(NAMES) <= set(sites.command("status", "--kit", LEAD).stdout.split())
        speak_plainly(folder)
        first = sites.begin(*fit)
        kill_job_of(sites, "d", after=11)
        _, error = first.communicate(timeout=200)
        assert first.returncode == 2
        assert "d did not answer in task" in " ".join(error.split())
        before = n_sent(folder, "a")
        done = sites.command(*fit)
        assert done.returncode == 0, done.stderr
        resumed = n_sent(folder, "a") - before
        code = command_with_code(folder)
    model = dsfr.load(folder / "model.dsfr")
    owners = np.array(NAMES)[np.arange(len(y)) % len(NAMES)]
    teacher = dsfr.AutoSFRRegressor(
        scaling=RANGES, uncertainty=False, ensemble=dsfr.Ensemble(max_weights_per_label=1 / 3)
    )
    where = dsfr.InProcess(policy=dsfr.Policy())
    here = dsfr.RuleRegressor(teacher=teacher, engine=where, random_state=0).fit(X, y, agents=owners)
    assert np.abs(model.predict(X) - here.model_.predict(X)).max() <= 1e-8 * np.nanstd(y)
    assert resumed < here.n_rounds_ + len(here.ledger_.entries) + 40
    assert set(model.training["federation"]["roster"]) == set(NAMES)
    assert model.training["federation"]["loosest_policy"]["min_mass"] == dsfr.Policy().min_mass
    assert sites.command("audit", "--kit", "a").returncode == 0
    log = sites.log(COORDINATOR).read_text()
    assert log.count("Started run:") == 2, f"the job with code was run: {code}"
    assert "BYOC not permitted" in log
    logs = "".join(sites.log(name).read_text() for name in (*NAMES, COORDINATOR))
    assert "PRIVATE KEY" not in logs


def kill_job_of(sites, name, after):
    """Kill the process of an owner's job once the owner has answered so many questions."""
    ends = time.monotonic() + 150.0
    while n_sent(sites.folder, name) < after and time.monotonic() < ends:
        time.sleep(0.05)
    for child in descendants(sites.running[name].pid):
        if b"worker_process" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(child, signal.SIGKILL)


def speak_plainly(folder):
    """Plain text on the coordinator's port, which it must survive."""
    profile = json.loads((folder / "project" / "project.yaml").read_text())
    with socket.create_connection(("localhost", profile["server"]["fed_learn_port"]), timeout=10) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        stranger.settimeout(10)
        with suppress(TimeoutError, ConnectionError):
            assert b"200 OK" not in stranger.recv(1000)


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
        "session = new_secure_session(user_of(Path('lead@trial.org')), str(Path('lead@trial.org').resolve()))\n"
        "try:\n"
        "    number = session.submit_job(str(job.resolve()))\n"
        "    print('meta', session.wait_for_job(number, timeout=60, poll_interval=0.5))\n"
        "finally:\n"
        "    session.close()\n"
    )
    run = [sys.executable, "-c", program]
    done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=100, check=False)
    return done.stdout + done.stderr
