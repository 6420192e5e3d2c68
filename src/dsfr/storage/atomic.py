"""Atomic writes: a file is written completely or not at all."""

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
    """Open a temporary file that replaces ``path`` after it is written, and is deleted after an error."""
    target = check_writable(path)
    if _is_device(target):
        with target.open("wb") as stream:
            yield stream
        return
    # Opening a new file applies the default permissions; the umask cannot be read without setting it.
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
                error.errno, f"{error.strerror}: {path} was not written; free disk space, or write elsewhere"
            ) from None
        raise


def check_writable(path: str | os.PathLike[str]) -> Path:
    """The resolved path, if a file can be written there; call it before long computations.

    Raises
    ------
    OSError
        If not; the message says why.
    """
    if _is_device(Path(path)):
        return Path(path)
    target = Path(path).resolve()  # a symbolic link stays: its target is replaced
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder {target.parent} does not exist: create it, or write elsewhere")
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder: give the name of a file in it")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"the folder {target.parent} cannot be written to: write elsewhere")
    return target


def _is_device(path: Path) -> bool:
    """Whether the path is a device or a pipe, such as /dev/stdout, which is written in place and not replaced."""
    in_system_folder = path.absolute().parts[1:2] in (("dev",), ("proc",))
    return in_system_folder or (path.exists() and not path.is_file() and not path.is_dir())
