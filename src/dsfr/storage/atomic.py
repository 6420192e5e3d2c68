"""Files that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file to write that takes the place of ``path`` once all is written, and leaves no trace if anything fails."""
    target = check_writable(path)
    if _is_device(target):
        with target.open("wb") as stream:
            yield stream
        return
    # A new file gets the process's default permissions from the system itself: asking for the mask means setting it.
    temporary = target.with_name(f".dsfr-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as file:
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _FULL:
            raise OSError(
                error.errno, f"{error.strerror}: {path} was not written; make room, or write elsewhere"
            ) from None
        raise


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The path, if a file can be put there; long work should ask before it starts.

    Raises
    ------
    OSError
        Saying what is in the way.
    """
    if _is_device(Path(path)):
        return Path(path)
    target = Path(path).resolve()  # a link stays a link: what it points to is replaced
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist: create it, or write elsewhere")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the name of a file in it")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"the folder {target.parent} cannot be written to: write elsewhere")
    return target


def _is_device(path: Path) -> bool:
    """Whether the path is written to in place: /dev/stdout, a pipe. Replacing it would lose it."""
    in_system_folder = path.absolute().parts[1:2] in (("dev",), ("proc",))
    return in_system_folder or (path.exists() and not path.is_file() and not path.is_dir())
