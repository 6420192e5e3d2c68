"""Levels of features whose rows are in few places: where counts at thresholds show rows, and nowhere else.

A code of schools, counties or patients has an effect at each value that tells nothing of its neighbours. No value is
known, only between which thresholds it lies: a level is a fuzzy set that holds fully from one threshold to the next.
Rows of a skewed column crowd between few thresholds too: its levels are steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.features.quantile_curves import Distribution

FEWEST, MOST = 4, 100
"""Levels of a feature: curves follow fewer, and of more, rows are nearly everywhere."""
INSIDE = 1e-3
"""Of the distance of two thresholds: a level begins so far behind the lower one, at which its neighbour may end."""


@dataclass(frozen=True, slots=True)
class FeatureLevels:
    """Where the rows of one feature are."""

    starts: Array
    ends: Array
    ranks: Array
    """Of the rows of a level, in the middle, in [0, 1]."""

    @classmethod
    def of(cls, distribution: Distribution, j: int) -> FeatureLevels:
        """Intervals between neighboring thresholds that hold rows."""
        thresholds, counts = distribution.thresholds[:, j], distribution.counts[:, j]
        before = np.append(0.0, counts[:-1])
        held = counts > before
        lower = np.append(thresholds[:1], thresholds[:-1])
        starts = lower + INSIDE * (thresholds - lower)
        return cls(starts[held], thresholds[held], (before + counts)[held] / (2.0 * counts[-1]))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def knots(self) -> Array:
        """Both ends of every level; ascending."""
        return np.stack([self.starts, self.ends], axis=1).ravel()


def levels_of(distribution: Distribution) -> dict[int, FeatureLevels]:
    """Features whose rows are in few places, by number."""
    found = {j: FeatureLevels.of(distribution, j) for j in range(distribution.thresholds.shape[1])}
    return {j: levels for j, levels in found.items() if FEWEST <= len(levels) <= MOST}


def level_effects(j: int, levels: FeatureLevels, n_knots: int) -> IntArray:
    """Feature, first and last knot of every level, where the feature's last knot is repeated; shape (l, 3)."""
    first = 2 * np.arange(len(levels))
    last = first + 1
    last[-1] = n_knots - 1
    found: IntArray = np.stack([np.full(len(levels), j), first, last], axis=1).astype(np.int64)
    return found


def knots_with_levels(
    distribution: Distribution, levels: dict[int, FeatureLevels], n_knots: int
) -> tuple[Array, Array]:
    """Knots of every feature and their ranks, as `Distribution.knots` has them but for features with levels."""
    most = max([n_knots, *(2 * len(own) for own in levels.values())])
    knots, ranks = distribution.knots(n_knots)
    knots, ranks = (np.pad(each, ((0, most - n_knots), (0, 0)), mode="edge") for each in (knots, ranks))
    for j, own in levels.items():
        more = (0, most - 2 * len(own))
        knots[:, j] = np.pad(own.knots, more, mode="edge")
        ranks[:, j] = np.pad(np.repeat(own.ranks, 2), more, mode="edge")
    return knots, ranks
