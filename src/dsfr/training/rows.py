"""Where the rows of one agent come from: arrays in memory, or anything else that yields them batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import SUM_ROWS, Array, IntArray, row_blocks

Batch: TypeAlias = tuple[Array, Array]
"""Features, unscaled, and targets with NaN where unlabelled, of consecutive rows."""
WeightedBatch: TypeAlias = tuple[Array, Array, Array | None]
"""A batch with the weights of its labels; None where all labels weigh 1."""

MAX_GRAPH_ROWS = 2**16
"""A graph needs all rows at once; so many are collected even from a source that streams them."""


LIMITED_ROWS = 16 * SUM_ROWS
"""Rows in memory that are moved to limits at once: few enough to be no second table, enough for all threads."""


class Rows(Protocol):
    """Rows of one agent, to be passed over as often as needed.

    Every pass yields the same rows in the same order, in batches of whole chunks of `SUM_ROWS` rows (the last may be
    shorter). Results then are the same to the last bit, wherever rows come from.
    """

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of features."""

    @property
    def n_labeled(self) -> int:
        """Number of rows with a target."""

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows."""


@dataclass(frozen=True, slots=True)
class ArrayRows:
    """Rows in memory, or in a memory-mapped file; one batch, and no copy."""

    X: Array
    y: Array
    weights: Array | None = None
    """How often the label of each row counts, > 0; None: once."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def n_labeled(self) -> int:
        """Number of rows with a target."""
        return int(np.count_nonzero(~np.isnan(self.y)))

    def batches(self) -> Iterator[Batch]:
        """All rows at once."""
        yield self.X, self.y

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """All rows at once, with the weights of their labels."""
        yield self.X, self.y, self.weights


class OfRows:
    """Something that is about rows of another source, as many as there are."""

    __slots__ = ()
    rows: Rows

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.rows.n_samples

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.rows.n_features

    @property
    def n_labeled(self) -> int:
        """Number of rows with a target."""
        return self.rows.n_labeled


class DerivedRows(OfRows):
    """Rows that are made of those of another source, batch by batch; weights of labels go with them."""

    __slots__ = ()

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows."""
        for X, y, _ in self.weighted_batches():
            yield X, y

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """One pass over the rows, with the weights of their labels."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ChangedRows(DerivedRows):
    """Rows of another source, each changed by itself: rows can be chosen before or after.

    No more than `LIMITED_ROWS` of them are copied at a time.
    """

    rows: Rows

    def changed(self, batch: WeightedBatch) -> WeightedBatch:
        """A few rows, changed."""
        raise NotImplementedError

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """One pass over the rows, with the weights of their labels."""
        for batch in weighted(self.rows):
            for part in row_blocks(len(batch[1]), LIMITED_ROWS):
                yield self.changed(chosen(batch, part))


@dataclass(frozen=True, slots=True)
class DistinctRows(DerivedRows):
    """Rows of another source without some that are duplicates of others, `LIMITED_ROWS` or a few more at a time."""

    rows: Rows
    packed: npt.NDArray[np.uint8]
    """Whether each row is kept, eight to a byte."""
    n_samples: int
    n_labeled: int

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """One pass over the rows that are kept, in whole chunks of `SUM_ROWS`, with the weights of their labels."""
        kept = np.unpackbits(self.packed, count=self.rows.n_samples).view(bool)
        return _regrouped(self.rows, lambda start, batch: kept[start : start + len(batch[1])])


@dataclass(frozen=True, slots=True)
class LabeledRows(DerivedRows):
    """The labelled rows of another source."""

    rows: Rows

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.rows.n_labeled

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """One pass over labelled rows, in whole chunks of `SUM_ROWS`, with the weights of their labels."""
        return _regrouped(self.rows, lambda _, batch: ~np.isnan(batch[1]))


def labeled_only(rows: Rows) -> Rows:
    """The labelled rows alone, chosen before anything is made of rows."""
    return replace(rows, rows=labeled_only(rows.rows)) if isinstance(rows, ChangedRows) else LabeledRows(rows)


