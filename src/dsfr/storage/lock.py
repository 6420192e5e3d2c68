"""Locks between processes; the system releases them however a process ends."""

from __future__ import annotations

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

    A process does not exclude itself: it may make several objects for the same path.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
        weakref.finalize(self, file.close)
        self.acquired = _lock(file)


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
