"""The rows of all agents of a process: in memory if they are few, otherwise in a temporary file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, with_dtype
from dsfr.io.spool import Spool, SpooledRows
from dsfr.training.rows import ArrayRows, Batch, Rows

MEMORY_BYTES = 2**26
"""Rows that take up at most this many bytes stay in memory."""


class AgentRows:
    """Collects rows by agent; all move to a temporary file once they exceed ``memory_bytes``."""

    def __init__(self, n_features: int, dtype: npt.DTypeLike = np.float64, memory_bytes: int | None = None) -> None:
        self._n_features, self._dtype = n_features, dtype
        self._most = MEMORY_BYTES if memory_bytes is None else memory_bytes
        self._n_bytes = 0
        self._parts: dict[str, list[Batch]] = {}
        self._spool: Spool | None = None
        self._spooled: dict[str, SpooledRows] = {}

    def append(self, agent: str, X: Array, y: Array) -> None:
        """Add rows of an agent."""
        if self._spool is not None:
            self._write(self._spool, agent, X, y)
            return
        self._parts.setdefault(agent, []).append((with_dtype(X, self._dtype), y))
        self._n_bytes += len(y) * (self._n_features * np.dtype(self._dtype).itemsize + y.itemsize)
        if self._n_bytes > self._most:
            self._move_to_file()

    def rows(self) -> dict[str, Rows]:
        """The rows of every agent, in the order of the agents' names."""
        kept: dict[str, Rows] = dict(self._spooled)
        for agent in list(self._parts):
            kept[agent] = _joined(self._parts.pop(agent))
        return {agent: kept[agent] for agent in sorted(kept)}

    def _move_to_file(self) -> None:
        self._spool = Spool()
        while self._parts:
            agent, parts = self._parts.popitem()
            for X, y in parts:
                self._write(self._spool, agent, X, y)

    def _write(self, spool: Spool, agent: str, X: Array, y: Array) -> None:
        self._spooled.setdefault(agent, SpooledRows(spool, self._n_features, self._dtype)).append(X, y)


def _joined(parts: list[Batch]) -> ArrayRows:
    """All rows of an agent; parts are freed as they are copied, so that there are never two copies of all rows."""
    n_rows = sum(len(y) for _, y in parts)
    X, y = np.empty((n_rows, parts[0][0].shape[1]), parts[0][0].dtype), np.empty(n_rows)
    start = 0
    parts.reverse()
    while parts:
        part_X, part_y = parts.pop()
        end = start + len(part_y)
        X[start:end], y[start:end] = part_X, part_y
        start = end
    return ArrayRows(X, y)