def _regrouped(rows: Rows, choose: Callable[[int, WeightedBatch], npt.NDArray[np.bool_]]) -> Iterator[WeightedBatch]:
    """One pass over chosen rows, in whole chunks of `SUM_ROWS`; ``choose`` knows the number of the first row."""
    waiting, start = [no_rows(rows.n_features)], 0
    for batch in weighted(rows):
        for part in row_blocks(len(batch[1]), LIMITED_ROWS):
            among = chosen(batch, part)
            wanted = choose(start + part.start, among)
            waiting.append(among if wanted.all() else chosen(among, wanted))
            if sum(len(targets) for _, targets, _ in waiting) >= LIMITED_ROWS:
                together = joined(waiting)
                whole = len(together[1]) - len(together[1]) % SUM_ROWS
                yield chosen(together, slice(whole))
                waiting = [chosen(together, slice(whole, None))]
        start += len(batch[1])
    yield joined(waiting)


def weighted(rows: Rows) -> Iterator[WeightedBatch]:
    """One pass over any rows, with the weights of their labels; sources that stream have none."""
    if isinstance(rows, ArrayRows | DerivedRows):
        return rows.weighted_batches()
    return ((X, y, None) for X, y in rows.batches())


def has_weights(rows: Rows) -> bool:
    """Whether labels have weights."""
    source = _source(rows)
    return isinstance(source, ArrayRows) and source.weights is not None


def _source(rows: Rows) -> Rows:
    """What rows are made of in the end: arrays, or a stream."""
    return _source(rows.rows) if isinstance(rows, DerivedRows) else rows


def no_rows(n_features: int) -> WeightedBatch:
    """A batch of none."""
    return np.empty((0, n_features)), np.empty(0), None


def chosen(batch: WeightedBatch, rows: slice | npt.NDArray[np.bool_]) -> WeightedBatch:
    """Some rows of a batch."""
    X, y, weights = batch
    return X[rows], y[rows], None if weights is None else weights[rows]


def joined(batches: list[WeightedBatch]) -> WeightedBatch:
    """Batches as one; an empty one does not decide the precision of the others, nor whether there are weights."""
    filled = [batch for batch in batches if len(batch[1])] or batches[:1]
    if len(filled) == 1:
        return filled[0]
    weights = [own for _, _, own in filled if own is not None]
    X, y = np.concatenate([X for X, _, _ in filled]), np.concatenate([y for _, y, _ in filled])
    return X, y, np.concatenate(weights) if weights else None


def pick(rows: Rows, wanted: IntArray, *, unlabeled: bool = False) -> Array:
    """Features of the rows with the given numbers (sorted, counted from 0), in one pass.

    With ``unlabeled``, numbers count unlabelled rows only.
    """
    if isinstance(rows, ChangedRows):
        X = pick(rows.rows, wanted, unlabeled=unlabeled)
        return rows.changed((X, np.full(len(X), np.nan), None))[0]
    found, passed = [], 0
    for X, y in rows.batches():
        there = np.flatnonzero(np.isnan(y)) if unlabeled else np.arange(len(y))
        first, last = np.searchsorted(wanted, (passed, passed + len(there)))
        found.append(X[there[wanted[first:last] - passed]])
        passed += len(there)
    return np.concatenate(found) if found else np.empty((0, rows.n_features))


def collect(rows: Rows) -> Batch:
    """All rows in memory.

    Raises
    ------
    ValueError
        If the rows are streamed and too many.
    """
    if isinstance(rows, ArrayRows):
        return rows.X, rows.y
    if rows.n_samples > MAX_GRAPH_ROWS and not isinstance(_source(rows), ArrayRows):
        raise ValueError(
            f"a graph needs all rows in memory, and {rows.n_samples} are streamed from files (at most "
            f'{MAX_GRAPH_ROWS}): take unlabeled="icr" (SFR-ICR), or fewer rows as arrays'
        )
    X, y = zip(*rows.batches(), strict=True)
    return np.concatenate(X), np.concatenate(y)
