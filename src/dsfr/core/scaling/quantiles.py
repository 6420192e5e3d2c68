"""Quantiles from counts alone: each round asks how many values lie at or below a few thresholds, and narrows down.

Counts add over agents, and nobody tells a value of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray

N_THRESHOLDS = 33
"""Thresholds asked at once, both ends included: each round makes a bracket 32 times shorter."""
EVEN_ROUNDS = 12
"""Rounds with evenly spaced thresholds, which make a bracket 1e18 times shorter: enough, unless a value is far off."""
MOST_ROUNDS = EVEN_ROUNDS + 13
"""The others put as many numbers of 64 bits between any two thresholds: they narrow any bracket down to one number."""
PRECISION = 1e-6
"""Of the distance between the lower and the upper quantile."""


@dataclass(frozen=True, slots=True)
class Brackets:
    """Intervals that hold one quantile each; any shape."""

    low: Array
    high: Array
    rounds: int = 0
    """Rounds that have narrowed them so far."""

    def thresholds(self) -> Array:
        """Ascending values from end to end, evenly spaced at first; a last axis of `N_THRESHOLDS`."""
        if self.rounds >= EVEN_ROUNDS:
            return _numbered(_between(_numbers(self.low), _numbers(self.high)))
        share = np.linspace(0.0, 1.0, N_THRESHOLDS)
        # Ends are weighed, not subtracted: their difference may overflow.
        return self.low[..., None] * (1.0 - share) + self.high[..., None] * share

    def are_narrow(self) -> bool:
        """Whether the quantiles of every column (a first axis of lower and upper one) are known well enough.

        Measured against their distance: one far-off value makes a range long, and a share of that would be too coarse.
        """
        low, high = self.low / 2.0, self.high / 2.0  # differences of the whole may overflow
        finest = np.spacing(np.abs(high))
        return bool((high - low <= np.maximum(PRECISION * (high[1] - high[0]), 4.0 * finest)).all())

    def narrowed(self, counts: Array, wanted: Array) -> Brackets:
        """Brackets about the smallest threshold at or below which ``wanted`` values lie, from the counts of all."""
        thresholds = self.thresholds()
        reached = counts >= wanted[..., None]
        reached[..., -1] = True  # values beyond a declared range count as lying at its end
        place = reached.argmax(axis=-1)[..., None]
        high = np.take_along_axis(thresholds, place, axis=-1)[..., 0]
        low = np.take_along_axis(thresholds, np.maximum(place - 1, 0), axis=-1)[..., 0]
        return Brackets(low, high, self.rounds + 1)


def _numbers(values: Array) -> IntArray:
    """Place of every value in the order of all numbers that 64 bits can tell apart; that of 0 is 0."""
    bits = (values + 0.0).view(np.int64)  # there is a -0.0, and the sum is none
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _numbered(places: IntArray) -> Array:
    """Values by their `_numbers`."""
    return np.where(places < 0, np.iinfo(np.int64).min - places, places).view(np.float64)


def _between(low: IntArray, high: IntArray) -> IntArray:
    """Whole numbers from end to end, as evenly spaced as may be; a last axis of `N_THRESHOLDS`."""
    parts = N_THRESHOLDS - 1
    up = np.arange(N_THRESHOLDS)
    down = parts - up
    # Quotient and rest apart: the products of the whole would overflow.
    low, low_rest = np.divmod(low[..., None], parts)
    high, high_rest = np.divmod(high[..., None], parts)
    between, _ = np.divmod(low_rest * down + high_rest * up, parts)
    return low * down + high * up + between


def numbers_up_to(largest: float, n: int) -> Array:
    """``n`` ascending values from 0 to ``largest`` >= 0, with about as many numbers of 64 bits between any two."""
    places = np.linspace(0.0, float(_numbers(np.array([largest]))[0]), n).astype(np.int64)
    values = _numbered(places)
    values[-1] = largest
    return values


def counts_below(values: Array, thresholds: Array) -> Array:
    """How many ``values`` lie at or below each of the ascending ``thresholds``; shape of the thresholds."""
    first = np.searchsorted(thresholds, values, side="left")
    counts: Array = np.bincount(first, minlength=len(thresholds) + 1)[:-1].cumsum().astype(np.float64)
    return counts
