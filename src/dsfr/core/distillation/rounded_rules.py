"""Short rules in the units of the data, with as many digits as matter: the numbers that are printed are the model's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.distillation.joint_sums import JointSums
from dsfr.core.distillation.rounding import power_below, rounded
from dsfr.core.distillation.student import Stage
from dsfr.core.distillation.tree import Bounds, rules_of
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.prediction.bounds import MAX_ERROR
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import MAX_SCALED, Ranges

ROUNDING_PRICE = 0.001
"""Part of the teacher's mean squared error that the rounding of a line may add to it, about."""
SURE_DIGITS = 15
"""Digits of a decimal number that a 64-bit float keeps; those beyond may come of rounding."""
LIMIT_DIGITS = 50.0
"""Steps of the rounding, at least, between the limits of a feature."""


@dataclass(frozen=True, slots=True)
class Units:
    """Scaling of features and target, and limits of the features, of the teacher."""

    ranges: Ranges
    target_mean: float
    target_scale: float
    limits: Ranges | None


def rounded_predictor(
    conditions_of: Sequence[Bounds], sums: JointSums, stage: Stage, columns: IntArray, units: Units, error: float
) -> Predictor:
    """The rules in the units of the data, with as many digits as matter; rules of the same line become one."""
    lines = stage.lines
    n_features, shares = len(units.ranges.low), sums.masses / sums.masses.sum()
    weights = list(_rounded_lines([sums.local(k) for k in range(len(lines))], lines, columns, units, error))
    conditions: list[Bounds] = list(conditions_of)
    merged_shares = shares.tolist()
    while (pair := _same_line(conditions, weights)) is not None:
        i, j, joined = pair
        conditions[i], merged_shares[i] = joined, merged_shares[i] + merged_shares[j]
        del conditions[j], weights[j], merged_shares[j]
    basis = rules_of(conditions, n_features)
    limits = _limits(np.array(weights), stage.limits, units.limits)
    return as_predictor(basis, np.concatenate(weights), np.array(merged_shares), limits)


def rounded_mean(n_features: int, units: Units, error: float | None) -> Predictor:
    """One rule without conditions that predicts the mean of the target, with as many digits as matter.

    Without an error, they all do: those of decimal numbers that 64-bit floats keep.
    """
    digits = power_below(abs(units.target_mean)) - SURE_DIGITS + 1
    power = digits if error is None else power_below(_step(np.zeros(1), units, error))
    weights = np.append(rounded(units.target_mean, power), np.zeros(n_features))
    return as_predictor(LinguisticRules.always(n_features), weights, np.ones(1), None)


def as_predictor(basis: LinguisticRules, weights: Array, shares: Array, limits: Ranges | None) -> Predictor:
    """A predictor whose numbers are in the units of the data: nothing is scaled."""
    ones = np.ones(basis.n_features)
    return Predictor(Ranges(-ones, ones), basis, weights, 0.0, 1.0, np.minimum(shares, 1.0), limits)


def _rounded_lines(
    sums: Sequence[Array], lines: Array, columns: IntArray, units: Units, error: float
) -> Iterator[Array]:
    """Constant and slopes of every rule for all features, in the units of the data."""
    middle, half = units.ranges.midpoints[columns], units.ranges.half_widths[columns]
    steps = [_step(line, units, error) for line in lines]
    slopes = _rounded_slopes(sums, units.target_scale * lines[:, 1:] / half, half, steps)
    for local, kept, step in zip(sums, slopes, steps, strict=True):
        # The line then passes through the mean of the teacher's predictions on the rows of the rule.
        level = units.target_mean + units.target_scale * float(local[0, -1] / local[0, 0])
        means = middle + half * local[0, 1:-1] / local[0, 0]
        weights = np.zeros(1 + len(units.ranges.low))
        weights[0] = rounded(level - float(kept @ means), power_below(step))
        weights[1 + columns] = kept
        yield weights


