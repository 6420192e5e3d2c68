"""Whether a file is still the one that it was when its reading began."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from dsfr.io.columns import TableError

Stamp: TypeAlias = "tuple[int, int, int] | None"


def stamp_of(path: Path) -> Stamp:
    """Identity, size and time of the last change of a file; None for pipes and devices, which have no rows to keep."""
    if not path.is_file():
        return None
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def check_stamp(path: Path, stamp: Stamp) -> None:
    """Refuse a file that has changed, or is gone.

    Raises
    ------
    TableError
        Naming the file and the remedy.
    """
    if stamp_of(path) != stamp:
        state = "changed" if path.exists() else "was removed"
        raise TableError(f"{path} {state} while it was read: wait until nobody writes to it, and start again")


@contextmanager
def unchanged(path: Path) -> Iterator[None]:
    """Refuse a file that changes while it is read; an error that the change has caused gives way to this one."""
    before = stamp_of(path)
    try:
        yield
    except (TableError, OSError):
        check_stamp(path, before)
        raise
    check_stamp(path, before)
