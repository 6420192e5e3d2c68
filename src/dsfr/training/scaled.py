"""Scaled rows that an agent keeps while it clusters: else every step would move them to limits and scale them again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.scaling.affine import Ranges
from dsfr.training.changed_rows import LimitedRows, LogRows
from dsfr.training.rows import ArrayRows, DistinctRows, Rows

MOST_ENTRIES = 2**20
"""Numbers of a table that is kept, 8 MB; larger ones are scaled block by block in every pass."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """Rows, scaled, and what they were made of."""

    source: Rows
    ranges: Ranges
    X: Array

    def is_of(self, source: Rows, ranges: Ranges) -> bool:
        """Whether these are the same rows, scaled by the same ranges."""
        return _same_ranges(ranges, self.ranges) and _same_features(source, self.source)


def is_small(rows: Rows) -> bool:
    """Whether scaled rows may be kept."""
    return rows.n_samples * rows.n_features <= MOST_ENTRIES


def _same_features(one: Rows, other: Rows) -> bool:
    """Whether features are the same for sure: changed in the same way, of the same array in memory."""
    if isinstance(one, ArrayRows) and isinstance(other, ArrayRows):
        return one.X is other.X
    if isinstance(one, LimitedRows) and isinstance(other, LimitedRows):
        return _same_ranges(one.limits, other.limits) and _same_features(one.rows, other.rows)
    if isinstance(one, DistinctRows) and isinstance(other, DistinctRows):
        return np.array_equal(one.packed, other.packed) and _same_features(one.rows, other.rows)
    if isinstance(one, LogRows) and isinstance(other, LogRows):
        return _same_features(one.rows, other.rows)
    return False


def _same_ranges(one: Ranges, other: Ranges) -> bool:
    return np.array_equal(one.low, other.low) and np.array_equal(one.high, other.high)
