"""The student: lines of short rules from the sums of a grown tree, how many rules it takes, and rounded numbers.

The sums of products of the columns ``strength x (1, features)`` of all leaves determine the lines and the distance to
the teacher of every smaller tree on the way, because the strength of a rule is the sum of the strengths of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.distillation.lines import LineRules, fit_lines, plain_prior
from dsfr.core.distillation.rounding import power_below, rounded
from dsfr.core.distillation.shorter import LineSystem, shorter_lines
from dsfr.core.distillation.tree import INDICATED, Bounds, Tree, ramps_by_feature, rules_of
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.prediction.bounds import MAX_ERROR
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.shared_slopes import n_terms
from dsfr.core.scaling.affine import MAX_SCALED, Ranges

ROUNDING_PRICE = 0.001
"""Part of the teacher's mean squared error that the rounding of a line may add to it, about."""
EQUAL = 1e-9
"""Difference of expenses that count as equal."""
SURE_DIGITS = 15
"""Digits of a decimal number that a 64-bit float keeps; those beyond may come of rounding."""
LIMIT_DIGITS = 50.0
"""Steps of the rounding, at least, between the limits of a feature."""


@dataclass(frozen=True, slots=True)
class JointSums:
    """Products of the columns of all rules with each other and with the teacher's predictions, over all rows."""

    gram: Array
    """Shape (k, p, k, p), with p columns per rule: its strength, then its strength times each feature of lines."""
    moment: Array
    """Shape (k, p)."""
    square: float
    """Sum of the squared predictions of the teacher."""

    @classmethod
    def of(cls, matrix: Array, n_rules: int) -> JointSums:
        """From the matrix of products of all columns, the last one being the teacher's predictions."""
        p = (len(matrix) - 1) // n_rules
        shape = (n_rules, p, n_rules, p)
        return cls(matrix[:-1, :-1].reshape(shape), matrix[:-1, -1].reshape(n_rules, p), float(matrix[-1, -1]))

    def merged(self, groups: Sequence[Sequence[int]]) -> JointSums:
        """Sums of fewer rules, each the union of a group."""
        member = np.zeros((len(groups), len(self.moment)))
        for place, group in enumerate(groups):
            member[place, list(group)] = 1.0
        gram = np.einsum("ak,kplq,bl->apbq", member, self.gram, member, optimize=True)
        return JointSums(gram, member @ self.moment, self.square)

    def local(self, rule: int) -> Array:
        """Sums weighted by the strength of one rule, as `fit_lines` takes them, without the square of the teacher."""
        p = self.moment.shape[1]
        sums = np.zeros((p + 1, p + 1))
        sums[:-1, :-1] = self.gram[rule].sum(axis=1)
        sums[:-1, -1] = sums[-1, :-1] = self.moment[rule]
        return sums

    @property
    def masses(self) -> Array:
        """Sum of the strengths of every rule; (k,)."""
        masses: Array = self.gram[:, 0, :, 0].sum(axis=1)
        return masses

    def distance(self, lines: Array) -> float:
        """Mean squared distance of the predictions of these lines to the teacher's."""
        values = lines.ravel()
        fitted = float(values @ self.gram.reshape(len(values), -1) @ values)
        left = self.square - 2.0 * float((lines * self.moment).sum()) + fitted
        return max(left, 0.0) / float(self.masses.sum())


@dataclass(frozen=True, slots=True)
class Stage:
    """Rules of one number, with the lines that are worth their length."""

    lines: Array
    """Shape (k, p)."""
    distance: float
    """Mean squared distance to the teacher."""
    price: float
    """Expected increase of the error."""
    to_read: int
    """Conditions, terms of lines and constants; terms that are the same in all rules once."""
    to_look_up: int = 0
    """Numbers in the meanings of words: both ends of every ramp."""
    limits: Ranges | None = None
    """Between which values lines follow features; None: wherever the teacher does."""

    def expense(self, tolerance: float) -> float:
        """Logarithm of the expected error, plus the tolerance for everything that there is to read or look up."""
        return float(np.log1p(self.price)) + tolerance * (self.to_read + self.to_look_up)


def stages_of(
    tree: Tree,
    sums: JointSums,
    rules: LineRules,
    conditions: Sequence[int],
    error: float,
    tolerance: float,
    known: Sequence[Stage] = (),
    plane: JointSums | None = None,
) -> list[Stage]:
    """For every number of rules, the lines of the least expense; ``conditions`` are the numbers of these.

    ``known`` are the first stages, where the tree was smaller before; ``plane`` are other sums of one rule, where its
    lines have limits of their own.
    """
    priors = _priors(tree, sums)
    found = list(known)
    words_of = list(zip(conditions, map(_n_ends, tree.stages), strict=True))
    for k, words in enumerate(words_of[len(known) :], start=len(known) + 1):
        groups = tree.groups(k)
        merged = plane if k == 1 and plane is not None else sums.merged(groups)
        system = _system(merged, [priors.get(tuple(group)) for group in groups], rules)
        shapes, lines = zip(*shorter_lines(system, rules), strict=True)
        stages = [_stage(merged, own, words, error) for own in lines]
        best = cheapest(stages, tolerance)
        terms = next(terms for terms, stage in zip(shapes, stages, strict=True) if stage is best)
        found.append(_stage(merged, system.solved(terms), words, error))
    return found


def _system(merged: JointSums, parents: Sequence[Array | None], rules: LineRules) -> LineSystem:
    sums = [merged.local(k) for k in range(len(parents))]
    pairs = zip(sums, parents, strict=True)
    priors = [None if line is None else plain_prior(local, line, rules.categories) for local, line in pairs]
    return LineSystem.of(sums, priors)


def _n_ends(stage: Sequence[Bounds]) -> int:
    """Numbers that say what the words of the conditions mean; those of indicators need none."""
    ramps = [ramp for found in ramps_by_feature(stage).values() for ramp in found]
    return 2 * sum(ramp != INDICATED for ramp in ramps)


def _stage(merged: JointSums, lines: Array, words: tuple[int, int], error: float) -> Stage:
    """Lines with their price; ``words`` are the numbers of conditions, and of ends of ramps."""
    (n_conditions, n_ends), distance = words, merged.distance(lines)
    return Stage(lines, distance, price_of(distance, error), n_conditions + n_terms(lines) + len(lines), n_ends)


def cheapest(stages: Sequence[Stage], tolerance: float) -> Stage:
    """The stage of the least expense; of equal ones, to rounding, that with less to read."""
    least = min(stage.expense(tolerance) for stage in stages)
    equal = (stage for stage in stages if stage.expense(tolerance) <= least + EQUAL)
    return min(equal, key=lambda stage: stage.to_read + stage.to_look_up)


def _priors(tree: Tree, sums: JointSums) -> dict[tuple[int, ...], Array]:
    """Line of the parent of every rule of every stage, by the leaves that make up the rule."""
    priors: dict[tuple[int, ...], Array] = {}
    for n_rules, place in enumerate(tree.splits, start=1):
        before, after = tree.groups(n_rules), tree.groups(n_rules + 1)
        parent = tuple(before[place])
        line, _ = fit_lines(sums.merged(before).local(place), priors.get(parent))
        priors[tuple(after[place])] = priors[tuple(after[place + 1])] = line
    return priors


def price_of(distance: float, error: float) -> float:
    """Expected increase of the root mean squared error, as a part of the teacher's.

    ``distance`` is the mean squared distance to the teacher, ``error`` the teacher's mean squared error. The distance
    is taken to be uncorrelated with the teacher's errors.
    """
    return float(np.sqrt(1.0 + distance / error)) - 1.0


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
