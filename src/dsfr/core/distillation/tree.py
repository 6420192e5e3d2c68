"""A tree of fuzzy conditions: which rule is split next, along which feature, and by which ramp."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.lines import fit_lines, matrices
from dsfr.core.distillation.split_sums import Candidates, Ramp, SplitSums
from dsfr.core.features.linguistic import LinguisticRules

INDICATED = (0.0, 1.0)
"""The ramp of an indicator."""
LEAST_LEVEL = 0.5
"""A level with a smaller sum of strengths in a rule does not occur there."""
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
    categories: tuple[tuple[int, ...], ...] = ()
    """Features that indicate all levels of one category: a condition on any of them is one on the category."""

    def n_conditions(self, features: Collection[int]) -> int:
        """Number of features with conditions, those of one category counted once."""
        owners = {feature: levels for levels in self.categories for feature in levels}
        return len({owners.get(feature, feature) for feature in features})


@dataclass(frozen=True, slots=True)
class Split:
    """A rule cut in two along one feature, or between two groups of levels of a category."""

    leaf: int
    parts: tuple[Bounds, Bounds]
    """Conditions of both parts."""
    gain: float
    """Drop of the weighted squared distance."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A possible split of a rule."""

    parts: tuple[Bounds, Bounds]
    along: tuple[int, Ramp] | None
    """The feature and its ramp; None between groups of levels."""
    gain: float


@dataclass(frozen=True, slots=True)
class Leaf:
    """A rule while the tree grows."""

    bounds: Bounds
    sums: SplitSums | None = None
    """Sums over its rows; None before they are known."""
    prior: Array | None = None
    """Line of its parent."""
    candidates: Candidates | None = None
    """What its sums are of; before they are known, those of its parent."""
    cuts: tuple[Cut, ...] | None = None
    """Its possible splits; None before they are evaluated."""
    is_closed: bool = False
    """Whether it is not to be split, because agents do not give its sums."""
    gains: Mapping[int, float] = field(default_factory=dict)
    """Largest gain of the cuts of its parent along every feature that was tried."""
    is_piecewise: bool = False
    """Whether its sums, or before they are known those of its parent, were given feature by feature."""

    def parts(self, feature: int, ramp: Ramp) -> tuple[Bounds, Bounds]:
        """Conditions of the parts below and above a ramp."""
        low, high = self.bounds.get(feature, (None, None))
        return {**self.bounds, feature: (low, ramp)}, {**self.bounds, feature: (ramp, high)}

    def group_parts(self, groups: tuple[Sequence[int], Sequence[int]]) -> tuple[Bounds, Bounds]:
        """Conditions of the parts that have a level of the first group, and one of the second.

        Every row has one level, so that having one of a group is having none of the other.
        """
        one, other = ({**self.bounds, **dict.fromkeys(group, (None, INDICATED))} for group in reversed(groups))
        return one, other

    def admits(self, feature: int, ramp: Ramp) -> bool:
        """Whether a ramp lies where the conditions on its feature hold fully."""
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

    def with_sums(
        self, numbers: Sequence[int], sums: Sequence[SplitSums], candidates: Candidates, *, is_piecewise: bool = False
    ) -> Tree:
        """The same rules, of which some now have sums."""
        leaves = list(self.leaves)
        for number, found in zip(numbers, sums, strict=True):
            leaves[number] = replace(
                leaves[number], sums=found, candidates=candidates, is_piecewise=is_piecewise, cuts=None
            )
        return replace(self, leaves=tuple(leaves))

    def closed(self, number: int) -> Tree:
        """The same rules, of which one is not to be split."""
        leaf = replace(self.leaves[number], sums=None, cuts=None, is_closed=True)
        return replace(self, leaves=(*self.leaves[:number], leaf, *self.leaves[number + 1 :]))

    def refused(self, split: Split) -> Tree:
        """The same rules, after agents have refused one of the parts of a split: it is not proposed again."""
        leaf = self.leaves[split.leaf]
        changed = [j for j, bounds in split.parts[0].items() if leaf.bounds.get(j) != bounds]
        if len(changed) > 1 or leaf.candidates is None:
            return self.closed(split.leaf)
        left = leaf.candidates.coarser(changed[0])
        if not len(left.features):
            return self.closed(split.leaf)
        leaf = replace(leaf, candidates=left, sums=None, cuts=None)
        return replace(self, leaves=(*self.leaves[: split.leaf], leaf, *self.leaves[split.leaf + 1 :]))

    def split(self, split: Split) -> Tree:
        """The tree with one rule replaced by its two parts."""
        leaf = self.leaves[split.leaf]
        assert leaf.sums is not None
        line, _ = fit_lines(_matrix(leaf.sums.total), leaf.prior)
        part = Leaf({}, None, line, leaf.candidates, gains=largest_gains(leaf), is_piecewise=leaf.is_piecewise)
        parts = (replace(part, bounds=bounds) for bounds in split.parts)
        leaves = (*self.leaves[: split.leaf], *parts, *self.leaves[split.leaf + 1 :])
        conditions = tuple(leaf.bounds for leaf in leaves)
        return Tree(leaves, (*self.stages, conditions), (*self.splits, split.leaf))

    def groups(self, n_rules: int) -> list[list[int]]:
        """Numbers of the leaves that make up each rule of the stage of so many rules."""
        grouped = [[number] for number in range(len(self.leaves))]
        for place in reversed(self.splits[n_rules - 1 :]):
            grouped[place : place + 2] = [grouped[place] + grouped[place + 1]]
        return grouped

    def evaluated(self, growth: Growth) -> Tree:
        """The same rules, with the gains of the splits of those that have sums."""
        return replace(self, leaves=tuple(evaluated(leaf, growth) for leaf in self.leaves))

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
    known = evaluated(leaf, growth).cuts or ()
    allowed = [cut for cut in known if cut.along is None or keeps_terms(cut.along[1], used.get(cut.along[0], []))]
    most = max((cut.gain for cut in allowed), default=0.0)
    if not most > growth.least_gain:  # also where rounding made all of them negative
        return None
    # The first of equal ones, so that the order in which sums were added does not decide.
    best = next(cut for cut in allowed if cut.gain >= most * (1.0 - EQUAL))
    return Split(number, best.parts, best.gain)


