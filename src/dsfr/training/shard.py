"""The rows of one agent: the only place where data are, and where they stay."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, IntArray
from dsfr.core.compiled import worthwhile
from dsfr.core.density import RowDensity
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.training.changed_rows import CompletedRows, CompleteRows, LimitedRows, LogRows
from dsfr.training.rows import (
    ArrayRows,
    Batch,
    DistinctRows,
    OfRows,
    Rows,
    WeightedBatch,
    collect,
    has_weights,
    labeled_only,
    pick,
    weighted,
)
from dsfr.training.sample import Sample, sampled_only
from dsfr.training.scaled import Scaled

MAX_COUNTED = 2**16
"""Numbers of agents below this are counted, which takes one pass."""
LIMITS = ("limit_low", "limit_high", "target_limits")
"""Names of the limits of robust scaling in messages and memory."""
LOG_TARGET = "log_target"
"""Name of the mark in messages and memory that logarithms of targets are learnt."""
KEPT = ("kept_rows", "kept_counts")
"""Names in memory of which rows are left without duplicates, eight to a byte, and of how many and how many labelled."""


ROW = "row_"
DENSITY = tuple(ROW + name for name in ("mean", "deviation", "correlation", "low", "high", "spread", "shift"))
"""Names of the density of the rows in messages and memory; without correlations, features are independent."""


class ForeignMemoryError(ValueError):
    """Arrays of an agent's memory that do not belong to its rows."""


class Purpose(IntEnum):
    """What a random stream is for; streams of different purposes are independent."""

    SPLIT = 0
    START = 1
    PAIRS = 2
    NODES = 3
    PRECONDITIONER = 4
    SAMPLE = 5
    DUPLICATES = 6


@dataclass(slots=True)
class RowCounter:
    """Counts rows as they are read."""

    rows: int = 0


@dataclass(slots=True)
class Completion:
    """Rows in memory that were completed once, so that every pass need not do it again."""

    source: ArrayRows
    density: RowDensity
    rows: ArrayRows


@dataclass(slots=True)
class Accepted:
    """Short arrays of an agent's memory that a task has accepted, and the sizes that it knew of before."""

    sizes: tuple[tuple[str, int], ...] = ()
    arrays: dict[str, npt.NDArray[Any]] = field(default_factory=dict)


@dataclass(slots=True)
class Kept:
    """Where an agent keeps rows that take a pass to find, and what tasks have accepted of its memory."""

    completion: Completion | None = None
    sample: Sample | None = None
    scaled: Scaled | None = None
    """While clusters are sought, see `Shard.scaled`."""
    accepted: dict[tuple[str, str], Accepted] = field(default_factory=dict)
    """By name of the task and part of its declaration."""


