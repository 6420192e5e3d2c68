"""From the scale on which a model is learnt to that of the target: the inverse of a link function.

A long-tailed target that is positive may be learnt as its logarithm. Values are held within limits on the scale of
learning: labels say nothing of targets far beyond them. Ends of intervals are held where targets cannot be.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from dsfr.core.arrays import Array
from dsfr.core.scaling.affine import LARGEST_FLOAT

MOST_LOG_VARIANCE = 25.0
"""Of a logarithm: the standard deviation of the target grows no further with it."""


@dataclass(frozen=True, slots=True)
class Link:
    """``y = value``, or ``y = factor exp(value)`` where logarithms are learnt; values within ``low`` and ``high``."""

    is_log: bool = False
    factor: float = 1.0
    """Mean of the target over the exponential of the mean logarithm; 1 where targets are learnt as they are."""
    low: float = -LARGEST_FLOAT
    high: float = LARGEST_FLOAT
    floor: float = -LARGEST_FLOAT
    """No target is below; ends of intervals are held there."""
    ceiling: float = LARGEST_FLOAT

    @property
    def is_identity(self) -> bool:
        """Whether values are predictions as they are."""
        return self == Link()

    def held(self, values: Array) -> Array:
        """Values within the limits."""
        within: Array = np.clip(values, self.low, self.high)
        return within

    def learnt(self, targets: Array) -> Array:
        """Targets on the scale of learning.

        Raises
        ------
        ValueError
            If logarithms are learnt and a target is not positive.
        """
        if not self.is_log:
            return targets
        if targets.min(initial=np.inf) <= 0.0:
            raise ValueError(
                f"the model was learnt on the logarithm of the target, and {targets.min():g} is a new label: labels "
                "must be > 0; train with target=None for others"
            )
        logarithms: Array = np.log(targets)
        return logarithms

    def widened(self, targets: Array) -> Link:
        """The link with limits that hold some more targets as well."""
        values = self.learnt(targets)
        return replace(
            self,
            low=min(self.low, float(values.min(initial=np.inf))),
            high=max(self.high, float(values.max(initial=-np.inf))),
            floor=min(self.floor, float(targets.min(initial=np.inf))),
            ceiling=max(self.ceiling, float(targets.max(initial=-np.inf))),
        )

    def predictions(self, values: Array) -> Array:
        """Means of the target at values on the scale of learning."""
        held = self.held(values)
        return self.factor * np.exp(held) if self.is_log else held

    def interval(self, values: Array, half_widths: Array) -> tuple[Array, Array]:
        """Ends of intervals of values plus and minus their half widths; a prediction is never outside its own.

        The transformation is monotone: an interval on the target's scale holds a target where that of the values holds
        its value.
        """
        held, predicted = self.held(values), self.predictions(values)
        low, high = held - half_widths, held + half_widths
        if self.is_log:
            largest = np.log(LARGEST_FLOAT) - 1.0
            low, high = np.exp(low), np.exp(np.minimum(high, largest))
        low, high = np.minimum(low, predicted), np.maximum(high, predicted)
        return np.clip(low, self.floor, self.ceiling), np.clip(high, self.floor, self.ceiling)

    def deviations(self, values: Array, deviations: Array) -> Array:
        """Standard deviations of the target, from those of the values; of logarithms as in a lognormal distribution."""
        if not self.is_log:
            return deviations
        spread = np.sqrt(np.expm1(np.minimum(deviations**2, MOST_LOG_VARIANCE)))
        found: Array = self.predictions(values) * spread
        return found


def learnt_name(target_name: str, link: Link) -> str:
    """Name of what is learnt: the target, or its logarithm."""
    return f"log({target_name})" if link.is_log else target_name


def rounded_hold(link: Link, digits: int = 3) -> Link:
    """A link without a logarithm that holds predictions at readable numbers, just beyond the limits of another."""
    if link.is_identity:
        return link
    low, high = link.low, link.high
    if link.is_log:
        low, high = 0.0, float(np.exp(high))
    return Link(
        low=max(_outward(low, -1, digits), link.floor),
        high=min(_outward(high, 1, digits), link.ceiling),
        floor=link.floor,
        ceiling=link.ceiling,
    )


def _outward(value: float, sign: int, digits: int) -> float:
    """The next number of so many digits at or beyond a value."""
    if value == 0.0:
        return 0.0
    power = int(np.floor(np.log10(abs(value)))) - digits + 1
    steps = sign * int(np.ceil(sign * value / 10.0**power))
    return float(f"{steps}e{power}")


FOLLOWED = 4.0
"""Reach from which a model is so exact that it tells by itself whether targets are negative."""
UNLIKELY_NEGATIVE = 3.0
"""Labels of a normal distribution that would be negative: with fewer, that none is negative may be chance (5%)."""


def may_be_negative(ends: tuple[float, float], mean: float, deviation: float, n: float, reach: float) -> bool:
    """Whether labels that are all positive may be of a target that is not, which a nearly exact model may follow.

    Labels between 0 and 1 are shares.
    """
    may_be = ends[0] > 0.0 and ends[1] > 1.0 and reach >= FOLLOWED
    return may_be and n * float(ndtr(-mean / deviation)) < UNLIKELY_NEGATIVE


def held_link(low: float, high: float, deviation: float, reach: float = 1.0, *, is_signed: bool = False) -> Link:
    """Targets as they are, held ``reach`` deviations beyond the lowest and the highest label.

    Unless the target ``is_signed``, labels from 0 on are taken for one that is never negative, and labels between 0 and
    1 for a share, where the limits would otherwise lie beyond.
    """
    floor, ceiling = -LARGEST_FLOAT, LARGEST_FLOAT
    if low >= 0.0 and low - deviation < 0.0 and not is_signed:
        floor = 0.0
    if floor == 0.0 and high <= 1.0 < high + deviation:
        ceiling = 1.0
    beyond = reach * deviation
    return Link(low=max(low - beyond, floor), high=min(high + beyond, ceiling), floor=floor, ceiling=ceiling)


def log_link(low: float, high: float, deviation: float, log_deviation: float, reach: float = 1.0) -> Link:
    """Logarithms, held at that of ``reach`` deviations beyond the highest label, and as many of logarithms below.

    Its factor is 1: it takes the errors of a model to find it.
    """
    ceiling = 1.0 if high <= 1.0 < high + deviation else LARGEST_FLOAT
    highest = min(high + reach * deviation, ceiling)
    return Link(True, 1.0, float(np.log(low)) - reach * log_deviation, float(np.log(highest)), 0.0, ceiling)


TRUSTED, FARTHEST = 0.25, 1000.0


def reach_of(error: float, deviation: float, *, is_log: bool) -> float:
    """Deviations beyond the labels up to which predictions are followed, by the leave-one-out error.

    One, or more where the error is below a quarter of the deviation: what a model explains nearly without error, a line
    for example, is worth following. The distance grows as a ratio of variances; for logarithms as one of deviations,
    since exponentials of a line run away.
    """
    if TRUSTED * deviation >= FARTHEST * error:
        return FARTHEST
    ratio = TRUSTED * deviation / error
    return float(np.clip(ratio if is_log else ratio**2, 1.0, FARTHEST))


SHRINKAGE = 20.0
"""Labels that a factor of 1 weighs as much as: chosen on the design tables of benchmarks/tables."""


def mean_factor(product: float, square: float, n: float) -> float:
    """Least-squares factor from exponentials of leave-one-out logarithms ``e`` to targets ``y``, shrunk towards 1.

    ``product`` is ``sum y e`` and ``square`` is ``sum e^2`` over ``n`` labels. That minimises the squared error on the
    target's own scale; with few labels one long error decides it, hence the shrinkage.
    """
    if square <= 0.0:
        return 1.0
    hold = SHRINKAGE * square / n
    return float(np.clip((product + hold) / (square + hold), 0.5, 2.0))
