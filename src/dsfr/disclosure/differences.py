"""How many own rows the difference of two sums is about, whatever a coordinator subtracts from what.

Two questions can each be about many rows, and differ by one: bins that end at neighboring values, a center that is
moved a little, a rule with one condition more. What is compared are the weights that rows have in the sums, as
functions of the rows. A difference is about as many rows as its weights add up to, in units of the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, IntArray

Weights: TypeAlias = Callable[[Array], Array]
"""Weights of a block of rows."""
NOTHING = 1e-12
"""Largest difference of weights that is none: rounding hides it."""
SLACK = 1e-6
"""Rounding of sums of squares, generously."""


def effective_rows(total: Array, largest: Array) -> Array:
    """Sums of absolute weights over the largest one; infinite where all are 0."""
    is_none = largest <= NOTHING
    rows: Array = np.where(is_none, np.inf, total / np.where(is_none, 1.0, largest))
    return rows


def fewest_rows(
    own: Sequence[Weights], others: Sequence[Weights], blocks: Callable[[], Iterable[Array]], least: float = np.inf
) -> float:
    """Fewest rows that any column of weights differs by from any column of another question.

    Memory is that of a block of rows, and of a number for every pair of columns.

    Parameters
    ----------
    own, others : sequences of callables
        Weights from 0 to 1 of a block of rows in the clusters or rules of a question; shape (n, k). Columns of the same
        question are not compared.
    blocks : callable
        Iterates over the rows; called twice at most.
    least : float, default=inf
        Infinite is returned if none differ by fewer rows.
    """
    near = _near(own, others, blocks, least)
    totals = {number: np.zeros((2, len(pairs))) for number, pairs in near.items()}
    for X in row_parts(blocks()) if near else ():
        mine = np.hstack([weights(X) for weights in own])
        for number, pairs in near.items():
            apart = np.abs(mine[:, pairs[:, 0]] - others[number](X)[:, pairs[:, 1]])
            totals[number][0] += apart.sum(axis=0)
            totals[number][1] = np.maximum(totals[number][1], apart.max(axis=0, initial=0.0))
    return float(np.min([np.inf, *(effective_rows(*found).min() for found in totals.values())]))


def _near(
    own: Sequence[Weights], others: Sequence[Weights], blocks: Callable[[], Iterable[Array]], least: float
) -> dict[int, IntArray]:
    """Pairs of columns that may differ by fewer than ``least`` rows, by the number of the other question.

    Differences of weights are at most 1, so they add up to no less, in units of the largest, than their squares do.
    """
    squares: dict[int, Array] = {number: np.zeros(1) for number, weights in enumerate(others) if [weights] != list(own)}
    for X in row_parts(blocks()):
        mine = [weights(X) for weights in own] if squares else []
        for number in list(squares):
            theirs = others[number](X)
            parts = [_squares(one, theirs, others[number] is of) for one, of in zip(mine, own, strict=True)]
            squares[number] = squares[number] + np.concatenate(parts)
            if (squares[number] >= least + SLACK).all():
                del squares[number]  # further rows only add to it
    return {number: np.argwhere(~(square >= least + SLACK)) for number, square in squares.items()}


def row_parts(blocks: Iterable[Array]) -> Iterator[Array]:
    """Of every block each eighth row, then the others: few rows tell questions apart that are far from each other."""
    for X in blocks:
        yield X[::8]
        yield X[np.arange(len(X)) % 8 > 0]


def _squares(one: Array, other: Array, is_same: bool) -> Array:
    """Sums of squared differences of every pair of columns; infinite within a question."""
    if is_same:
        return np.full((one.shape[1], other.shape[1]), np.inf)
    sums: Array = (one**2).sum(axis=0)[:, None] + (other**2).sum(axis=0) - 2.0 * one.T @ other
    return sums


class BinnedPair:
    """Two rules, each with the values at which bins of columns end, and sums by bins of both.

    Blocks of rows are added one after the other, and numbers of every cell between values are kept.
    """

    def __init__(self, own: Mapping[int, Array], others: Mapping[int, Array]) -> None:
        none = np.empty(0)
        self._knots = {j: (own.get(j, none), others.get(j, none)) for j in set(own) | set(others)}
        self._ends = {j: np.union1d(*knots) for j, knots in self._knots.items()}
        self._totals = {j: np.zeros((3, len(ends) + 1)) for j, ends in self._ends.items()}
        self._largest = {j: np.zeros((3, len(ends) + 1)) for j, ends in self._ends.items()}
        self._whole = np.zeros(2)

    def add(self, own: Array, others: Array, X: Array) -> None:
        """Add rows, and their weights in both rules; shape (n,)."""
        parts = (np.abs(own - others), own, others)
        self._whole += (parts[0].sum(), 0.0)
        self._whole[1] = max(self._whole[1], parts[0].max(initial=0.0))
        for j, ends in self._ends.items():
            place, n_cells = np.searchsorted(ends, X[:, j], side="right").astype(np.int64), len(ends) + 1
            totals, largest = np.array([_by_cell(part, place, n_cells) for part in parts]).transpose(1, 0, 2)
            self._totals[j] += totals
            self._largest[j] = np.maximum(self._largest[j], largest)

    def fewest_rows(self, least: float) -> float:
        """Fewest rows that a sum over adjacent bins of one and a sum of the other question differ by.

        Bins of the same column, or all rows. Infinite if none differ by fewer than ``least``.
        """
        return float(np.min([effective_rows(*self._whole), *(self._along(j, least) for j in self._ends)]))

    def _along(self, j: int, least: float) -> float:
        totals, largest = self._totals[j], self._largest[j]
        if (effective_rows(totals, largest) >= least).all():
            return np.inf  # the cell with the largest weight has enough, whatever the others add
        n_cells = len(self._ends[j]) + 1
        here, there = (_runs(np.searchsorted(self._ends[j], one).tolist(), n_cells) for one in self._knots[j])
        is_here, is_there = here[:, None], there[None]
        states = (is_here & is_there, is_here & ~is_there, ~is_here & is_there)
        total = sum((state @ of for state, of in zip(states, totals, strict=True)), np.zeros(1))
        most = np.max([(state * of).max(axis=-1) for state, of in zip(states, largest, strict=True)], axis=0)
        return float(effective_rows(total, most).min())


def _by_cell(values: Array, place: IntArray, n_cells: int) -> tuple[Array, Array]:
    """Sum and largest of values in every cell."""
    largest = np.zeros(n_cells)
    np.maximum.at(largest, place, values)
    return np.bincount(place, values, n_cells).astype(np.float64), largest


def _runs(ends: list[int], n_cells: int) -> npt.NDArray[np.bool_]:
    """Which cells every run of adjacent bins holds; shape (runs, cells)."""
    edges = [0, *(end + 1 for end in ends), n_cells]
    runs = [(first, last) for place, first in enumerate(edges) for last in edges[place + 1 :]]
    return np.array([(np.arange(n_cells) >= first) & (np.arange(n_cells) < last) for first, last in runs])


def cell_counts(x: Array, ends: Array) -> IntArray:
    """Numbers of rows in cells between ascending values."""
    return np.bincount(np.searchsorted(ends, x, side="right"), minlength=len(ends) + 1)
