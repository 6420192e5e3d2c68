"""Where the rows of one agent come from: arrays in memory, or anything else that yields them batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import SUM_ROWS, Array, IntArray, row_blocks
from dsfr.core.density import RowDensity
from dsfr.core.scaling.affine import LARGEST_FLOAT, Ranges

Batch: TypeAlias = tuple[Array, Array]
"""Features, unscaled, and targets with NaN where unlabelled, of consecutive rows."""
WeightedBatch: TypeAlias = tuple[Array, Array, Array | None]
"""A batch with the weights of its labels; None where all labels weigh 1."""

MAX_GRAPH_ROWS = 2**16
"""A graph needs all rows at once; so many are collected even from a source that streams them."""


LIMITED_ROWS = 16 * SUM_ROWS
"""Rows in memory that are moved to limits at once: few enough to be no second table, enough for all threads."""


class IncompleteRowsError(ValueError):
    """Rows with missing values where none may be."""


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
class LimitedRows(DerivedRows):
    """Rows of another source, with features and targets moved to the limits where they lie beyond.

    No more than `LIMITED_ROWS` of them are copied at a time.
    """

    rows: Rows
    limits: Ranges
    target_limits: Array

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """One pass over the rows, with the weights of their labels."""
        for X, y, weights in weighted(self.rows):
            for part in row_blocks(len(y), LIMITED_ROWS):
                own = None if weights is None else weights[part]
                yield self.limits.clip(X[part]), np.clip(y[part], *self.target_limits), own


@dataclass(frozen=True, slots=True)
class LogRows(DerivedRows):
    """Rows of another source with the logarithms of their targets.

    The logarithm of a target that is not positive is the lowest number there is.
    """

    rows: Rows

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """One pass over the rows, with the weights of their labels."""
        for X, y, weights in weighted(self.rows):
            positive = np.where(y > 0.0, y, 1.0)
            logarithms = np.where(y > 0.0, np.log(positive), np.where(np.isnan(y), np.nan, -LARGEST_FLOAT))
            yield X, logarithms, weights


@dataclass(frozen=True, slots=True)
class CompletedRows(DerivedRows):
    """Rows of another source, with missing values replaced by what a density expects of them, given the others.

    No more than `LIMITED_ROWS` of them are copied at a time.
    """

    rows: Rows
    density: RowDensity

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """One pass over the rows, with the weights of their labels."""
        for X, y, weights in weighted(self.rows):
            if not np.isnan(X.min(initial=0.0)):
                yield X, y, weights
                continue
            for part in row_blocks(len(y), LIMITED_ROWS):
                own = None if weights is None else weights[part]
                yield self.density.expected(X[part]), y[part], own


@dataclass(frozen=True, slots=True)
class CompleteRows(DerivedRows):
    """Rows of another source, none of which may have missing values.

    Raises
    ------
    IncompleteRowsError
        In the first pass over a row with one.
    """

    rows: Rows

    def weighted_batches(self) -> Iterator[WeightedBatch]:
        """One pass over the rows, with the weights of their labels."""
        for X, y, weights in weighted(self.rows):
            if np.isnan(X.min(initial=0.0)):
                raise IncompleteRowsError("X has missing values")
            yield X, y, weights


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
        waiting, start = [_no_rows(self.n_features)], 0
        for batch in weighted(self.rows):
            for part in row_blocks(len(batch[1]), LIMITED_ROWS):
                waiting.append(_chosen(_chosen(batch, part), kept[start + part.start : start + part.stop]))
                if sum(len(targets) for _, targets, _ in waiting) >= LIMITED_ROWS:
                    joined = _joined(waiting)
                    whole = len(joined[1]) - len(joined[1]) % SUM_ROWS
                    yield _chosen(joined, slice(whole))
                    waiting = [_chosen(joined, slice(whole, None))]
            start += len(batch[1])
        yield _joined(waiting)


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


def _no_rows(n_features: int) -> WeightedBatch:
    return np.empty((0, n_features)), np.empty(0), None


def _chosen(batch: WeightedBatch, rows: slice | npt.NDArray[np.bool_]) -> WeightedBatch:
    X, y, weights = batch
    return X[rows], y[rows], None if weights is None else weights[rows]


def _joined(batches: list[WeightedBatch]) -> WeightedBatch:
    """Batches as one; an empty one does not decide the precision of the others, nor whether there are weights."""
    filled = [batch for batch in batches if len(batch[1])] or batches[:1]
    weights = [own for _, _, own in filled if own is not None]
    X, y = np.concatenate([X for X, _, _ in filled]), np.concatenate([y for _, y, _ in filled])
    return X, y, np.concatenate(weights) if weights else None


def pick(rows: Rows, wanted: IntArray, *, unlabeled: bool = False) -> Array:
    """Features of the rows with the given numbers (sorted, counted from 0), in one pass.

    With ``unlabeled``, numbers count unlabelled rows only.
    """
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
