"""The rows of one agent: the only place where data are, and where they stay."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.compiled import worthwhile
from dsfr.training.rows import ArrayRows, Batch, OfRows, Rows

MAX_COUNTED = 2**16
"""Numbers of agents below this are counted, which takes one pass."""


class Purpose(IntEnum):
    """What a random stream is for; streams of different purposes are independent."""

    SPLIT = 0
    START = 1
    PAIRS = 2
    NODES = 3
    PRECONDITIONER = 4
    SAMPLE = 5
    DUPLICATES = 6


@dataclass(frozen=True, slots=True)
class Shard(OfRows):
    """Rows of one agent, unscaled, with NaN as the target of unlabelled ones."""

    rows: Rows
    key: int
    """Number of the agent's random streams, from its name alone: position and order of agents do not matter."""
    fast: bool = False
    """Whether the tables of all agents here are large enough for compiled kernels, and these are installed."""

    @property
    def nbytes(self) -> int:
        """Bytes that the rows take up in memory."""
        return self.rows.X.nbytes + self.rows.y.nbytes if isinstance(self.rows, ArrayRows) else 0

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows, unscaled."""
        return self.rows.batches()

    def rng(self, seed: int, purpose: Purpose, repeat: int = 0) -> np.random.Generator:
        """This agent's random stream for a purpose."""
        return np.random.default_rng([seed, self.key, purpose, repeat])


def agent_key(name: object) -> int:
    """A 64-bit number for an agent's name; the same on every machine.

    >>> agent_key("north") == agent_key("north"), agent_key("north") == agent_key("south")
    (True, False)
    """
    return int.from_bytes(blake2b(str(name).encode(), digest_size=8).digest(), "little")


def make_shards(X: Array, y: Array, agents: npt.NDArray[Any]) -> dict[str, Shard]:
    """One shard per distinct name in ``agents``, in the order of the names.

    >>> shards = make_shards(np.zeros((3, 1)), np.zeros(3), np.array([10, 9, 10]))
    >>> {name: shard.n_samples for name, shard in shards.items()}
    {'10': 2, '9': 1}
    """
    names, owners = distinct_names(agents)
    fast = worthwhile(len(y))
    if len(names) == 1:  # nothing to sort out, so nothing to copy
        return {names[0]: Shard(ArrayRows(X, y), agent_key(names[0]), fast)}
    small = owners.astype(np.uint16) if len(names) < 2**16 else owners  # which numpy sorts in linear time
    order, counts = np.argsort(small, kind="stable"), np.bincount(owners, minlength=len(names))
    parts = np.split(order, np.cumsum(counts)[:-1])
    tables = {name: ArrayRows(X[part], y[part]) for name, part in zip(names, parts, strict=True)}
    return {name: Shard(rows, agent_key(name), fast) for name, rows in tables.items()}


def distinct_names(agents: npt.NDArray[Any]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Names of the agents, sorted, and for every row the position of its owner's."""
    values, position = _distinct(agents if agents.dtype.kind in "biuU" else agents.astype(str))
    # Numbers are compared as such, which is faster, but sorted by their names.
    names, place = np.unique(values.astype(str), return_inverse=True)
    return [str(name) for name in names], place[position]


def _distinct(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Distinct values, sorted, and the position of each; small numbers are counted and not sorted."""
    if len(values) and values.dtype.kind in "iu" and values.min() >= 0 and values.max() < MAX_COUNTED:
        there = np.bincount(values) > 0
        return np.flatnonzero(there), (np.cumsum(there) - 1)[values]
    return np.unique(values, return_inverse=True)
