"""The tree of conditions that rules over shared terms come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dsfr.core.features.linguistic import LinguisticRules


@dataclass(frozen=True, slots=True)
class Branch:
    """Rules divided by one ramp of one feature; what is left of a division is the number of a rule, from 0."""

    feature: int
    ramp: int
    """Number of the ramp among those of the feature, from 0: it lies between this term and the next."""
    below: Branch | int
    above: Branch | int


def decision_tree(rules: LinguisticRules, numbers: Sequence[int] | None = None) -> Branch | int | None:
    """A tree whose leaves are the rules, in their order; None if their conditions come from no tree."""
    chosen = range(rules.n_rules) if numbers is None else numbers
    if len(chosen) == 1:
        return chosen[0]
    for feature, n_terms in enumerate(rules.n_terms.tolist()):
        for ramp in range(n_terms - 1):
            below = [k for k in chosen if rules.last_terms[k, feature] <= ramp]
            above = [k for k in chosen if rules.first_terms[k, feature] > ramp]
            if not below or not above or len(below) + len(above) < len(chosen):
                continue
            first, second = decision_tree(rules, below), decision_tree(rules, above)
            if first is not None and second is not None:
                return Branch(feature, ramp, first, second)
    return None
