"""Affine scaling: features to [-1, 1], targets to mean 0 and deviation 1, from ranges and moments that merge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import Array, row_blocks

LARGEST_FLOAT = float(np.finfo(np.float64).max)
"""Stands for infinity in the range of an empty table, because messages carry finite numbers only."""

FOLDED_ROWS = 64
"""Rows that are reduced side by side."""
MAX_VALUE = 1e100
"""Largest absolute value of a feature or target: products with a scaled row can still be squared."""
MIN_HALF_WIDTH = 1e-100
"""Shorter ranges count as constant columns: slopes of targets of size `MAX_VALUE` stay finite."""
MAX_SCALED = 1e100
"""Bound of scaled values, so that what is computed from them stays finite."""
ROUNDING = 1e-14
"""Part of the mean square of values below which their variance is rounding."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Smallest and largest value of every column; merging takes the wider of both."""

    low: Array
    high: Array

    @classmethod
    def none(cls, n_columns: int) -> Ranges:
        """Ranges of an empty table: the neutral element of merging."""
        return cls(np.full(n_columns, LARGEST_FLOAT), np.full(n_columns, -LARGEST_FLOAT))

    @classmethod
    def of(cls, X: Array) -> Ranges:
        """Ranges of the columns of ``X``; an empty table gives the neutral element of merging."""
        if len(X) == 0:
            return cls.none(X.shape[1])
        folds = len(X) // FOLDED_ROWS
        if folds > 1 and X.flags.c_contiguous:
            # Reducing many rows side by side gives long inner loops, at which numpy is fast.
            head = X[: folds * FOLDED_ROWS].reshape(folds, -1)
            ends = np.concatenate([head.min(axis=0), head.max(axis=0)]).reshape(-1, X.shape[1])
            X = np.concatenate([ends, X[folds * FOLDED_ROWS :]])
        return cls(X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64))

    def clip(self, X: Array) -> Array:
        """Clip every column to its range."""
        clipped: Array = np.clip(X, self.low, self.high)
        return clipped

    def stretched(self, stretch: Array) -> Ranges:
        """Ranges that scale features to ``stretch`` times their scaled values, about the same midpoints."""
        half = self.half_widths / stretch
        return Ranges(self.midpoints - half, self.midpoints + half)

    def widened(self, share: float) -> Ranges:
        """Ranges that go on at both ends by a share of their length, as far as floats do."""
        largest = LARGEST_FLOAT / 2.0
        more = np.minimum(self.half_widths, largest / max(2.0 * share, 1.0)) * (2.0 * share)
        return Ranges(np.maximum(self.low, -largest) - more, np.minimum(self.high, largest) + more)

    def __or__(self, other: Ranges) -> Ranges:
        return Ranges(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    @property
    def midpoints(self) -> Array:
        """Midpoint of each range, computed without overflow."""
        return self.low / 2 + self.high / 2

    @property
    def half_widths(self) -> Array:
        """Half the length of each range; 1 for a constant column, which then scales to 0 instead of 0/0.

        Ranges below `MIN_HALF_WIDTH` count as constant.
        """
        half = self.high / 2 - self.low / 2
        return np.where(half > MIN_HALF_WIDTH, half, 1.0)


def scale_features(X: Array, ranges: Ranges) -> Array:
    """Columns mapped linearly so that their range becomes [-1, 1]; values outside the range scale to outside.

    Scaled values are clipped at `MAX_SCALED`.
    """
    with np.errstate(over="ignore"):
        scaled = (X - ranges.midpoints) / ranges.half_widths
    return np.clip(scaled, -MAX_SCALED, MAX_SCALED, out=scaled)


def shift_and_unit(ranges: Ranges | None, n_columns: int) -> tuple[Array, Array]:
    """What scaling subtracts and divides by; 0 and 1 without ranges."""
    if ranges is None:
        return np.zeros(n_columns), np.ones(n_columns)
    return ranges.midpoints, ranges.half_widths


def scaled_blocks(X: Array, ranges: Ranges | None) -> Iterator[Array]:
    """Iterate over blocks of rows, scaled if ``ranges`` are given."""
    for block in row_blocks(len(X)):
        yield X[block] if ranges is None else scale_features(X[block], ranges)


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sum and sum of squares of values about a shared origin, in a shared unit; adding merges.

    About 0, the variance of targets like 1e9 +/- 1 would be lost to rounding; in their own unit, squares of targets
    like 1e200 would overflow. Origin and unit are the middle and half the length of the values' range.
    """

    n: float
    total: float
    square: float
    origin: float
    unit: float

    @classmethod
    def of(cls, values: Array, origin: float, unit: float, weights: Array | None = None) -> Moments:
        """Moments of ``values`` about ``origin`` in units of ``unit``; each counts ``weights`` times."""
        scaled = (values - origin) / unit
        if weights is None:
            return cls(float(len(values)), float(scaled.sum()), float(scaled @ scaled), origin, unit)
        return cls(float(weights.sum()), float(weights @ scaled), float(weights @ scaled**2), origin, unit)

    def __add__(self, other: Moments) -> Moments:
        if (self.origin, self.unit) != (other.origin, other.unit):
            raise ValueError("moments with different origins or units do not add: agree on one of each")
        return replace(self, n=self.n + other.n, total=self.total + other.total, square=self.square + other.square)

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return self.origin + self.unit * (self.total / self.n)

    @property
    def varies(self) -> bool:
        """Whether the values differ."""
        return self._variance > ROUNDING * self.square / max(self.n, 1.0)

    @property
    def deviation(self) -> float:
        """Population standard deviation; 1 for constant values, so that dividing by it is safe."""
        return self.unit * float(self._variance**0.5) if self.varies else 1.0

    @property
    def _variance(self) -> float:
        """In squares of the unit; rounding may make it negative."""
        return self.square / self.n - (self.total / self.n) ** 2
