"""Memories of agents as files, each written completely or not at all."""

from __future__ import annotations

from pathlib import Path

from dsfr.storage.atomic import replacing
from dsfr.storage.bundles import Bundle, BundleError, from_bytes, to_bytes


def write_memory(path: Path, memory: Bundle) -> None:
    """Write the memory of an agent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(to_bytes(memory))


def read_memory(path: Path) -> Bundle:
    """The memory of an agent.

    Raises
    ------
    BundleError
        If the file is damaged.
    """
    try:
        return from_bytes(path.read_bytes())
    except BundleError as error:
        raise BundleError(f"{path} is damaged ({error}): remove the checkpoint and train anew") from None