@dataclass(frozen=True, slots=True)
class Shard(OfRows):
    """Rows of one agent, unscaled, with NaN as the target of unlabelled ones.

    Tasks read rows by `batches`, `picked` and `collected` alone, where they are counted.
    """

    rows: Rows
    key: int
    """Number of the agent's random streams, from its name alone: position and order of agents do not matter."""
    fast: bool = False
    """Whether the tables of all agents here are large enough for compiled kernels, and these are installed."""
    counter: RowCounter | None = None
    """Where rows are counted, if anywhere."""
    kept: Kept = field(default_factory=Kept, compare=False, repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes that the rows take up in memory."""
        if not isinstance(self.rows, ArrayRows):
            return 0
        weights = 0 if self.rows.weights is None else self.rows.weights.nbytes
        return self.rows.X.nbytes + self.rows.y.nbytes + weights

    @property
    def has_weights(self) -> bool:
        """Whether labels have weights."""
        return has_weights(self.rows)

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows, unscaled."""
        for X, y in self.rows.batches():
            self._count(len(y))
            yield X, y

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """One pass over the rows, unscaled, with the weights of their labels; None where all weigh 1."""
        for X, y, weights in weighted(self.rows):
            self._count(len(y))
            yield X, y, weights

    def scaled(self, ranges: Ranges) -> Array:
        """Features of all rows, scaled, in one pass; they are kept until `forget_scaled`."""
        self._count(self.n_samples)
        known = self.kept.scaled
        if known is None or not known.is_of(self.rows, ranges):
            batches = (scale_features(X, ranges) for X, _ in self.rows.batches())
            known = Scaled(self.rows, ranges, np.concatenate([np.empty((0, self.n_features)), *batches]))
            self.kept.scaled = known
        return known.X

    def forget_scaled(self) -> None:
        """Free the memory of scaled rows."""
        self.kept.scaled = None

    def picked(self, wanted: IntArray, *, unlabeled: bool = False) -> Array:
        """Features of the rows with the given numbers, in one pass; see `pick`."""
        self._count(self.n_samples)
        return pick(self.rows, wanted, unlabeled=unlabeled)

    def collected(self) -> Batch:
        """All rows in memory, in one pass; see `collect`."""
        self._count(self.n_samples)
        return collect(self.rows)

    def labeled(self) -> Shard:
        """The labelled rows alone."""
        return replace(self, rows=labeled_only(self.rows))

    def sampled(self, share: float) -> Shard:
        """A sample of the rows, in memory; see `dsfr.core.sampling`."""
        if share >= 1.0:
            return self
        rows, self.kept.sample = sampled_only(self.rows, share, self.kept.sample)
        return replace(self, rows=rows)

    def within_limits(self, known: Mapping[str, Array]) -> Shard:
        """The same rows, moved to the limits of robust scaling if ``known`` holds any."""
        if LIMITS[0] not in known:
            return self
        low, high, target = (known[name] for name in LIMITS)
        return replace(self, rows=LimitedRows(self.rows, Ranges(low, high), target))

    def on_target_scale(self, known: Mapping[str, npt.NDArray[Any]]) -> Shard:
        """The same rows with the logarithms of their targets, if ``known`` has the mark."""
        return replace(self, rows=LogRows(self.rows)) if LOG_TARGET in known else self

    def complete(self) -> Shard:
        """The same rows, none of which may have missing values; see `CompleteRows`."""
        return replace(self, rows=CompleteRows(self.rows))

    def without_rows(self) -> Shard:
        """The same agent without any row."""
        weights = np.empty(0) if self.has_weights else None
        return replace(self, rows=ArrayRows(np.empty((0, self.n_features)), np.empty(0), weights))

    def completed(self, memory: Mapping[str, npt.NDArray[Any]]) -> Shard:
        """The same rows, with missing values replaced by what is expected of them, if the memory has their density."""
        if DENSITY[0] not in memory:
            return self
        density, known = unpack_density(memory), self.kept.completion
        if not isinstance(self.rows, ArrayRows):
            return replace(self, rows=CompletedRows(self.rows, density))
        if known is None or known.source is not self.rows or not _same(known.density, density):
            filled = replace(self.rows, X=density.expected(self.rows.X))
            known = Completion(self.rows, density, filled)
            self.kept.completion = known
        return replace(self, rows=known.rows)

    def without_duplicates(self, memory: Mapping[str, npt.NDArray[Any]]) -> Shard:
        """The same rows but duplicates, if the memory says which these are.

        Raises
        ------
        ForeignMemoryError
            If it was written for other rows.
        """
        if KEPT[0] not in memory:
            return self
        packed, (n_samples, n_labeled) = memory[KEPT[0]], memory[KEPT[1]].tolist()
        n_kept = np.count_nonzero(np.unpackbits(packed, count=self.n_samples))
        if len(packed) != -(-self.n_samples // 8) or n_kept != n_samples or not 0 <= n_labeled <= n_samples:
            raise ForeignMemoryError(
                f"{KEPT[0]!r} keeps {n_kept} of {8 * len(packed)} rows or a few less and {KEPT[1]!r} counts "
                f"{n_samples} with {n_labeled} labels, and the agent has {self.n_samples} rows: train from the start"
            )
        return replace(self, rows=DistinctRows(self.rows, packed, n_samples, n_labeled))

    def _count(self, n_rows: int) -> None:
        if self.counter is not None:
            self.counter.rows += n_rows

    def rng(self, seed: int, purpose: Purpose, repeat: int = 0) -> np.random.Generator:
        """This agent's random stream for a purpose."""
        return np.random.default_rng([seed, self.key, purpose, repeat])


def pack_density(density: RowDensity) -> dict[str, Array]:
    """A density as arrays with the names `DENSITY`."""
    return {f"{ROW}{name}": array for name, array in density.arrays().items()}


def unpack_density(arrays: Mapping[str, npt.NDArray[Any]]) -> RowDensity:
    """The density in arrays with the names `DENSITY`, among others perhaps."""
    return RowDensity.of_arrays({name.removeprefix(ROW): arrays[name] for name in DENSITY if name in arrays})


def _same(one: RowDensity, other: RowDensity) -> bool:
    ours, theirs = one.arrays(), other.arrays()
    return ours.keys() == theirs.keys() and all(np.array_equal(ours[name], theirs[name]) for name in ours)


def agent_key(name: object) -> int:
    """A 64-bit number for an agent's name; the same on every machine.

    >>> agent_key("north") == agent_key("north"), agent_key("north") == agent_key("south")
    (True, False)
    """
    return int.from_bytes(blake2b(str(name).encode(), digest_size=8).digest(), "little")


def make_shards(X: Array, y: Array, agents: npt.NDArray[Any], weights: Array | None = None) -> dict[str, Shard]:
    """One shard per distinct name in ``agents``, in the order of the names; ``weights`` are those of the labels.

    >>> shards = make_shards(np.zeros((3, 1)), np.zeros(3), np.array([10, 9, 10]))
    >>> {name: shard.n_samples for name, shard in shards.items()}
    {'10': 2, '9': 1}
    """
    names, owners = distinct_names(agents)
    fast = worthwhile(len(y))
    if len(names) == 1:  # nothing to sort out, so nothing to copy
        return {names[0]: Shard(ArrayRows(X, y, weights), agent_key(names[0]), fast)}
    small = owners.astype(np.uint16) if len(names) < 2**16 else owners  # which numpy sorts in linear time
    order, counts = np.argsort(small, kind="stable"), np.bincount(owners, minlength=len(names))
    parts = np.split(order, np.cumsum(counts)[:-1])
    shards = {}
    for name, part in zip(names, parts, strict=True):
        own = None if weights is None else weights[part]
        shards[name] = Shard(ArrayRows(X[part], y[part], own), agent_key(name), fast)
    return shards


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
