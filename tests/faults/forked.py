"""Run commands of dsfr in forked processes, each with one fault: a signal at a chosen call, or a limit of memory.

Libraries are loaded once, and every command runs in a fork of that process: a case takes tenths of a second. A signal
is sent when the command has made a given number of function calls, so that the moment does not depend on the speed of
the machine.
"""

from __future__ import annotations

import faulthandler
import importlib
import io
import json
import os
import pkgutil
import resource
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow.csv
import scipy.linalg

from dsfr.cli import main as dsfr_main


@dataclass(frozen=True)
class Case:
    """A command and its fault."""

    arguments: list[str]
    folder: str
    """Where it runs."""
    at_call: int = 0
    """Number of the function call at which the signal is sent; 0 sends none."""
    signal: int = 0
    spare_bytes: int | None = None
    """Address space that the command may use in addition to what the loaded libraries use; None does not limit it."""
    longest: float = 120.0
    """Seconds after which a command that hangs shows where it is, and is ended."""


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    """Exit code; negative if a signal has ended the process."""
    output: str
    """What it wrote to standard output and standard error."""
    calls: int
    """Function calls that it made, where it was not killed."""


def run_cases(cases: list[Case]) -> list[Outcome]:
    """Run every case, one after the other."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.faults.forked"]
    done = subprocess.run(
        command,
        input=json.dumps([asdict(case) for case in cases]),
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Outcome(**outcome) for outcome in json.loads(done.stdout)]


def main() -> None:
    """Read cases from standard input, run them, and write the outcomes to standard output."""
    cases = json.load(sys.stdin)
    _load_libraries()
    json.dump([asdict(_in_fork(Case(**case))) for case in cases], sys.stdout)


def _load_libraries() -> None:
    """Import what commands import when they start, without starting any thread."""
    for name in ("sklearn.base", "pyarrow.parquet"):
        importlib.import_module(name)
    for part in ("cli", "io", "model", "pipeline"):
        package = importlib.import_module(f"dsfr.{part}")
        for module in pkgutil.iter_modules(package.__path__, f"dsfr.{part}."):
            importlib.import_module(module.name)


def _in_fork(case: Case) -> Outcome:
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as calls:
        process = os.fork()
        if process == 0:
            _command(case, output.fileno(), calls.fileno())
        _, status = os.waitpid(process, 0)
        output.seek(0)
        calls.seek(0)
        text = output.read().decode(errors="replace")
        return Outcome(os.waitstatus_to_exitcode(status), text, int(calls.read() or 0))


def _command(case: Case, output: int, calls: int) -> None:
    """The forked process: run the command and end as a program does; never returns."""
    os.chdir(case.folder)
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.dump_traceback_later(case.longest, exit=True)
    code, counter = 1, _Counter(case)
    try:
        if case.spare_bytes is not None:
            _start_threads_and_buffers()
            limit = _address_space() + case.spare_bytes
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        sys.setprofile(counter)
        dsfr_main(case.arguments, prog_name="dsfr")
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.setprofile(None)
        os.write(calls, str(counter.calls).encode())
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _start_threads_and_buffers() -> None:
    """Let Arrow start its threads and OpenBLAS take its buffers: refused these, both may wait for ever."""
    pyarrow.csv.read_csv(io.BytesIO(b"a,b\n1,2\n"))
    scipy.linalg.cho_factor(np.eye(64) @ np.eye(64))


class _Counter:
    """Counts function calls and sends the signal at the chosen one."""

    def __init__(self, case: Case) -> None:
        self.calls, self.case = 0, case

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self.calls += 1
            if self.calls == self.case.at_call:
                os.kill(os.getpid(), self.case.signal)


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main()
