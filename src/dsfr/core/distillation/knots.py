"""Knots of a feature: values with few digits, near its quantiles, between which ramps may rise."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.rounding import power_below, rounded

LEVELS = np.array([0.05, 0.15, 0.25, 0.35, 0.5, 0.65, 0.75, 0.85, 0.95])
"""Shares of all rows below the knots."""
N_KNOTS = len(LEVELS)
N_THRESHOLDS = 65
"""Thresholds at which the rows of a feature are counted, in each of two rounds."""
DIGITS = 20.0
"""Steps of the rounding, at least, between the outermost knots."""


def first_thresholds(low: Array, high: Array) -> Array:
    """Thresholds from end to end, evenly spaced; the last but one is just below the highest value; (d, thresholds)."""
    share = np.append(np.linspace(0.0, 1.0, N_THRESHOLDS - 1, endpoint=False), 1.0)
    # A weighted sum of the ends: their difference may overflow.
    thresholds = low[:, None] * (1.0 - share) + high[:, None] * share
    thresholds[:, -2] = np.maximum(np.nextafter(high, -np.inf), low)
    ascending: Array = np.maximum.accumulate(thresholds, axis=1)
    return ascending


def second_thresholds(thresholds: Array, counts: Array) -> Array:
    """Thresholds closer together where the rows are; (d, thresholds)."""
    rows = [
        np.interp(np.linspace(0.0, counted[-1], N_THRESHOLDS), counted, row)
        for row, counted in zip(thresholds, counts, strict=True)
    ]
    finer: Array = np.maximum.accumulate(np.stack(rows), axis=1)
    finer[:, 0], finer[:, -1] = thresholds[:, 0], thresholds[:, -1]
    return finer


def is_two_valued(counts: Array) -> bool:
    """Whether all rows of a feature have its lowest or its highest value, by counts at `first_thresholds`."""
    return bool(counts[0] == counts[-2] < counts[-1])


def knots_of(thresholds: Array, counts: Array) -> Array:
    """Knots near the quantiles of a feature, rounded; ascending, repeated where there are fewer; (knots,)."""
    places = np.searchsorted(counts, np.ceil(LEVELS * counts[-1]), side="left")
    quantiles = thresholds[np.minimum(places, len(thresholds) - 1)]
    power = power_below(float(quantiles[-1] / 2.0 - quantiles[0] / 2.0) / (DIGITS / 2.0))
    return padded(np.array([rounded(value, power) for value in quantiles.tolist()]))


def padded(values: Array) -> Array:
    """Ascending distinct values, the last one repeated."""
    distinct = np.unique(values)
    return np.append(distinct, np.full(N_KNOTS - len(distinct), distinct[-1]))
