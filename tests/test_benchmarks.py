"""`make bench` stores complete outputs with the machine they were measured on."""

import os
import socket
import sys

import pytest
from benchmarks import run as benchmarks_run


@pytest.fixture
def runner(tmp_path, monkeypatch):
    """Function that runs a benchmark with the given code and returns its exit code and the stored output."""
    package = tmp_path / "benchmarks"
    (package / "results").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "results" / "toy.txt").write_text("old\n")
    monkeypatch.setattr(benchmarks_run, "RESULTS", package / "results")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(code):
        (package / "toy.py").write_text(code)
        return benchmarks_run.run("toy"), (package / "results" / "toy.txt").read_text()

    return run


@pytest.mark.parametrize("code", [0, benchmarks_run.MISSED])
def test_results_are_stored_with_the_machine_even_if_a_target_is_missed(runner, code):
    ended, stored = runner(f"print('a 1')\nprint('b 2')\nraise SystemExit({code})")
    assert ended == code
    assert stored == f"a 1\nb 2\n\n{benchmarks_run.machine()}\n"


@pytest.mark.parametrize("crash", ["1 / 0", "raise SystemExit(1)", "import os, signal; os.kill(os.getpid(), 9)"])
def test_the_output_of_a_crashed_benchmark_is_not_stored(runner, crash, capfd):
    ended, stored = runner(f"print('half a table', flush=True)\n{crash}")
    assert ended not in (0, benchmarks_run.MISSED)
    assert stored == "old\n"
    assert "its stored results stay as they were" in capfd.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="the model of the processor is read from /proc/cpuinfo")
def test_the_machine_is_described_without_its_host_name():
    described = benchmarks_run.machine()
    assert described.endswith(f", {os.cpu_count()} cores")
    assert len(described.split(",")[0]) > len("measured on ")
    assert socket.gethostname() not in described.replace(",", "").split()
