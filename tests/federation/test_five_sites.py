"""Five owners, a coordinator and a lead over NVFlare on loopback, by the commands that the documents show."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import dsfr
from dsfr.federation import kits
from dsfr.federation.loopback import COORDINATOR, LEAD, Loopback
from dsfr.federation.nvflare_components import job_files
from dsfr.federation.processes import descendants
from tests.federation import off_protocol
from tests.federation.lead import answers
from tests.federation.owners import FEATURES, RANGES, table, write_tables
from tests.federation.watching import family, listening, written

pytest.importorskip("nvflare", reason="federations need NVFlare: pip install 'dsfr[federation]'")

NAMES = ("a", "b", "c", "d", "e")
TABLE = table(n_rows=600, n_labels=150)
FIT = ["fit", "--kit", LEAD, "--roster", "roster.toml", "--target", "y", "--features", "a,b,c"]
FIT += ["--ranges", "ranges.toml", "--round-seconds", "20", "-o", "model.dsfr"]
TEMPORARY = Path("/tmp/nvflare")
"""Where NVFlare stores by default."""


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Kits of everybody, tables and ranges."""
    found = Loopback(tmp_path_factory.mktemp("federation"), NAMES, "y")
    found.provision()
    ranges = zip((*FEATURES, "y"), (*RANGES.lower, 0.0), (*RANGES.upper, 100.0), strict=True)
    (found.folder / "ranges.toml").write_text("".join(f"{name} = [{low}, {high}]\n" for name, low, high in ranges))
    write_tables(found.folder, NAMES, *TABLE)
    return found


@pytest.fixture(scope="module")
def running(sites):
    """One federation for all tests of this file; nothing of it is left."""
    before, begun = _entries(TEMPORARY), time.monotonic()
    with sites:
        print(f"\nfive sites and a coordinator are up after {time.monotonic() - begun:.0f} s")
        yield sites
        processes = [pid for process in sites.running.values() for pid in family(process.pid)]
    assert [pid for pid in processes if _is_running(pid)] == []
    assert _entries(TEMPORARY) == before


@pytest.fixture(scope="module")
def first_fit(running):
    """A fit that loses the job of an owner, and what everybody listened on and wrote to just before."""
    for _ in range(3):  # attempts: on a busy machine another owner may be too late before the job is lost
        begun, first = time.monotonic(), running.begin(*FIT)
        wait_for_answers(running, "d", n_sent(running.folder, "d") + 11)
        pids = {name: family(process.pid) for name, process in running.running.items()}
        seen = {
            name: SimpleNamespace(pids=own, places=listening(own), files=written(own)) for name, own in pids.items()
        }
        kill_job_of(running, "d")
        _, error = first.communicate(timeout=200)
        print(f"the fit without an owner ended after {time.monotonic() - begun:.0f} s: {error}")
        if "d did not answer" in " ".join(error.split()):
            break
    return SimpleNamespace(code=first.returncode, error=" ".join(error.split()), seen=seen)


@pytest.fixture(scope="module")
def resumed_fit(running, first_fit):
    """The same command again; the questions that an owner answered in it."""
    before, begun = n_sent(running.folder, "a"), time.monotonic()
    done = running.command(*FIT)
    print(f"the fit that resumes ended after {time.monotonic() - begun:.0f} s")
    assert done.returncode == 0, done.stderr
    return n_sent(running.folder, "a") - before


@pytest.fixture(scope="module")
def lax(running, resumed_fit):
    """A coordinator off protocol in the place of the honest one: what is refused now, owners refuse."""
    kit = running.folder / COORDINATOR
    resources = json.loads((kit / "local" / "resources.json").read_text())
    (kit / "local" / "resources.json").write_text(json.dumps(resources | {"class_allow_list": ["*"]}))
    command = kits.daemon_command(kit)
    command[1:3] = [off_protocol.__file__]
    shutil.copyfile(running.log(COORDINATOR), running.folder / "honest.log")
    for _ in range(3):  # attempts
        running.kill(COORDINATOR)
        with running.log(COORDINATOR).open("w") as log:
            options = {"cwd": kit, "stdout": log, "stderr": log, "env": running._environment}
            running.running[COORDINATOR] = subprocess.Popen(command, **options)
        running.wait_until_ready([COORDINATOR])
        if all_connect(running, seconds=100.0):
            break
    else:
        pytest.fail(running.log(COORDINATOR).read_text()[-5000:])
    yield running
    running.kill(COORDINATOR)


