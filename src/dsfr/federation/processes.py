"""Processes that a process has started, wherever they went: NVFlare starts jobs in sessions of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any


def descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that they have; where the system tells (``/proc``)."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        found = _stat(int(path.parent.name))
        if found is not None:
            parents[int(path.parent.name)] = int(found[1])
    family, before = {pid}, set[int]()
    while family != before:
        before = set(family)
        family |= {child for child, parent in parents.items() if parent in family}
    return sorted(family - {pid})


def stop_with_descendants(process: subprocess.Popen[Any], seconds: float = 10.0) -> None:
    """End a daemon and the processes of its jobs; those that do not end in time, or at a second Ctrl-C, are killed."""
    started = {pid: begun for pid in descendants(process.pid) if (begun := _begun(pid)) is not None}
    with suppress(KeyboardInterrupt):
        _signal_group(process, signal.SIGTERM)
        ends = time.monotonic() + seconds
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        while time.monotonic() < ends and any(_begun(pid) == begun for pid, begun in started.items()):
            time.sleep(0.1)
    _signal_group(process, signal.SIGKILL)
    for pid, begun in started.items():
        if _begun(pid) == begun:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    process.wait(seconds)


def _signal_group(process: subprocess.Popen[Any], sign: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, sign)


def _begun(pid: int) -> str | None:
    """When a process began, in the system's units: another one with the same number began later. None if it ended."""
    found = _stat(pid)
    return None if found is None or found[0] == "Z" else found[19]


def _stat(pid: int) -> list[str] | None:
    """What the system tells of a process, from its state on."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
