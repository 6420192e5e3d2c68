"""The tree of conditions that rules over shared terms come from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dsfr.core.features.linguistic import LinguisticRules

Levels = frozenset[int]
"""Levels of a category, by the features that indicate them."""


@dataclass(frozen=True, slots=True)
class Branch:
    """Rules divided by one ramp of one feature; what is left of a division is the number of a rule, from 0."""

    feature: int
    ramp: int
    """Number of the ramp among those of the feature, from 0: it lies between this term and the next."""
    below: Node
    above: Node


@dataclass(frozen=True, slots=True)
class LevelBranch:
    """Rules divided between levels of a category that has an indicator for each level."""

    levels: tuple[Levels, Levels]
    """Levels that lead to each part."""
    below: Node
    above: Node


Node = Branch | LevelBranch | int


def decision_tree(rules: LinguisticRules, categories: Sequence[Sequence[int]] = ()) -> Node | None:
    """A tree whose leaves are the rules, in their order; None if their conditions come from no tree.

    ``categories`` are the indicators of every category that has one for each level.
    """
    whole = {i: frozenset(levels) for i, levels in enumerate(categories)}
    return _Divider(rules, tuple(whole.values())).tree(list(range(rules.n_rules)), whole)


@dataclass(frozen=True, slots=True)
class _Divider:
    rules: LinguisticRules
    categories: tuple[Levels, ...]

    def tree(self, chosen: list[int], reached: dict[int, Levels]) -> Node | None:
        """The tree of some rules, with the levels of every category that lead to them."""
        if len(chosen) == 1:
            return chosen[0]
        for feature, ramp, below, above in self._by_ramps(chosen):
            first, second = self.tree(below, reached), self.tree(above, reached)
            if first is not None and second is not None:
                return Branch(feature, ramp, first, second)
        for i, parts, rules in self._by_levels(chosen, reached):
            found = [self.tree(own, {**reached, i: levels}) for levels, own in zip(parts, rules, strict=True)]
            if found[0] is not None and found[1] is not None:
                return LevelBranch(parts, found[0], found[1])
        return None

    def _by_ramps(self, chosen: list[int]) -> Iterator[tuple[int, int, list[int], list[int]]]:
        indicators = frozenset[int]().union(*self.categories)
        for feature, n_terms in enumerate(self.rules.n_terms.tolist()):
            for ramp in range(0 if feature in indicators else n_terms - 1):
                below = [k for k in chosen if self.rules.last_terms[k, feature] <= ramp]
                above = [k for k in chosen if self.rules.first_terms[k, feature] > ramp]
                if below and above and len(below) + len(above) == len(chosen):
                    yield feature, ramp, below, above

    def _by_levels(
        self, chosen: list[int], reached: dict[int, Levels]
    ) -> Iterator[tuple[int, tuple[Levels, Levels], tuple[list[int], list[int]]]]:
        """Divisions into the first rule, with all that share levels with it, and the others."""
        for i, levels in reached.items():
            own = {k: self._levels(k, self.categories[i]) & levels for k in chosen}
            first = own[chosen[0]]
            while joined := frozenset[int]().union(*(some for some in own.values() if some & first)) - first:
                first |= joined
            below, above = ([k for k in chosen if bool(own[k] & first) == is_first] for is_first in (True, False))
            if below and above:
                yield i, (first, levels - first), (below, above)

    def _levels(self, rule: int, levels: Levels) -> Levels:
        """Levels of a category that the conditions of a rule allow."""
        spans = {j: (self.rules.first_terms[rule, j], self.rules.last_terms[rule, j]) for j in levels}
        has = frozenset(j for j, (first, _) in spans.items() if first > 0)
        possible = frozenset(j for j, (_, last) in spans.items() if last == self.rules.n_terms[j] - 1)
        return possible & has if has else possible