def all_connect(sites, seconds):
    """Whether all owners are connected to the coordinator in time."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if set(NAMES) <= set(sites.command("status", "--kit", LEAD).stdout.split()):
            return True
        time.sleep(0.5)
    return False


def n_sent(folder, name):
    """Questions that an owner has answered, by its journal."""
    journal = folder / name / "local" / "journal.jsonl"
    return journal.read_text().count('"event": "sent"') if journal.is_file() else 0


def wait_for_answers(sites, name, number):
    ends = time.monotonic() + 150.0
    while n_sent(sites.folder, name) < number and time.monotonic() < ends:
        time.sleep(0.05)


def kill_job_of(sites, name):
    """Kill the process of an owner's job, and leave its daemon."""
    for child in descendants(sites.running[name].pid):
        if b"worker_process" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(child, signal.SIGKILL)


def test_kits_keep_keys_private_and_replace_lax_defaults(sites):
    folder = sites.folder
    for name in (*NAMES, COORDINATOR):
        local = folder / name / "local"
        resources = json.loads((local / "resources.json").read_text())
        assert resources["allow_log_streaming"] is False
        assert resources["class_list_enforcement_mode"] == "enforce"
        assert resources["class_allow_list"] == [
            f"dsfr.federation.nvflare_components.{name}" for name in ("FitController", "FitExecutor")
        ]
        assert "/tmp/nvflare" not in json.dumps(resources)
        assert not any("log" in component["id"] for component in resources["components"])
        rights = json.loads((local / "authorization.json").read_text())["permissions"]
        assert list(rights) == ["lead"]
        assert rights["lead"]["byoc"] == rights["lead"]["shell_commands"] == rights["lead"]["operate"] == "none"
        assert not list((folder / name).rglob("*.sh")), "they would start NVFlare's own daemon"
        for key in (folder / name / "startup").glob("*.key"):
            assert key.stat().st_mode & 0o077 == 0
    assert not list((folder / "project").rglob("client.key"))


@pytest.mark.slow
def test_an_owner_that_is_lost_is_named_in_time(running, first_fit):
    assert set(NAMES) <= set(running.command("status", "--kit", LEAD).stdout.split())
    speak_plainly(running.folder)
    assert first_fit.code == 2
    assert "d did not answer in task" in first_fit.error


@pytest.mark.slow
def test_five_owners_train_over_nvflare_and_resume(running, resumed_fit):
    """The model of plain sums in one process; rounds of before are not asked again."""
    folder, (X, y) = running.folder, TABLE
    model = dsfr.load(folder / "model.dsfr")
    owners = np.array(NAMES)[np.arange(len(y)) % len(NAMES)]
    teacher = dsfr.AutoSFRRegressor(
        scaling=RANGES, uncertainty=False, ensemble=dsfr.Ensemble(max_weights_per_label=1 / 3)
    )
    where = dsfr.InProcess(policy=dsfr.Policy())
    here = dsfr.RuleRegressor(teacher=teacher, engine=where, random_state=0).fit(X, y, agents=owners)
    assert np.abs(model.predict(X) - here.model_.predict(X)).max() <= 1e-8 * np.nanstd(y)
    assert resumed_fit < here.n_rounds_ + len(here.ledger_.entries) + 40
    assert set(model.training["federation"]["roster"]) == set(NAMES)
    assert model.training["federation"]["loosest_policy"]["min_mass"] == dsfr.Policy().min_mass
    assert running.command("audit", "--kit", "a").returncode == 0
    logs = "".join(running.log(name).read_text() for name in (*NAMES, COORDINATOR))
    assert "PRIVATE KEY" not in logs


@pytest.mark.slow
def test_owners_listen_on_loopback_alone_and_the_coordinator_opens_one_port(running, first_fit):
    """Looked at in the middle of a fit, with the processes of its job."""
    port = json.loads((running.folder / "project" / "project.yaml").read_text())["server"]["fed_learn_port"]
    for name in NAMES:
        seen = first_fit.seen[name]
        assert len(seen.pids) >= 3, "the command, the daemon and the job"
        assert seen.places, "the daemon waits for the job"
        assert all(address.is_loopback for address, _ in seen.places), (name, seen.places)
    places = first_fit.seen[COORDINATOR].places
    assert port in {number for _, number in places}
    assert {number for address, number in places if not address.is_loopback} <= {port}, places


