"""What people prescribe: features that no condition has, ramps of a feature, signs of slopes, names of terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.distillation.knots import N_KNOTS, padded
from dsfr.core.distillation.split_sums import Ramp


@dataclass(frozen=True, slots=True)
class Edits:
    """Prescriptions by the number of a feature."""

    unconditioned: tuple[int, ...] = ()
    """Features that no condition may have."""
    fixed: Mapping[int, tuple[Ramp, ...]] = field(default_factory=dict)
    """The only ramps of a feature, ascending."""
    signs: Mapping[int, int] = field(default_factory=dict)
    """Sign of the slope of a feature in all lines: 1 or -1, or 0 for no slope."""

    def with_fixed(self, knots: Array) -> Array:
        """Knots of all features, with the ends of prescribed ramps in place of quantiles."""
        changed = knots.copy()
        for feature, ramps in self.fixed.items():
            changed[feature] = padded(np.array([end for ramp in ramps for end in ramp]))
        return changed

    def lines(self, columns: IntArray) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
        """Columns of lines whose sign is prescribed, and columns that lines may not have."""
        places = {feature: place + 1 for place, feature in enumerate(columns.tolist())}
        known = [(places[feature], sign) for feature, sign in self.signs.items() if feature in places]
        return tuple((place, sign) for place, sign in known if sign), tuple(place for place, sign in known if not sign)


MOST_RAMPS = N_KNOTS // 2
"""Ramps of a feature that can be prescribed."""
