"""Copies of a kit: NVFlare lets the login of a second process end the first without a word, so the log is watched.

Two processes with one key take the connection from each other again and again. A connection that was cut, and whose end
the coordinator has not seen, is replaced once; so one replacement says nothing, and two within ten minutes say it.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from dsfr.engines import EngineError

COPIES = "copies.txt"
"""File in the folder ``local`` of the coordinator's kit: names of owners whose kits are used twice, one on a line."""
SECONDS = 600.0
REPLACED = re.compile(r"Connection \w+ is evicted for \w+ from endpoint (\S+) for")
"""What NVFlare's log says when the second connection of an owner replaces an open one."""


class CopyWatch:
    """Reads the coordinator's log, line by line.

    Parameters
    ----------
    kit : Path
        The coordinator's.
    say : callable
        Is told once for every owner.
    clock : callable
        Seconds.
    """

    def __init__(self, kit: Path, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._say, self._clock = kit / "local" / COPIES, say, clock
        self._times: dict[str, list[float]] = defaultdict(list)
        self._said: set[str] = set()

    def see(self, line: str) -> None:
        """Look at a line of the log."""
        found = REPLACED.search(line)
        if found is None or found[1] in self._said:
            return
        name, now = found[1], self._clock()
        self._times[name] = [seen for seen in self._times[name] if now - seen < SECONDS] + [now]
        if len(self._times[name]) < 2:
            return
        self._said.add(name)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{name}\n")
        self._say(_warning(name, self._path))


def refuse_copied(kit: Path, names: Sequence[str]) -> None:
    """Refuse a fit with an owner whose kit is used twice.

    Raises
    ------
    EngineError
        Naming it.
    """
    path = kit / "local" / COPIES
    noted = path.read_text(encoding="utf-8").split() if path.is_file() else []
    for name in names:
        if name in noted:
            raise EngineError(_warning(name, path))


def _warning(name: str, path: Path) -> str:
    return (
        f"two processes use the kit of {name}: find the copy, or make a new certificate and roster; then remove "
        f"{name} from {path.name} in the folder local of the coordinator's kit"
    )
