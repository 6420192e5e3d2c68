"""The tree of the conditions of short rules, in words."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dsfr.core.explain.card import Card, in_full
from dsfr.core.explain.decision_tree import Branch, LevelBranch, Node, decision_tree
from dsfr.core.explain.words import Indicator, quoted_term

MOST_NAMED = 4
"""Levels of a category that are named on an edge, if they are more than those on the other edge."""


@dataclass(frozen=True, slots=True)
class Division:
    """A node of the tree: what is asked, the two answers, and what lies in between."""

    name: str
    feature: int
    edges: tuple[str, str]
    between: str
    """Empty where there is nothing in between."""
    parts: tuple[Division | int, Division | int]
    """What follows each answer: a division, or the number of a rule, from 0."""

    @property
    def n_leaves(self) -> int:
        """Number of rules below."""
        return sum(1 if isinstance(part, int) else part.n_leaves for part in self.parts)


def tree_in_words(card: Card) -> Division | int | None:
    """The tree of a card, or its only rule; None if the conditions come from no tree."""
    found: dict[str, list[int]] = {}
    for j, indicator in card.indicators.items():
        found.setdefault(indicator.column, []).append(j)
    complete = [levels for levels in found.values() if len(levels) == len(card.indicators[levels[0]].levels)]
    tree = decision_tree(card.rules, complete)
    return None if tree is None else _in_words(card, tree)


def _in_words(card: Card, node: Node) -> Division | int:
    if isinstance(node, int):
        return node
    parts = _in_words(card, node.below), _in_words(card, node.above)
    if isinstance(node, LevelBranch):
        first, second = node.levels
        edges = _levels(card, first, second), _levels(card, second, first)
        return Division(card.indicators[min(first)].column, min(first), edges, "", parts)
    if node.feature in card.indicators:
        indicator = card.indicators[node.feature]
        return Division(indicator.column, node.feature, _answers(indicator), "", parts)
    return _of_ramp(card, node, parts)


def _of_ramp(card: Card, node: Branch, parts: tuple[Division | int, Division | int]) -> Division:
    start, end = map(in_full, card.rules.ramps_of(node.feature)[node.ramp])
    edges = f"below {start}", f"above {end}"
    between = f"{start} to {end}: partly both"
    return Division(card.feature_names[node.feature], node.feature, edges, between, parts)


def _answers(indicator: Indicator) -> tuple[str, str]:
    """Below and above the ramp of an indicator."""
    return f"is {indicator.opposite}", f"is {indicator.level}"


def _levels(card: Card, own: Collection[int], others: Collection[int]) -> str:
    """The levels of an edge, or that it is none of those of the other edge where these are few."""
    if len(own) > MOST_NAMED and len(others) < len(own):
        return f"is not {_named(card, others)}"
    return f"is {_named(card, own)}"


def _named(card: Card, levels: Collection[int]) -> str:
    return " or ".join(quoted_term(card.indicators[j].level) for j in sorted(levels))