def evaluated(leaf: Leaf, growth: Growth) -> Leaf:
    """The same rule with the gains of all cuts that leave enough rows on both sides, if its sums are known."""
    if leaf.sums is None or leaf.cuts is not None:
        return leaf
    candidates = growth.candidates if leaf.candidates is None else leaf.candidates
    cuts = [*_ramp_cuts(leaf, candidates), *_group_cuts(leaf, candidates, growth.categories)]
    cuts = [cut for cut in cuts if growth.n_conditions({*cut[1][0], *cut[1][1]}) <= growth.max_conditions]
    total = leaf.sums.total
    # A part without rows has sums of rounding errors, which no line fits.
    cuts = [cut for cut in cuts if min(cut[0][0], total[0] - cut[0][0]) >= growth.least_mass]
    if not cuts:
        return replace(leaf, cuts=())
    above = np.stack([cut[0] for cut in cuts])
    line, whole = fit_lines(_matrix(total), leaf.prior)
    gains = whole - sum(fit_lines(_matrix(part), line)[1] for part in (above, total - above))
    found = (Cut(*cut[1:], gain) for cut, gain in zip(cuts, gains.tolist(), strict=True))
    return replace(leaf, cuts=tuple(found))


def largest_gains(leaf: Leaf) -> dict[int, float]:
    """Largest gain of the cuts of a rule along every feature; cuts between levels count for none."""
    found: dict[int, float] = {}
    for cut in leaf.cuts or ():
        if cut.along is not None:
            found[cut.along[0]] = max(found.get(cut.along[0], 0.0), cut.gain)
    return found


PartSums = tuple[Array, tuple[Bounds, Bounds], tuple[int, Ramp] | None]
"""Sums of the second part of a rule, the conditions of both parts, and along which ramp of a feature it is cut."""


def _ramp_cuts(leaf: Leaf, candidates: Candidates) -> Iterator[PartSums]:
    """Cuts along one feature."""
    assert leaf.sums is not None
    for c, found in groupby(candidates.ramps(), key=itemgetter(0)):
        feature = int(candidates.features[c])
        possible = [cut for cut in found if leaf.admits(feature, cut[3])]
        above = leaf.sums.above(c, candidates.knots[c], [cut[1:3] for cut in possible])
        for part, (*_, ramp) in zip(above, possible, strict=True):
            yield part, leaf.parts(feature, ramp), (feature, ramp)


def _group_cuts(leaf: Leaf, candidates: Candidates, categories: Sequence[Sequence[int]]) -> Iterator[PartSums]:
    """Cuts between two groups of levels, of two levels at least, in the order of the teacher's means."""
    assert leaf.sums is not None
    pairs = zip(candidates.features.tolist(), candidates.knots[:, :2].tolist(), strict=True)
    places = {j: c for c, (j, first) in enumerate(pairs) if tuple(first) == INDICATED}
    for levels in categories:
        if not all(j in places for j in levels):
            continue
        sums = {j: leaf.sums.above(places[j], candidates.knots[places[j]], [(0, 1)])[0] for j in levels}
        possible = [j for j in levels if leaf.bounds.get(j, (None, None))[1] != INDICATED]
        present = [j for j in possible if sums[j][0] >= LEAST_LEVEL]
        last = _last_of_first_row(len(leaf.sums.total))
        ordered = sorted(present, key=lambda j: (sums[j][last] / sums[j][0], j))
        for n in range(2, len(ordered) - 1):
            groups = ordered[:n], ordered[n:]
            # A level that does not occur goes with most rows: in no group, or in both, strengths would not sum to 1.
            heavier = int(sum(sums[j][0] for j in groups[1]) > sum(sums[j][0] for j in groups[0]))
            groups[heavier].extend(j for j in possible if j not in present)
            parts = leaf.group_parts((sorted(groups[0]), sorted(groups[1])))
            yield np.sum([sums[j] for j in groups[1]], axis=0), parts, None


def _last_of_first_row(n_entries: int) -> int:
    """Place of the product of the constant and the teacher's predictions in an upper triangle."""
    return int(np.sqrt(2 * n_entries)) - 1


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
