"""Normalised root mean squared error."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array


def relative_error(true: Array, predicted: Array) -> float | None:
    """Root mean squared error divided by the sample deviation of the targets; rows with a NaN target are ignored.

    None if it is undefined: with fewer than two targets, or equal ones.

    >>> round(relative_error(np.array([1.0, 2.0, 3.0, np.nan]), np.array([1.0, 2.0, 4.0, 9.0])), 4)
    0.5774
    """
    known = ~np.isnan(true)
    unit = unit_of(true[known])
    wanted, got = true[known] / unit, in_units(predicted[known], unit)
    if len(wanted) < 2 or np.ptp(wanted) == 0.0:
        return None
    return float(np.sqrt(np.mean((got - wanted) ** 2) / np.var(wanted, ddof=1)))


MAX_PREDICTION = 1e145
"""Predictions are clipped here, in units of the target, so that sums of their squares are finite."""


def in_units(predicted: Array, unit: float) -> Array:
    """Predictions in a unit of the targets, cut off where their squares would overflow."""
    with np.errstate(over="ignore"):
        values: Array = np.clip(predicted / unit, -MAX_PREDICTION, MAX_PREDICTION)
    return values


def unit_of(values: Array) -> float:
    """A power of two near the largest value: dividing by it is exact, and squares do not overflow.

    >>> unit_of(np.array([-5.0, 3.0])), unit_of(np.array([1e300])) > 1e299, unit_of(np.empty(0))
    (4.0, True, 1.0)
    """
    largest = float(np.abs(values).max(initial=0.0))
    return float(2.0 ** np.floor(np.log2(largest))) if largest > 0.0 else 1.0
