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

    @classmethod
    def joined(cls, parts: Sequence[SplitSums]) -> SplitSums:
        """Sums of the same rule along the features of several."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("bins", "ramps")))

    def above(self, feature: int, knots: Array, ends: Sequence[tuple[int, int]]) -> Array:
        """Sums weighted by ramps of a candidate feature, each from one knot to another; shape (ramps, p(p+1)/2)."""
        first, last = knots[np.array(ends, dtype=np.int64).reshape(-1, 2)].T[:, :, None]
        heights = np.clip((knots - first) / (last - first), 0.0, 1.0)
        starts = np.column_stack([np.zeros(len(heights)), heights])
        weighted: Array = starts @ self.bins[feature] + np.diff(heights, axis=1) @ self.ramps[feature]
        return weighted


def _fewer(knots: Array) -> Array:
    """Three knots of more, about the quartiles of all; two of four.

    >>> _fewer(np.arange(9.0)), _fewer(np.arange(5.0))
    (array([2., 4., 6.]), array([1., 2., 3.]))
    """
    first, last = len(knots) // 4, len(knots) - 1 - len(knots) // 4
    fewer: Array = knots[np.unique(np.linspace(first, last, 3).round().astype(np.int64))]
    return fewer


@dataclass(frozen=True, slots=True)
class Candidates:
    """Features along which rules may be split, and their knots."""

    features: IntArray
    knots: Array
    """Ascending, the last one repeated; shape (c, q)."""
    allowed: dict[int, tuple[Ramp, ...]]
    """The only ramps of a feature, where they are prescribed."""

    def each(self) -> list[Candidates]:
        """One feature at a time."""
        return [self._taken([place]) for place in range(len(self.features))]

    def without(self, feature: int) -> Candidates:
        """Without a feature."""
        return self._taken(np.flatnonzero(self.features != feature).tolist())

    def coarser(self, feature: int) -> Candidates:
        """With fewer knots of a feature; without it if it has three at most, or prescribed ramps."""
        place = self.features.tolist().index(feature)
        distinct = np.unique(self.knots[place])
        if len(distinct) <= 3 or feature in self.allowed:
            return self.without(feature)
        knots = self.knots.copy()
        knots[place] = padded(_fewer(distinct))
        return replace(self, knots=knots)

    def _taken(self, places: Sequence[int]) -> Candidates:
        return replace(self, features=self.features[list(places)], knots=self.knots[list(places)])

    @classmethod
    def joined(cls, parts: Sequence[Candidates]) -> Candidates:
        """Features of several, which prescribe the same ramps."""
        features, knots = (np.concatenate([getattr(part, name) for part in parts]) for name in ("features", "knots"))
        return cls(features, knots, parts[0].allowed)

    def ramps(self) -> Iterator[tuple[int, int, int, Ramp]]:
        """Position of a feature among the candidates, numbers of two knots, and the ramp between them."""
        for c, (feature, knots) in enumerate(zip(self.features.tolist(), self.knots, strict=True)):
            values = np.unique(knots).tolist()
            for first, last in combinations(range(len(values)), 2):
                ramp = values[first], values[last]
                if ramp in self.allowed.get(feature, (ramp,)):
                    yield c, first, last, ramp
