"""A whole federation on this machine, for a trial before the real one: kits of everybody, and their processes."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from dsfr.federation import kits
from dsfr.federation.processes import descendants
from dsfr.federation.roster import fingerprint_of

COORDINATOR, LEAD = "localhost", "lead@trial.org"
"""Names of their kits."""
STARTED = {True: "Server started", False: "Successfully registered client"}
"""What the log of a coordinator, or of an owner, says when it is ready."""
START_SECONDS, END_SECONDS = 600.0, 40.0
PORTS = range(15_000, 30_000)
"""Below those that systems give to outgoing connections: while a coordinator is away, such a connection, of an owner
that tries to reach it or of any other program, could take its port."""


class Loopback:
    """A folder with a kit for everybody, a roster, and for every owner a table ``NAME.csv`` that the caller writes.

    Parameters
    ----------
    folder : Path
        An empty folder.
    names : sequence of str
        Names of the owners.
    target : str
        Column of the target.
    """

    def __init__(self, folder: Path, names: Sequence[str], target: str) -> None:
        self.folder, self.names, self.target = folder, tuple(names), target
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def provision(self) -> None:
        """Make the project, the kits and the roster."""
        port = free_port()
        everybody = {COORDINATOR: "coordinator", LEAD: "lead"} | dict.fromkeys(self.names, "site")
        with _home(self.folder):  # NVFlare writes there
            fingerprint = kits.init_project(self.folder / "project", "trial", "localhost", port)
            for name, kind in everybody.items():
                request = self.folder / f"request-{name}"
                asked = kits.request(request, "trial", name, "organisation", kind, port)
                kits.approve(self.folder / "project", asked, self.folder / f"{name}.zip")
                kits.join(self.folder / f"{name}.zip", request, fingerprint, self.folder / name)
        roster = {name: fingerprint_of(self.folder / name / "startup" / "client.crt") for name in self.names}
        lines = [f'{name} = "{found}"\n' for name, found in roster.items()]
        (self.folder / "roster.toml").write_text("".join(lines))

    def __enter__(self) -> Self:
        try:
            self.start(COORDINATOR)
            for name in self.names:
                self.start(name, wait=False)
            self.wait_until_ready(self.names)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def start(self, name: str, *, wait: bool = True) -> None:
        """Start the coordinator or an owner."""
        arguments = ["--kit", name, "--roster", "roster.toml"]
        if name != COORDINATOR:
            arguments += ["--data", f"{name}.csv", "--target", self.target, "--standing-consent"]
        run = _command("coordinator" if name == COORDINATOR else "agent", *arguments)
        with self.log(name).open("w") as log:
            self.running[name] = subprocess.Popen(run, cwd=self.folder, stdout=log, stderr=log, env=self._environment)
        if wait:
            self.wait_until_ready([name])

    def wait_until_ready(self, names: Sequence[str]) -> None:
        """Wait until the logs of all say so.

        Raises
        ------
        TimeoutError
            With the ends of their logs.
        """
        ends = time.monotonic() + START_SECONDS
        while time.monotonic() < ends:
            if all(STARTED[name == COORDINATOR] in self.log(name).read_text() for name in names):
                return
            time.sleep(0.2)
        raise TimeoutError(str({name: self.log(name).read_text()[-500:] for name in names}))

    def log(self, name: str) -> Path:
        """The log of the coordinator or an owner."""
        return self.folder / f"{name}.log"

    def command(self, *arguments: str, seconds: float = 240.0) -> subprocess.CompletedProcess[str]:
        """Run ``dsfr federation ...`` in the folder."""
        options: dict[str, Any] = {"cwd": self.folder, "env": self._environment, "timeout": seconds}
        return subprocess.run(_command(*arguments), capture_output=True, text=True, check=False, **options)

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin ``dsfr federation ...`` in the folder."""
        options: dict[str, Any] = {"cwd": self.folder, "env": self._environment, "text": True}
        return subprocess.Popen(_command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)

    def kill(self, name: str) -> None:
        """End the coordinator or an owner with all its processes, at once and without a word."""
        process = self.running.pop(name)
        for child in descendants(process.pid):
            _signal(child, signal.SIGKILL)
        _signal(process.pid, signal.SIGKILL)
        process.wait(END_SECONDS)

    def end(self) -> None:
        """End everybody, as Ctrl-C does."""
        for process in self.running.values():
            _signal(process.pid, signal.SIGINT)
        for process in self.running.values():
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                for child in (*descendants(process.pid), process.pid):
                    _signal(child, signal.SIGKILL)
                process.wait(END_SECONDS)
        self.running = {}

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.folder)}


def free_port() -> int:
    """A port of `PORTS` that nobody uses."""
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as free, suppress(OSError):
            free.bind(("localhost", port))
            return port
    raise OSError(f"no port from {PORTS.start} to {PORTS.stop - 1} is free on this machine")


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dsfr", "federation", *arguments]


def _signal(pid: int, sign: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, sign)


@contextmanager
def _home(folder: Path) -> Iterator[None]:
    before = os.environ.get("HOME")
    os.environ["HOME"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["HOME"]
        else:
            os.environ["HOME"] = before
