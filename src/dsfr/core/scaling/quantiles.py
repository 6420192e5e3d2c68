"""Quantiles by bisection on counts: each round counts the values at or below a few thresholds and narrows the brackets.

Counts add over agents; no agent sends a value of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray

N_THRESHOLDS = 33
"""Thresholds per round, both ends included: each round makes a bracket 32 times shorter."""
EVEN_ROUNDS = 12
"""Rounds with evenly spaced thresholds. They shorten a bracket by 1e18, enough unless there is an extreme outlier."""
MAX_ROUNDS = EVEN_ROUNDS + 13
"""Later rounds space thresholds evenly in the order of the 64-bit floats, which narrows any bracket to one float."""
PRECISION = 1e-6
"""Relative to the distance between the lower and the upper quantile."""


@dataclass(frozen=True, slots=True)
class Brackets:
    """Intervals that hold one quantile each; any shape."""

    low: Array
    high: Array
    rounds: int = 0
    """Rounds so far."""

    def thresholds(self) -> Array:
        """Ascending values from end to end, evenly spaced at first; a last axis of `N_THRESHOLDS`."""
        if self.rounds >= EVEN_ROUNDS:
            return _floats(_between(_ranks(self.low), _ranks(self.high)))
        share = np.linspace(0.0, 1.0, N_THRESHOLDS)
        # A weighted sum of the ends: their difference may overflow.
        return self.low[..., None] * (1.0 - share) + self.high[..., None] * share

    def are_narrow(self) -> bool:
        """Whether the lower and upper quantile (first axis) of every column are known to `PRECISION`.

        Relative to the distance between the quantiles, because an outlier makes the range of the values too coarse.
        """
        low, high = self.low / 2.0, self.high / 2.0  # full differences may overflow
        finest = np.spacing(np.abs(high))
        return bool((high - low <= np.maximum(PRECISION * (high[1] - high[0]), 4.0 * finest)).all())

    def narrowed(self, counts: Array, wanted: Array) -> Brackets:
        """Brackets around the smallest threshold at or below which ``wanted`` values lie, from pooled counts."""
        thresholds = self.thresholds()
        reached = counts >= wanted[..., None]
        reached[..., -1] = True  # values beyond a declared range count as lying at its end
        place = reached.argmax(axis=-1)[..., None]
        high = np.take_along_axis(thresholds, place, axis=-1)[..., 0]
        low = np.take_along_axis(thresholds, np.maximum(place - 1, 0), axis=-1)[..., 0]
        return Brackets(low, high, self.rounds + 1)


def _ranks(values: Array) -> IntArray:
    """Rank of every value among the 64-bit floats; 0 has rank 0."""
    bits = (values + 0.0).view(np.int64)  # adding 0.0 turns -0.0 into 0.0
    return np.where(bits < 0, np.iinfo(np.int64).min - bits, bits)


def _floats(places: IntArray) -> Array:
    """Values of given ranks."""
    return np.where(places < 0, np.iinfo(np.int64).min - places, places).view(np.float64)


def _between(low: IntArray, high: IntArray) -> IntArray:
    """Evenly spaced ranks from end to end, rounded; a last axis of `N_THRESHOLDS`."""
    parts = N_THRESHOLDS - 1
    up = np.arange(N_THRESHOLDS)
    down = parts - up
    # Quotient and remainder separately: full products would overflow.
    low, low_rest = np.divmod(low[..., None], parts)
    high, high_rest = np.divmod(high[..., None], parts)
    between, _ = np.divmod(low_rest * down + high_rest * up, parts)
    return low * down + high * up + between


def floats_up_to(largest: float, n: int) -> Array:
    """``n`` ascending values from 0 to ``largest`` >= 0, evenly spaced in the order of the 64-bit floats."""
    places = np.linspace(0.0, float(_ranks(np.array([largest]))[0]), n).astype(np.int64)
    values = _floats(places)
    values[-1] = largest
    return values


def counts_below(values: Array, thresholds: Array, weights: Array | None = None) -> Array:
    """Number of ``values`` at or below each of the ascending ``thresholds``; shape of the thresholds.

    Each counts ``weights`` times.
    """
    first = np.searchsorted(thresholds, values, side="left")
    counts: Array = np.bincount(first, weights, minlength=len(thresholds) + 1)[:-1].cumsum().astype(np.float64)
    return counts
