"""Plots of short rules: the tree of their conditions, and the price of readability."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dsfr.core.explain.card import Card
from dsfr.core.explain.tree_words import Division, tree_in_words
from dsfr.core.explain.words import readable
from dsfr.model.model import Model
from dsfr.model.student import student_card
from dsfr.plot.axes import COLORS, Axes, axes_or_new, color_of, label_of, model_of


@dataclass(frozen=True, slots=True)
class Placed:
    """A node of the tree at its place: a column between the leaves below it, and a depth."""

    x: float
    depth: int
    node: Division | int
    parent: tuple[float, int] | None
    edge: str
    """The words on the line from its parent."""


def tree(model: Model | Any, *, ax: Axes | None = None) -> Axes:
    """The tree of conditions of short rules; every leaf has the number, share and mean output of its rule.

    Raises
    ------
    ValueError
        If the model has no short rules, or a single one.
    """
    card = _card(model)
    root = tree_in_words(card)
    if not isinstance(root, Division):
        raise ValueError("there is no tree to draw: the model is one rule without conditions")
    ax = axes_or_new(ax)
    placed = list(_place(root, 0.0, 0, None, ""))
    for item in placed:
        _draw(ax, item, card)
    depth = max(item.depth for item in placed)
    ax.set(xlim=(-0.6, len(card) - 0.4), ylim=(-depth - 0.4, 0.4))
    ax.set_axis_off()
    return ax


def price(model: Model | Any, *, ax: Axes | None = None) -> Axes:
    """Increase of the error, in percent of the teacher's, by number of rules; the chosen number is marked.

    Raises
    ------
    ValueError
        If the model has no short rules.
    """
    card = _card(model)
    curve = model_of(model).training["student"]["curve"]
    ax = axes_or_new(ax)
    numbers, prices = [entry["n_rules"] for entry in curve], [100.0 * entry["price"] for entry in curve]
    ax.plot(numbers, prices, color=COLORS[0], marker="o", markersize=4)
    chosen = [(n, cost) for n, cost in zip(numbers, prices, strict=True) if n == len(card)]
    if chosen:
        ax.plot(*chosen[0], color=COLORS[1], marker="o", markersize=9)
    ax.set(xlabel="rules", ylabel="more error than the teacher, %", xticks=numbers)
    ax.set_ylim(bottom=0.0)
    return ax


def _card(model: Model | Any) -> Card:
    found = model_of(model)
    if not found.is_student:
        raise ValueError("this model has no short rules, which RuleRegressor makes: plot.rule_map draws others")
    return student_card(found)


def _place(
    node: Division | int, left: float, depth: int, parent: tuple[float, int] | None, edge: str
) -> Iterator[Placed]:
    """All nodes below one, with the column of its first leaf given."""
    x = left + ((1 if isinstance(node, int) else node.n_leaves) - 1) / 2.0
    yield Placed(x, depth, node, parent, edge)
    if isinstance(node, int):
        return
    for part, answer in zip(node.parts, node.edges, strict=True):
        yield from _place(part, left, depth + 1, (x, depth), answer)
        left += 1 if isinstance(part, int) else part.n_leaves


def _draw(ax: Axes, item: Placed, card: Card) -> None:
    place = item.x, -item.depth
    if item.parent is not None:
        above = item.parent[0], -item.parent[1]
        ax.plot([above[0], place[0]], [above[1], place[1]], color="0.7", linewidth=1.2, zorder=1)
        middle = 0.45 * above[0] + 0.55 * place[0], 0.45 * above[1] + 0.55 * place[1]
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        ax.annotate(label_of(item.edge), middle, ha="center", va="center", fontsize="small", color="0.35", bbox=paper)
    if isinstance(item.node, int):
        text = f"Rule {item.node + 1}\n{card.predictor.shares[item.node]:.0%} of rows, about "
        text, color = text + readable(card.outputs[item.node]), color_of(item.node)
    else:
        text, color = item.node.name, "0.5"
    box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": color, "linewidth": 1.6}
    ax.annotate(label_of(text), place, ha="center", va="center", fontsize="small", bbox=box, zorder=3)
