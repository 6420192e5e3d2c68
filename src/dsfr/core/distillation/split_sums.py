"""Sums from which every split of a rule along a feature can be evaluated: products of columns, bin by bin.

The knots of a feature cut its values into bins. A ramp from one knot to another is linear in every bin. So the sums of
products weighted by any such ramp follow from two sums per bin: of the products, and of the products times the position
within the bin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.distillation.knots import padded

Ramp = tuple[float, float]
"""Start and end of a ramp."""


def triangle_products(U: Array) -> Array:
    """Products of all pairs of columns, each pair once, row by row; shape (n, p(p+1)/2)."""
    i, j = np.triu_indices(U.shape[1])
    products: Array = U[:, i] * U[:, j]
    return products


def bin_positions(X: Array, knots: Array) -> tuple[Array, Array]:
    """Which bin each value lies in, one column per bin, and how far within its bin, one column per inner bin.

    ``X`` has a column for every row of ``knots``; shapes (n, c (q + 1)) and (n, c (q - 1)).
    """
    n, c, q = len(X), *knots.shape
    inside, within = np.zeros((n, c, q + 1)), np.zeros((n, c, q - 1))
    rows = np.arange(n)
    for j in range(c):
        place = np.searchsorted(knots[j], X[:, j], side="right")
        inside[rows, j, place] = 1.0
        inner = np.flatnonzero((place > 0) & (place < q))
        low, high = knots[j, place[inner] - 1], knots[j, place[inner]]
        within[inner, j, place[inner] - 1] = (X[inner, j] - low) / (high - low)
    return inside.reshape(n, -1), within.reshape(n, -1)


@dataclass(frozen=True, slots=True)
class SplitSums:
    """Sums over the rows of one rule, weighted by its strength."""

    bins: Array
    """Products of columns in every bin of every candidate feature; shape (c, q + 1, p(p+1)/2)."""
    ramps: Array
    """The same times the position within the bin, of the inner bins; shape (c, q - 1, p(p+1)/2)."""

    @property
    def total(self) -> Array:
        """Sums over all bins; the same for every feature."""
        total: Array = self.bins[0].sum(axis=0)
        return total

    def above(self, feature: int, knots: Array, first: int, last: int) -> Array:
        """Sums weighted by the ramp from one knot of a candidate feature to another; shape (p(p+1)/2,)."""
        length = knots[last] - knots[first]
        inner = slice(first, last)
        offsets = (knots[first:last] - knots[first]) / length
        widths = np.diff(knots[first : last + 1]) / length
        rising = offsets @ self.bins[feature, first + 1 : last + 1] + widths @ self.ramps[feature, inner]
        weighted: Array = self.bins[feature, last + 1 :].sum(axis=0) + rising
        return weighted


@dataclass(frozen=True, slots=True)
class Candidates:
    """Features along which rules may be split, and their knots."""

    features: IntArray
    knots: Array
    """Ascending, the last one repeated; shape (c, q)."""
    allowed: dict[int, tuple[Ramp, ...]]
    """The only ramps of a feature, where they are prescribed."""

    def coarser(self, places: Sequence[int]) -> Candidates:
        """With some of the knots only, of features that have as many and whose ramps are not prescribed."""
        rows = [
            padded(knots[list(places)])
            if len(np.unique(knots)) > len(places) and feature not in self.allowed
            else knots
            for feature, knots in zip(self.features.tolist(), self.knots, strict=True)
        ]
        return replace(self, knots=np.stack(rows))

    def ramps(self) -> Iterator[tuple[int, int, int, Ramp]]:
        """Position of a feature among the candidates, numbers of two knots, and the ramp between them."""
        for c, (feature, knots) in enumerate(zip(self.features.tolist(), self.knots, strict=True)):
            values = np.unique(knots).tolist()
            for first, last in combinations(range(len(values)), 2):
                ramp = values[first], values[last]
                if ramp in self.allowed.get(feature, (ramp,)):
                    yield c, first, last, ramp
