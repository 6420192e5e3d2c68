"""Folders on a small disk and folders that cannot be written to."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A folder in memory that holds so many kilobytes; skips the test where it cannot be made."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small disk can be made by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    """A folder that cannot be written to, for root neither."""
    if os.geteuid():
        folder.mkdir(mode=0o555)
        yield folder
        return
    with small_disk(folder, 64):
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        yield folder


def fill(folder: Path) -> Path:
    """A file that takes all room of a disk."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return path
