"""Locks between processes; the system releases them however a process ends."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from types import ModuleType
from typing import IO

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None


class FileLock:
    """A lock that one process at a time holds, as long as this object lives.

    A process does not exclude itself: it may make several objects for the same path, which hold the lock together.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._held = _HELD.get(_identity(path)) or _Held(path)
        self.acquired = self._held.acquired


class _Held:
    """The lock of a process. Whoever closes a file ends all locks of the process on it, so it is opened once."""

    def __init__(self, path: Path) -> None:
        file = path.open("ab")
        weakref.finalize(self, file.close)
        self.acquired = _lock(file)
        if self.acquired:
            _HELD[_identity(path)] = self


_HELD: weakref.WeakValueDictionary[tuple[int, ...], _Held] = weakref.WeakValueDictionary()
"""Locks that are held, by process and file: a forked process holds none."""


def _identity(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return os.getpid(), found.st_dev, found.st_ino


def _lock(file: IO[bytes]) -> bool:
    """Whether no other process holds the lock; also True on file systems without locks."""
    if fcntl is None:
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True
