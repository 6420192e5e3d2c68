"""Quantiles from counts alone: each round asks how many values lie at or below a few thresholds, and narrows down.

Counts add over agents, and nobody tells a value of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array

N_THRESHOLDS = 33
"""Thresholds asked at once, both ends included: each round makes a bracket 32 times shorter."""
MOST_ROUNDS = 12
"""Rounds that narrow any bracket down to what numbers can tell apart."""
PRECISION = 1e-6
"""Of the distance between the lower and the upper quantile."""


@dataclass(frozen=True, slots=True)
class Brackets:
    """Intervals that hold one quantile each; any shape."""

    low: Array
    high: Array

    def thresholds(self) -> Array:
        """Evenly spaced values from end to end; a last axis of `N_THRESHOLDS`."""
        share = np.linspace(0.0, 1.0, N_THRESHOLDS)
        # Ends are weighed, not subtracted: their difference may overflow.
        return self.low[..., None] * (1.0 - share) + self.high[..., None] * share

    def are_narrow(self) -> bool:
        """Whether the quantiles of every column (a first axis of lower and upper one) are known well enough.

        Measured against their distance: one far-off value makes a range long, and a share of that would be too coarse.
        """
        apart = self.high[1] - self.high[0]
        finest = np.spacing(np.abs(self.high))
        return bool((self.high - self.low <= np.maximum(PRECISION * apart, 4.0 * finest)).all())

    def narrowed(self, counts: Array, wanted: Array) -> Brackets:
        """Brackets about the smallest threshold at or below which ``wanted`` values lie, from the counts of all."""
        thresholds = self.thresholds()
        reached = counts >= wanted[..., None]
        reached[..., -1] = True  # values beyond a declared range count as lying at its end
        place = reached.argmax(axis=-1)[..., None]
        high = np.take_along_axis(thresholds, place, axis=-1)[..., 0]
        low = np.take_along_axis(thresholds, np.maximum(place - 1, 0), axis=-1)[..., 0]
        return Brackets(low, high)


def counts_below(values: Array, thresholds: Array) -> Array:
    """How many ``values`` lie at or below each of the ascending ``thresholds``; shape of the thresholds."""
    first = np.searchsorted(thresholds, values, side="left")
    counts: Array = np.bincount(first, minlength=len(thresholds) + 1)[:-1].cumsum().astype(np.float64)
    return counts
