"""Ways to scale features and target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dsfr.core.scaling.affine import Ranges
from dsfr.training.component import Component


@dataclass(frozen=True, kw_only=True, repr=False)
class Scaling(Component):
    """How the units of features and target are agreed on."""

    argument: ClassVar[str] = "scaling"
    is_robust: ClassVar[bool] = False
    """Whether limits come from quantiles."""

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
    target : pair of float, default=None
        Lowest and highest target, where they are known. Engines on which sums alone leave the agents need it, and
        ``lower`` and ``upper``.
    """

    shorthand: ClassVar[str] = "range"

    lower: Any = None
    upper: Any = None
    target: Any = None

    def __post_init__(self) -> None:
        if self.target is not None:
            ends = _vector(self.target)
            if ends is None or len(ends) != 2 or not ends[0] < ends[1]:
                raise ValueError(
                    f"target={self.target!r} must be two finite numbers, the lowest and the highest target"
                )
            object.__setattr__(self, "target", tuple(ends.tolist()))
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
    def declared(self) -> Ranges | None:
        """The ranges that were given."""
        if self.lower is None:
            return None
        return Ranges(np.array(self.lower, dtype=np.float64), np.array(self.upper, dtype=np.float64))

    @property
    def declared_target(self) -> tuple[float, float] | None:
        """The range of the target that was given."""
        return None if self.target is None else (float(self.target[0]), float(self.target[1]))


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
