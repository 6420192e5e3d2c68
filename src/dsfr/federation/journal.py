"""An owner's journal: what left, when, to whom and under which rule. Append-only; each line hashes the one before."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

START = "0" * 64
"""The hash before the first line."""


class JournalError(ValueError):
    """A journal that was changed after it was written."""


class AuditJournal:
    """Lines of JSON, each with the hash of the line before and of itself."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, event: str, **about: Any) -> None:
        """Add a line, and write it to disk."""
        entry = {"time": round(time.time(), 3), "event": event, **about, "before": self._last_hash()}
        line = json.dumps(entry | {"hash": _hash(entry)}, sort_keys=True)
        with os.fdopen(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "a") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def entries(self) -> list[dict[str, Any]]:
        """All lines, checked.

        Raises
        ------
        JournalError
            Naming the first line that was changed, removed or added by another hand.
        """
        return list(self._checked())

    def count(self, event: str, **about: Any) -> int:
        """How many lines there are of an event with these values."""
        wanted = {"event": event, **about}
        return sum(wanted.items() <= entry.items() for entry in self.entries() if _is_flat(entry, wanted))

    def _checked(self) -> Iterator[dict[str, Any]]:
        before = START
        for number, line in enumerate(self._lines(), start=1):
            try:
                entry = json.loads(line)
                found = entry.pop("hash")
            except (ValueError, KeyError, AttributeError):
                raise JournalError(f"{self.path}, line {number} is damaged") from None
            if entry.get("before") != before or _hash(entry) != found:
                raise JournalError(f"{self.path}, line {number} was changed, or lines before it are missing")
            before = found
            yield entry

    def _last_hash(self) -> str:
        lines = self._lines()
        return str(json.loads(lines[-1])["hash"]) if lines else START

    def _lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []


def _hash(entry: dict[str, Any]) -> str:
    return sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def _is_flat(entry: dict[str, Any], wanted: dict[str, Any]) -> bool:
    return all(isinstance(entry.get(name), str | int | float) for name in wanted)
