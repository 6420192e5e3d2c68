"""What agents must know of rules and of their lines: conditions, and the features of lines."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import IntArray
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.scaling.affine import Ranges
from dsfr.storage.bundles import Bundle
from dsfr.training.tasks.declaration import Field, Fields, Rule, array, at_least, not_below, optional, within
from dsfr.training.tasks.fields import RANGES
from dsfr.training.tasks.messages import pack
from dsfr.training.tasks.symbols import Sizes, size_of


def _are_rules(_: npt.NDArray[Any], bundle: Bundle, __: Sizes) -> bool:
    try:
        LinguisticRules.of_arrays(bundle)
    except ValueError:
        return False
    return True


def below(symbol: str) -> Rule:
    """Numbers of things of which there are so many, ascending, none twice."""

    def holds(values: npt.NDArray[Any], _: Bundle, sizes: Sizes) -> bool:
        size = size_of(symbol, sizes)
        return size is not None and values[0] >= 0 and values[-1] < size and bool((np.diff(values) > 0).all())

    return Rule(f"ascending numbers from 0 to below {symbol}", holds)


CONDITIONS: Fields = {
    "first_terms": array("k", "d", rules=(at_least(0.0),)),
    "last_terms": array("k", "d", rules=(at_least(0.0),)),
    "ramp_features": array("v", rules=(at_least(0.0),)),
    "ramp_starts": array("v", rules=(within(-1e101, 1e101),)),
    "ramp_ends": array("v", rules=(within(-1e101, 1e101), Rule("rules over shared terms", _are_rules))),
}
LINE_FEATURES: Fields = {**RANGES, "line_features": Field(("u",), (below("d"),), "int64")}
"""Features of lines, and the ranges that they are scaled by."""
LINE_LIMITS: Fields = {
    "line_low": optional(array("d")),
    "line_high": replace(array("d", rules=(not_below("line_low"),)), beside="line_low"),
}
"""Between which values lines follow the features; those of all features."""


def limits_in(broadcast: Bundle) -> Ranges | None:
    """The limits of a broadcast, if it has any."""
    return Ranges(broadcast["line_low"], broadcast["line_high"]) if "line_low" in broadcast else None


@dataclass(frozen=True, slots=True)
class Columns:
    """Features of the lines, and how all features are scaled."""

    features: IntArray
    ranges: Ranges

    @property
    def n_features(self) -> int:
        """Number of all features."""
        return len(self.ranges.low)

    def message(self) -> Bundle:
        """What agents must know."""
        return {**pack(self.ranges), "line_features": self.features}
