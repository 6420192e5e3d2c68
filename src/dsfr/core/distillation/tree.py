"""A tree of fuzzy conditions: which rule is split next, along which feature, and by which ramp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.lines import fit_lines, matrices
from dsfr.core.distillation.split_sums import Candidates, Ramp, SplitSums
from dsfr.core.features.linguistic import LinguisticRules

EQUAL = 1e-9
"""Relative difference of gains that count as equal."""

Bounds = Mapping[int, tuple[Ramp | None, Ramp | None]]
"""Condition of a rule by feature: the ramp above which it holds and the ramp below which it holds."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What rules may be split, and along what."""

    candidates: Candidates
    max_conditions: int
    least_mass: float
    """Rows that a rule has at least, by the sum of its strengths."""
    least_gain: float
    """Drop of the weighted squared distance that a split is worth at least."""


@dataclass(frozen=True, slots=True)
class Split:
    """A rule cut in two along one feature."""

    leaf: int
    feature: int
    ramp: Ramp
    gain: float
    """Drop of the weighted squared distance."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A rule while the tree grows."""

    bounds: Bounds
    sums: SplitSums | None = None
    """Sums over its rows; None before they are known."""
    prior: Array | None = None
    """Line of its parent."""

    def split(self, feature: int, ramp: Ramp, line: Array) -> tuple[Leaf, Leaf]:
        """The parts below and above a ramp."""
        low, high = self.bounds.get(feature, (None, None))
        below, above = (low, ramp), (ramp, high)
        return Leaf({**self.bounds, feature: below}, None, line), Leaf({**self.bounds, feature: above}, None, line)

    def admits(self, feature: int, ramp: Ramp, max_conditions: int) -> bool:
        """Whether both parts would be rules of at most so many conditions."""
        if len({*self.bounds, feature}) > max_conditions:
            return False
        low, high = self.bounds.get(feature, (None, None))
        return (low is None or low[1] <= ramp[0]) and (high is None or ramp[1] <= high[0])


@dataclass(frozen=True, slots=True)
class Tree:
    """Rules of a growing tree, in the order in which they are printed."""

    leaves: tuple[Leaf, ...]
    stages: tuple[tuple[Bounds, ...], ...] = (({},),)
    """Conditions of all rules: of one rule, of two and so on, up to those of the leaves."""
    splits: tuple[int, ...] = ()
    """Number of the rule that was split, for every split; its parts take its place."""

    @classmethod
    def root(cls) -> Tree:
        """One rule without conditions."""
        return cls((Leaf({}),))

    def with_sums(self, numbers: Sequence[int], sums: Sequence[SplitSums]) -> Tree:
        """The same rules, of which some now have sums."""
        known = dict(zip(numbers, sums, strict=True))
        leaves = (replace(leaf, sums=known.get(number, leaf.sums)) for number, leaf in enumerate(self.leaves))
        return replace(self, leaves=tuple(leaves))

    def split(self, split: Split) -> Tree:
        """The tree with one rule replaced by its two parts."""
        leaf = self.leaves[split.leaf]
        assert leaf.sums is not None
        line, _ = fit_lines(_matrix(leaf.sums.total), leaf.prior)
        parts = leaf.split(split.feature, split.ramp, line)
        leaves = (*self.leaves[: split.leaf], *parts, *self.leaves[split.leaf + 1 :])
        conditions = tuple(leaf.bounds for leaf in leaves)
        return Tree(leaves, (*self.stages, conditions), (*self.splits, split.leaf))

    def groups(self, n_rules: int) -> list[list[int]]:
        """Numbers of the leaves that make up each rule of the stage of so many rules."""
        grouped = [[number] for number in range(len(self.leaves))]
        for place in reversed(self.splits[n_rules - 1 :]):
            grouped[place : place + 2] = [grouped[place] + grouped[place + 1]]
        return grouped

    def best_split(self, growth: Growth) -> Split | None:
        """The split of the largest gain that keeps to shared terms; None if none is worth it."""
        used = ramps_by_feature([leaf.bounds for leaf in self.leaves])
        splits = [_best_of_leaf(number, leaf, growth, used) for number, leaf in enumerate(self.leaves)]
        found = [split for split in splits if split is not None]
        most = max((split.gain for split in found), default=0.0)
        return next((split for split in found if split.gain >= most * (1.0 - EQUAL)), None)

    def rules(self, n_features: int) -> LinguisticRules:
        """The conditions as rules over shared terms."""
        return rules_of([leaf.bounds for leaf in self.leaves], n_features)