@pytest.mark.slow
def test_what_is_stored_is_in_the_kit(running, first_fit):
    folder = running.folder
    for name, seen in first_fit.seen.items():
        assert len(seen.files) >= 2
        own = (folder / name, running.log(name))
        strange = [path for path in seen.files if not any(path.is_relative_to(place) for place in own)]
        assert strange == [], name
    assert list((folder / COORDINATOR / "storage").rglob("*"))


@pytest.mark.slow
def test_the_coordinator_refuses_code_other_classes_and_commands(running, resumed_fit):
    files, evil = job_files({}, list(NAMES), 5.0), running.folder / "evil-coordinator"
    server = json.loads(files["app/config/config_fed_server.json"])
    server["components"] = [{"id": "evil", "path": "logging.FileHandler", "args": {"filename": str(evil)}}]
    jobs = [
        files | {"app/custom/evil.py": "print(1)"},
        files | {"app/config/config_fed_server.json": json.dumps(server)},
    ]
    commands = ["pwd server", "ls server", "cat server local/resources.json", "shutdown server", "shutdown client a"]
    heard = answers(running, LEAD, jobs=jobs, commands=commands)
    for command, said in zip(commands, heard["commands"], strict=True):
        assert "not authorized" in said.lower() or "failed to shut down" in said, (command, said)
    log = running.log(COORDINATOR).read_text()
    assert "BYOC not permitted" in log
    assert "Component 'logging.FileHandler' at config path" in logs_of(running, COORDINATOR)
    assert not evil.exists()
    assert running.running[COORDINATOR].poll() is running.running["a"].poll() is None
    assert not any("FINISHED:COMPLETED" in status for status in heard["jobs"]), heard["jobs"]


@pytest.mark.slow
def test_owners_refuse_files_and_commands_whatever_the_coordinator_grants(lax):
    """It tells owners that no right is needed, and takes paths of any kind."""
    table, kit = lax.folder / "a.csv", lax.folder / "a"
    asked = [f"cat a {table}", f"head a {table}", f"tail a {table}", f"grep a , {table}", f"ls a {lax.folder}", "pwd a"]
    others = ["sys_info client a", "report_env client a", "restart client a", "shutdown client a"]
    heard = answers(lax, LEAD, commands=["pwd server", *asked, *others])["commands"]
    assert str(lax.folder / COORDINATOR) in heard[0], "the coordinator itself does it"
    rows = table.read_text().splitlines()[:10]
    for command, said in zip([*asked, *others], heard[1:], strict=True):
        assert not any(row in said for row in (*rows, "a.csv", str(kit))), (command, said)
    assert all("invalid_request" in said for said in heard[1 : len(asked) + 1]), heard
    assert lax.running["a"].poll() is None


@pytest.mark.slow
def test_owners_refuse_code_and_other_classes_and_keep_their_logs(lax):
    files, evil = job_files({}, list(NAMES), 5.0), lax.folder / "evil-owner"
    client = json.loads(files["app/config/config_fed_client.json"])
    client["components"] = [{"id": "evil", "path": "subprocess.Popen", "args": {"args": ["touch", str(evil)]}}]
    jobs = [
        files | {"app/custom/evil.py": "print(1)"},
        files | {"app/config/config_fed_client.json": json.dumps(client)},
    ]
    heard = answers(lax, LEAD, jobs=jobs)["jobs"]
    assert "BYOC not permitted" in heard[0] + lax.log(COORDINATOR).read_text()
    refusal = "Component 'subprocess.Popen' at config path"
    for name in NAMES:
        assert refusal in logs_of(lax, name)
        assert any(path.stat().st_size for path in (lax.folder / name).rglob("error_log.txt"))
    assert not evil.exists()
    held = [path for path in (lax.folder / COORDINATOR).rglob("*") if path.is_file()]
    assert [path for path in held if refusal.encode() in path.read_bytes()] == []
    assert refusal not in lax.log(COORDINATOR).read_text()


def logs_of(sites, name):
    """All that a kit has in logs, and what its daemon has said."""
    found = [path.read_text(errors="replace") for path in (sites.folder / name).rglob("*log*") if path.is_file()]
    return "".join([sites.log(name).read_text(), *found])


def speak_plainly(folder):
    """Plain text on the coordinator's port, which it must survive."""
    profile = json.loads((folder / "project" / "project.yaml").read_text())
    with socket.create_connection(("localhost", profile["server"]["fed_learn_port"]), timeout=10) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        stranger.settimeout(10)
        with suppress(TimeoutError, ConnectionError):
            assert b"200 OK" not in stranger.recv(1000)


def _entries(folder):
    return sorted(folder.rglob("*")) if folder.is_dir() else []


def _is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
