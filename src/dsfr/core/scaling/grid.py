"""A fixed grid of round values per column, and counts on it that single out no few rows.

Thresholds that may lie anywhere find a single value by bisection. On a grid that follows from the declared range alone
nothing is found beyond its step, however often rows are counted.
"""

from __future__ import annotations

from math import ceil, floor

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.rounding import power_below, rounded
from dsfr.core.scaling.affine import Ranges

MOST_VALUES = 33
"""Values of a column at most, both ends included."""
ON_GRID = 1e-9
"""Distance from a value of the grid, in units of the range, that counts as none."""
_STEPS = (1.0, 2.0, 5.0)


def grid(ranges: Ranges) -> Array:
    """Values of every column, ascending, the last one repeated; shape (d, `MOST_VALUES`)."""
    columns = [_column_values(low, high) for low, high in zip(ranges.low.tolist(), ranges.high.tolist(), strict=True)]
    return np.stack([np.pad(values, (0, MOST_VALUES - len(values)), mode="edge") for values in columns])


def _column_values(low: float, high: float) -> Array:
    """Multiples of the smallest round step of which at most `MOST_VALUES` lie in a range.

    >>> _column_values(0.0, 100.0)[[0, 1, -1]]
    array([  0.,   5., 100.])
    """
    power = power_below((high / 2.0 - low / 2.0) * 2.0 / MOST_VALUES)
    if not -300 < power < 300:
        return np.array([low])
    for step, size in ((first * 10.0**up, up) for up in (power, power + 1) for first in _STEPS):
        first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
        if last - first < MOST_VALUES:
            return np.array([rounded(place * step, size) for place in range(first, last + 1)] or [low])
    raise AssertionError("a step of ten times the smallest is long enough")


def is_on_grid(values: Array, column: Array, ranges: Ranges, j: int) -> bool:
    """Whether values lie on the grid of column ``j``, to rounding; ``column`` is its row of `grid`."""
    unit = 2.0 * float(ranges.half_widths[j])
    nearest = np.abs(np.asarray(values).reshape(-1, 1) - column).min(axis=1)
    return bool((nearest <= ON_GRID * unit).all())


def coarse_counts(counts: Array, n: float, least: float) -> Array:
    """Cumulative counts in which no two differ by fewer than ``least`` rows, unless they are equal; nor from 0 and n.

    Parameters
    ----------
    counts : array of shape (t,)
        Rows at or below ascending thresholds.
    n : float
        All rows.
    least : float
        Fewest rows that may show between two thresholds.

    Returns
    -------
    array of shape (t,)
        Each count as it is, or lowered to the one before, or ``n`` near the end.

    >>> coarse_counts(np.array([1.0, 6.0, 8.0, 12.0, 18.0, 20.0]), 20.0, 5.0)
    array([ 0.,  6.,  6., 12., 20., 20.])
    """
    shown, last = np.empty_like(counts), 0.0
    for place, count in enumerate(counts.tolist()):
        if n - count < least:
            count = n
        if count - last >= least:
            last = count
        shown[place] = last
    if last < n and n - last < least:  # fewer than `least` rows in all
        shown[:] = 0.0
    return shown
