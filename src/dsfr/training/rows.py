"""Where the rows of one agent come from: arrays in memory, or anything else that yields them batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import SUM_ROWS, Array, IntArray, row_blocks
from dsfr.core.density import RowDensity
from dsfr.core.scaling.affine import Ranges

Batch: TypeAlias = tuple[Array, Array]
"""Features, unscaled, and targets with NaN where unlabelled, of consecutive rows."""

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


@dataclass(frozen=True, slots=True)
class LimitedRows(OfRows):
    """Rows of another source, with features and targets moved to the limits where they lie beyond.

    No more than `LIMITED_ROWS` of them are copied at a time.
    """

    rows: Rows
    limits: Ranges
    target_limits: Array

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows."""
        for X, y in self.rows.batches():
            for part in row_blocks(len(y), LIMITED_ROWS):
                yield self.limits.clip(X[part]), np.clip(y[part], *self.target_limits)


@dataclass(frozen=True, slots=True)
class CompletedRows(OfRows):
    """Rows of another source, with missing values replaced by what a density expects of them, given the others.

    No more than `LIMITED_ROWS` of them are copied at a time.
    """

    rows: Rows
    density: RowDensity

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows."""
        for X, y in self.rows.batches():
            if not np.isnan(X.min(initial=0.0)):
                yield X, y
                continue
            for part in row_blocks(len(y), LIMITED_ROWS):
                yield self.density.expected(X[part]), y[part]


@dataclass(frozen=True, slots=True)
class CompleteRows(OfRows):
    """Rows of another source, none of which may have missing values.

    Raises
    ------
    IncompleteRowsError
        In the first pass over a row with one.
    """

    rows: Rows

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows."""
        for X, y in self.rows.batches():
            if np.isnan(X.min(initial=0.0)):
                raise IncompleteRowsError("X has missing values")
            yield X, y


@dataclass(frozen=True, slots=True)
class DistinctRows(OfRows):
    """Rows of another source without some that are duplicates of others, `LIMITED_ROWS` or a few more at a time."""

    rows: Rows
    packed: npt.NDArray[np.uint8]
    """Whether each row is kept, eight to a byte."""
    n_samples: int
    n_labeled: int

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows that are kept, in whole chunks of `SUM_ROWS`."""
        kept = np.unpackbits(self.packed, count=self.rows.n_samples).view(bool)
        waiting, start = [(np.empty((0, self.n_features)), np.empty(0))], 0
        for X, y in self.rows.batches():
            for part in row_blocks(len(y), LIMITED_ROWS):
                here = kept[start + part.start : start + part.stop]
                waiting.append((X[part][here], y[part][here]))
                if sum(len(targets) for _, targets in waiting) >= LIMITED_ROWS:
                    X_kept, y_kept = _joined(waiting)
                    whole = len(y_kept) - len(y_kept) % SUM_ROWS
                    yield X_kept[:whole], y_kept[:whole]
                    waiting = [(X_kept[whole:], y_kept[whole:])]
            start += len(y)
        yield _joined(waiting)


def _joined(batches: list[Batch]) -> Batch:
    """Batches as one; an empty one does not decide the precision of the others."""
    filled = [batch for batch in batches if len(batch[1])] or batches[:1]
    return np.concatenate([X for X, _ in filled]), np.concatenate([y for _, y in filled])


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
    source = rows
    while isinstance(source, LimitedRows | DistinctRows | CompletedRows):
        source = source.rows
    if rows.n_samples > MAX_GRAPH_ROWS and not isinstance(source, ArrayRows):
        raise ValueError(
            f"a graph needs all rows in memory, and {rows.n_samples} are streamed from files (at most "
            f'{MAX_GRAPH_ROWS}): take unlabeled="icr" (SFR-ICR), or fewer rows as arrays'
        )
    X, y = zip(*rows.batches(), strict=True)
    return np.concatenate(X), np.concatenate(y)
