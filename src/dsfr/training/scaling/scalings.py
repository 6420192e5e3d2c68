"""Ways to scale features and target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dsfr.core.scaling.affine import Ranges
from dsfr.training.component import Component, Rule, one_of, only, parameter


@dataclass(frozen=True, kw_only=True, repr=False)
class Scaling(Component):
    """How the units of features and target are agreed on."""

    argument: ClassVar[str] = "scaling"
    is_robust: ClassVar[bool] = False
    """Whether limits come from quantiles."""

    @property
    def keeps_target(self) -> bool:
        """Whether targets stay in their own units."""
        return False

    @property
    def declared(self) -> Ranges | None:
        """Ranges of the features that are known beforehand."""
        return None

    @property
    def declared_target(self) -> tuple[float, float] | None:
        """Range of the target that is known beforehand."""
        return None


@dataclass(frozen=True, kw_only=True, repr=False)
class RangeScaling(Scaling):
    """Features from their lowest to their highest value become -1 to 1.

    Parameters
    ----------
    lower, upper : sequence of float, default=None
        Lowest and highest value of every feature, where these are known and should not be asked from agents.
    target : {"standard", "raw"}, default="standard"
        Targets minus their mean, over their standard deviation, so that the ridge means the same for prices and for
        decibels; or as they are, as in the paper.
    target_range : pair of float, default=None
        Lowest and highest target, where they are known. Engines on which sums alone leave the agents need it, and
        ``lower`` and ``upper``.
    """

    shorthand: ClassVar[str] = "range"

    lower: Any = None
    upper: Any = None
    target: str = parameter("standard", one_of("standard", "raw"))

    target_range: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target_range is not None:
            ends = _vector(self.target_range)
            if ends is None or len(ends) != 2 or not ends[0] < ends[1]:
                raise ValueError(
                    f"target_range={self.target_range!r} must be two finite numbers, the lowest and the highest target"
                )
            object.__setattr__(self, "target_range", tuple(ends.tolist()))
        bounds = self.lower, self.upper
        if all(bound is None for bound in bounds):
            return
        low, high = (_vector(bound) for bound in bounds)
        if low is None or high is None or low.shape != high.shape or not (low <= high).all():
            raise ValueError(
                f"lower={self.lower!r} and upper={self.upper!r} must be the lowest and the highest value of every "
                "feature, finite and with lowest <= highest, or both None"
            )
        object.__setattr__(self, "lower", tuple(low.tolist()))
        object.__setattr__(self, "upper", tuple(high.tolist()))

    @property
    def keeps_target(self) -> bool:
        """Whether targets stay in their own units."""
        return self.target == "raw"

    def accepts(self) -> Mapping[str, Rule]:
        """With raw targets nothing whose prior is for targets of deviation 1."""
        if not self.keeps_target:
            return {}
        why = "priors of the weights are for targets of deviation 1"
        without = {name: only(None, because=why) for name in ("tune", "relevance")}
        return {**without, "n_models": only(1, because=why), "uncertainty": only(False, because=why)}

    @property
    def declared(self) -> Ranges | None:
        """The ranges that were given."""
        if self.lower is None:
            return None
        return Ranges(np.array(self.lower, dtype=np.float64), np.array(self.upper, dtype=np.float64))

    @property
    def declared_target(self) -> tuple[float, float] | None:
        """The range of the target that was given."""
        ends = self.target_range
        return None if ends is None else (float(ends[0]), float(ends[1]))


@dataclass(frozen=True, kw_only=True, repr=False)
class RobustScaling(Scaling):
    """Scaling for tables with a few odd rows: limits from quantiles, units are standard deviations within them.

    Features are cut off as far beyond the quantiles 1/n and 1 - 1/n (n labels: there, less than one label is expected)
    as these are apart, and targets at ``sqrt(n/2)`` interquartile ranges from the quartiles. Quantiles are found by
    counting, in five to thirteen more rounds (up to 26 if a value is 1e12 times as far off as others).
    """

    shorthand: ClassVar[str] = "robust"
    is_robust: ClassVar[bool] = True


def _vector(bound: Any) -> Any:
    """A finite vector of numbers, None if it is none."""
    try:
        vector = np.asarray(bound, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return vector if vector.ndim == 1 and len(vector) and np.isfinite(vector).all() else None
