"""Ctrl-C at a lead, an owner and a coordinator over NVFlare: messages, a resume, and no process is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dsfr
from dsfr.federation.loopback import COORDINATOR, LEAD, Loopback
from dsfr.federation.processes import descendants, stop_with_descendants
from tests.federation.owners import FEATURES, RANGES, table, write_tables

NAMES = ("a", "b", "c")
FIT = ["fit", "--kit", LEAD, "--roster", "roster.toml", "--target", "y", "--features", "a,b,c"]
FIT += ["--ranges", "ranges.toml", "--round-seconds", "20", "-o", "model.dsfr"]


def test_jobs_in_sessions_of_their_own_end_with_their_daemon():
    """NVFlare starts jobs so; this one does not listen to the daemon's end."""
    job = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"
    daemon = (
        f"import subprocess, sys, time; job = subprocess.Popen([sys.executable, '-c', {job!r}], start_new_session=True,"
        " stdout=subprocess.PIPE); job.stdout.readline(); print(job.pid, flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", daemon], stdout=subprocess.PIPE, start_new_session=True)
    number = int(process.stdout.readline())
    assert is_running(number)
    stop_with_descendants(process, seconds=0.5)
    ends = time.monotonic() + 10.0
    while is_running(number) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not is_running(number)
    process.stdout.close()


def test_ctrl_c_ends_a_daemon_that_a_script_has_started_in_its_background(tmp_path):
    """Shells without job control let such processes ignore Ctrl-C, and they would outlive the script."""
    (tmp_path / "kit" / "local").mkdir(parents=True)
    program = (
        "import signal, sys; from pathlib import Path; from dsfr.federation import kits\n"
        "daemon = 'import os, time; print(os.getpid(), flush=True); time.sleep(60)'\n"
        "kits.daemon_command = lambda kit: [sys.executable, '-c', daemon]\n"
        "sys.exit(kits.run_daemon(Path('kit')))\n"
    )
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    run = [sys.executable, "-c", ignoring, sys.executable, "-c", program]
    process = subprocess.Popen(run, cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        daemon = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGINT)
        assert process.wait(40) == 130
        assert not is_running(daemon)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="names of processes are set by prctl, which Linux has")
def test_processes_are_found_whatever_others_are_called():
    """The system cuts names at 15 bytes, and so through letters of several bytes."""
    named = r"import ctypes, time; ctypes.CDLL(None).prctl(15, b'caf\xc3'); print('on', flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", named], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        assert process.pid in descendants(os.getpid())
    finally:
        process.kill()
        process.communicate()


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def sites(tmp_path):
    pytest.importorskip("nvflare", reason="federations need NVFlare: pip install 'dsfr[federation]'")
    found = Loopback(tmp_path, NAMES, "y")
    found.provision()
    ranges = zip((*FEATURES, "y"), (*RANGES.lower, 0.0), (*RANGES.upper, 100.0), strict=True)
    (tmp_path / "ranges.toml").write_text("".join(f"{name} = [{low}, {high}]\n" for name, low, high in ranges))
    write_tables(tmp_path, NAMES, *table(n_rows=600, n_labels=150))
    return found


def n_sent(sites):
    journal = sites.folder / "a" / "local" / "journal.jsonl"
    return journal.read_text().count('"event": "sent"') if journal.is_file() else 0


def begin_fit(sites, rounds, *more):
    """A fit of which an owner has answered so many questions."""
    before = n_sent(sites)
    fit, ends = sites.begin(*FIT, *more), time.monotonic() + 200.0
    while n_sent(sites) < before + rounds and time.monotonic() < ends and fit.poll() is None:
        time.sleep(0.05)
    assert fit.poll() is None, fit.communicate()
    return fit


def interrupted(sites, name):
    """Ctrl-C at a daemon: its exit code, and which of its processes are left."""
    process = sites.running.pop(name)
    started = [process.pid, *descendants(process.pid)]
    assert len(started) >= 3  # the command, NVFlare's daemon and the job
    os.kill(process.pid, signal.SIGINT)
    code = process.wait(60)
    return code, [pid for pid in started if is_running(pid)]


@pytest.mark.slow
def test_ctrl_c_ends_everything_and_the_same_command_resumes(sites):
    with sites:
        fit = begin_fit(sites, 6)
        os.kill(fit.pid, signal.SIGINT)
        _, error = fit.communicate(timeout=100)
        assert (fit.returncode, error.strip().splitlines()[-1]) == (130, "Interrupted.")
        done = sites.command(*FIT)
        assert done.returncode == 0, done.stderr
        assert set(dsfr.load(sites.folder / "model.dsfr").training["federation"]["roster"]) == set(NAMES)

        for seed in ("1", "2", "3"):  # a fit may end before the interrupt arrives
            fit = begin_fit(sites, 4, "--seed", seed)
            assert interrupted(sites, "c") == (130, [])
            _, error = fit.communicate(timeout=250)
            sites.start("c")
            if fit.returncode:
                break
        assert (fit.returncode, "c" in error) == (2, True)

        fit = begin_fit(sites, 3, "--seed", seed)
        assert interrupted(sites, COORDINATOR) == (130, [])
        _, error = fit.communicate(timeout=200)
        assert fit.returncode == 2, error
        left = [pid for process in sites.running.values() for pid in (process.pid, *descendants(process.pid))]
    assert [pid for pid in left if is_running(pid)] == []
