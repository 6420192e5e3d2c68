"""How many own rows the difference of two sums is about, whatever a coordinator subtracts from what.

Two questions can each be about many rows, and differ by one: bins that end at neighboring values, a center that is
moved a little, a rule with one condition more. What is compared are the weights that rows have in the sums, as
functions of the rows. A difference is about as many rows as its weights add up to, in units of the largest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, IntArray

NOTHING = 1e-12
"""Largest difference of weights that is none: rounding hides it."""


def effective_rows(total: Array, largest: Array) -> Array:
    """Sums of absolute weights over the largest one; infinite where all are 0."""
    is_none = largest <= NOTHING
    rows: Array = np.where(is_none, np.inf, total / np.where(is_none, 1.0, largest))
    return rows


def fewest_rows(weights: Array, before: Array) -> float:
    """Fewest rows that any column of weights differs by from the one nearest to it of an earlier question.

    Parameters
    ----------
    weights, before : arrays of shape (n, k) and (n, l)
        Of the same rows.
    """
    squares = np.einsum("nl,nl->l", before, before)
    nearest = (squares - 2.0 * weights.T @ before).argmin(axis=1)
    apart = np.abs(weights - before[:, nearest])
    return float(effective_rows(apart.sum(axis=0), apart.max(axis=0, initial=0.0)).min(initial=np.inf))


@dataclass(frozen=True, slots=True)
class Binned:
    """Weights of rows in one rule, and the values at which bins of columns end."""

    weights: Array
    """Shape (n,)."""
    knots: Mapping[int, Array]
    """Ascending, by column."""

    def fewest_rows(self, other: Binned, X: Array, least: float) -> float:
        """Fewest rows that a sum over adjacent bins of this and one of the other question differ by.

        Bins of the same column, or all rows. Infinite if none differ by fewer than ``least``.
        """
        columns = set(self.knots) | set(other.knots)
        found = [self._along(other, X[:, j], j, least) for j in columns]
        apart = np.abs(self.weights - other.weights)
        whole = effective_rows(apart.sum(), apart.max(initial=0.0))
        return min([float(whole), *found])

    def _along(self, other: Binned, x: Array, j: int, least: float) -> float:
        own, others = self.knots.get(j, np.empty(0)), other.knots.get(j, np.empty(0))
        ends = np.union1d(own, others)
        place, n_cells = np.searchsorted(ends, x, side="right").astype(np.int64), len(ends) + 1
        parts = (self.weights - other.weights, self.weights, other.weights)
        totals, largest = np.array([_by_cell(np.abs(part), place, n_cells) for part in parts]).transpose(1, 0, 2)
        if (effective_rows(totals, largest) >= least).all():
            return np.inf  # the cell with the largest weight has enough, whatever the others add
        here, there = (_runs(np.searchsorted(ends, one).tolist(), n_cells) for one in (own, others))
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


def thin_cells(x: Array, ends: Array, least: float) -> Iterator[int]:
    """Numbers of rows, fewer than ``least`` and not 0, in cells between ascending values."""
    counts = np.bincount(np.searchsorted(ends, x, side="right"), minlength=len(ends) + 1)
    yield from counts[(counts > 0) & (counts < least)].tolist()