def _step(line: Array, units: Units, error: float) -> float:
    """How far the rounding of one number may move predictions, about, in the units of the target."""
    n_numbers = np.count_nonzero(line[1:]) + 1
    return float(np.sqrt(12.0 * ROUNDING_PRICE * error / n_numbers)) * units.target_scale


def _rounded_slopes(sums: Sequence[Array], slopes: Array, half: Array, steps: Sequence[float]) -> Array:
    """Slopes with the digits that matter on the rows of their rules; those of all rules with the most; (k, u)."""
    same, found = (slopes == slopes[0]).all(axis=0), np.zeros_like(slopes)
    spreads = np.stack([half * _deviations(local) for local in sums])
    for k, j in zip(*np.nonzero(slopes), strict=True):
        rules = [i for i in (range(len(sums)) if same[j] else [k]) if spreads[i, j] > 0.0]
        powers = [power_below(float(steps[i] / spreads[i, j])) for i in rules]
        found[k, j] = rounded(float(slopes[k, j]), min(powers)) if powers else 0.0
    return found


def _deviations(local: Array) -> Array:
    """Standard deviations of the columns of lines over the rows of a rule."""
    means = local[0, 1:-1] / local[0, 0]
    deviations: Array = np.sqrt(np.maximum(np.diag(local)[1:-1] / local[0, 0] - means**2, 0.0))
    return deviations


def _same_line(conditions: Sequence[Bounds], weights: Sequence[Array]) -> tuple[int, int, Bounds] | None:
    """Two rules of the same line that are neighbors along one feature, and the conditions of both together."""
    for i, first in enumerate(conditions):
        for j, second in enumerate(conditions):
            if i == j or not np.array_equal(weights[i], weights[j]):
                continue
            differing = [f for f in {*first, *second} if first.get(f) != second.get(f)]
            if len(differing) == 1 and (joined := _joined(first, second, differing[0])) is not None:
                return i, j, joined
    return None


def _joined(first: Bounds, second: Bounds, feature: int) -> Bounds | None:
    low, ends = first.get(feature, (None, None))
    starts, high = second.get(feature, (None, None))
    if ends is None or ends != starts:
        return None
    others = {f: bounds for f, bounds in first.items() if f != feature}
    return others if low is None and high is None else {**others, feature: (low, high)}


def _limits(weights: Array, chosen: Ranges | None, widest: Ranges | None) -> Ranges | None:
    """Limits of the features: those that were chosen for lines, of the features that lines have; else the widest."""
    if widest is None:
        return _computable_limits(weights)
    limits, used = rounded_limits(widest), weights[:, 1:].any(axis=0)
    if chosen is None:
        return limits
    low, high = used & (chosen.low > widest.low), used & (chosen.high < widest.high)
    return Ranges(np.where(low, chosen.low, limits.low), np.where(high, chosen.high, limits.high))


def _computable_limits(weights: Array) -> Ranges | None:
    """Limits beyond which lines are too large to compute with; None where no value of a feature makes them so."""
    steepest = np.abs(weights[:, 1:]).max(axis=0)
    if (steepest <= MAX_ERROR / MAX_SCALED).all():
        return None
    powers = [power_below(MAX_ERROR / slope) if slope > 0.0 else 308 for slope in steepest.tolist()]
    farthest = np.array([min(float(f"1e{power}"), MAX_SCALED) for power in powers])
    return Ranges(-farthest, farthest)


def rounded_limits(limits: Ranges) -> Ranges:
    """Limits rounded outwards."""
    low, high = limits.low.copy(), limits.high.copy()
    for j, (a, b) in enumerate(zip(limits.low.tolist(), limits.high.tolist(), strict=True)):
        power = power_below(b / LIMIT_DIGITS - a / LIMIT_DIGITS)
        if power > -300:
            low[j], high[j] = _outwards(a, power, -1.0), _outwards(b, power, 1.0)
    return Ranges(low, high)


def _outwards(value: float, power: int, sign: float) -> float:
    near = rounded(value, power)
    return near if sign * (near - value) >= 0.0 else rounded(value + sign * 10.0**power, power)
