"""Memories of agents as files, each written completely or not at all, and with a checksum."""

from __future__ import annotations

from pathlib import Path

from dsfr.engines.checkpoint.journal import Journal, Record
from dsfr.storage.bundles import Bundle, BundleError


def write_memory(path: Path, memory: Bundle) -> None:
    """Write the memory of an agent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Journal(path).replace([Record(memory)])


def read_memory(path: Path) -> Bundle:
    """The memory of an agent.

    Raises
    ------
    BundleError
        If the file is damaged.
    """
    records = Journal(path).read()
    if not records:
        raise BundleError(f"{path} is damaged: remove the checkpoint and train anew")
    return records[0].arrays