def _best_of_leaf(number: int, leaf: Leaf, growth: Growth, used: dict[int, list[Ramp]]) -> Split | None:
    candidates = growth.candidates
    possible = [
        (c, first, last, ramp)
        for c, first, last, ramp in candidates.ramps()
        if leaf.admits(int(candidates.features[c]), ramp, growth.max_conditions)
        and keeps_terms(ramp, used.get(int(candidates.features[c]), []))
    ]
    if leaf.sums is None or not possible:
        return None
    total = leaf.sums.total
    above = np.stack([leaf.sums.above(c, candidates.knots[c], first, last) for c, first, last, _ in possible])
    # A part without rows has sums of rounding errors, which no line fits.
    is_heavy = np.minimum(above[:, 0], total[0] - above[:, 0]) >= growth.least_mass
    if not is_heavy.any():
        return None
    above, possible = above[is_heavy], list(compress(possible, is_heavy))
    line, whole = fit_lines(_matrix(total), leaf.prior)
    gains = whole - sum(fit_lines(_matrix(part), line)[1] for part in (above, total - above))
    # The first of equal ones, so that the order in which sums were added does not decide.
    best = int(np.flatnonzero(gains >= gains.max() * (1.0 - EQUAL))[0])
    c, _, _, ramp = possible[best]
    gain = float(gains[best])
    return Split(number, int(candidates.features[c]), ramp, gain) if gain > growth.least_gain else None


def _matrix(triangles: Array) -> Array:
    size = int(np.sqrt(2 * triangles.shape[-1]))
    return matrices(triangles, size)


def keeps_terms(ramp: Ramp, used: Sequence[Ramp]) -> bool:
    """Whether a ramp is one of those that a feature has already, or overlaps none of them."""
    return ramp in used or all(ramp[1] <= start or ramp[0] >= end for start, end in used)


def ramps_by_feature(rules: Sequence[Bounds]) -> dict[int, list[Ramp]]:
    """All ramps that conditions use, ascending, by feature."""
    found: dict[int, set[Ramp]] = {}
    for bounds in rules:
        for feature, ends in bounds.items():
            found.setdefault(feature, set()).update(ramp for ramp in ends if ramp is not None)
    return {feature: sorted(ramps) for feature, ramps in sorted(found.items())}


def rules_of(rules: Sequence[Bounds], n_features: int) -> LinguisticRules:
    """Conditions as runs of terms."""
    ramps = ramps_by_feature(rules)
    first, last = np.zeros((len(rules), n_features)), np.zeros((len(rules), n_features))
    for feature, ordered in ramps.items():
        last[:, feature] = len(ordered)
    for k, bounds in enumerate(rules):
        for feature, (low, high) in bounds.items():
            first[k, feature] = 0 if low is None else ramps[feature].index(low) + 1
            last[k, feature] = len(ramps[feature]) if high is None else ramps[feature].index(high)
    listed = [(float(feature), *ramp) for feature, ordered in ramps.items() for ramp in ordered]
    columns = np.array(listed).reshape(-1, 3).T
    return LinguisticRules(first, last, *(np.ascontiguousarray(column) for column in columns))


def bounds_of(rules: LinguisticRules) -> list[Bounds]:
    """Runs of terms as conditions; the inverse of `rules_of`."""
    found: list[Bounds] = []
    for k in range(rules.n_rules):
        bounds = {}
        for feature, (first, last) in rules.conditions(k).items():
            ramps = rules.ramps_of(feature)
            bounds[feature] = (ramps[first - 1] if first else None, ramps[last] if last < len(ramps) else None)
        found.append(bounds)
    return found
