"""Plots of rules: sets along one feature, and a map in two; of an average, those of the rule base of largest share."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.membership import membership_of
from dsfr.model.inputs import as_matrix
from dsfr.model.model import Model
from dsfr.model.student import student_card
from dsfr.plot.axes import Axes, axes_or_new, color_of, dash_of, index_of, label_of, model_of

N_GRID = 400
MOST_POINTS = 4000
LEGEND_ROWS = 14
MOST_NAMED = 42
"""With more rules there is no legend, because it would fill the plot."""


def memberships(model: Model | Any, feature: str | int, X: Any = None, *, ax: Axes | None = None) -> Axes:
    """Every rule's set of a feature, over the histogram of the rows ``X`` if given; a legend names up to 42 rules.

    Of short rules, the words of the feature, which all rules share.

    Raises
    ------
    ValueError
        If the model has no rules, or no short rule has a condition on the feature.
    """
    model = model_of(model)
    j = index_of(model, feature)
    if model.is_student:
        return _words(model, j, X, ax)
    base = model.rule_base.strongest
    ax = axes_or_new(ax)
    membership = membership_of(base.members[0].predictor.basis.rules.membership)
    grid = np.linspace(base.domain.low[j], base.domain.high[j], N_GRID)
    if X is not None:
        _histogram(ax, as_matrix(X, model.feature_names, model.schema)[:, j])
    for k in np.argsort(base.centers[:, j], kind="stable").tolist():
        degree = np.exp(membership.log((grid - base.centers[k, j]) / base.widths[k, j]))
        ax.plot(grid, degree, color=color_of(k), linestyle=dash_of(k), linewidth=1.8, label=f"rule {k + 1}")
    ax.set(xlabel=label_of(model.feature_names[j]), ylabel="membership", ylim=(0.0, 1.05))
    if base.n_rules <= MOST_NAMED:
        columns = -(-base.n_rules // LEGEND_ROWS)
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small", ncols=columns)
    return ax


def _words(model: Model, j: int, X: Any, ax: Axes | None) -> Axes:
    """The terms of a feature of short rules, each with its name."""
    card = student_card(model)
    ramps = card.rules.ramps_of(j)
    if not ramps:
        used = [card.feature_names[f] for f in np.unique(card.rules.ramp_features).astype(int).tolist()]
        named = f"conditions are on {', '.join(used)}" if used else "the model is one rule without conditions"
        raise ValueError(f"no rule has a condition on {card.feature_names[j]!r}: {named}")
    ax = axes_or_new(ax)
    column = np.array(ramps).ravel() if X is None else as_matrix(X, model.feature_names, model.schema)[:, j]
    if X is not None:
        _histogram(ax, column)
    room = 0.3 * np.ptp(ramps)
    low, high = min(column.min(), ramps[0][0] - room), max(column.max(), ramps[-1][1] + room)
    grid = np.unique(np.concatenate([np.linspace(low, high, N_GRID), np.ravel(ramps)]))
    above = np.array([np.interp(grid, ramp, (0.0, 1.0)) for ramp in ramps])
    edges = np.vstack([np.ones(len(grid)), above, np.zeros(len(grid))])
    for i, name in enumerate(card.terms[j]):
        ax.plot(grid, edges[i] - edges[i + 1], color=color_of(i), linestyle=dash_of(i), linewidth=1.8, label=name)
    ax.set(xlabel=label_of(model.feature_names[j]), ylabel="membership", ylim=(0.0, 1.05))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small")
    return ax


def rule_map(
    model: Model | Any, X: Any, features: tuple[str | int, str | int] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Rows coloured by their strongest rule, and rules as ellipses of one width around their centers.

    In the two features named, or else in the plane in which the scaled rows vary most (their principal components).

    Raises
    ------
    ValueError
        If the model has no rules with centers: `tree` draws short rules.
    """
    model = model_of(model)
    if model.is_student:
        raise ValueError("short rules have no centers to draw: plot.tree and plot.memberships draw them")
    rows = as_matrix(X, model.feature_names, model.schema)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, MOST_POINTS).round().astype(np.int64))]
    base = model.rule_base.strongest
    ax = axes_or_new(ax)
    origin, plane, names = _plane(model, rows, features)
    places, centers = (rows - origin) @ plane, (base.centers - origin) @ plane
    winner = base.strengths(rows).argmax(axis=1)
    for k in range(base.n_rules):
        mine = winner == k
        ax.scatter(*places[mine].T, s=9, color=color_of(k), alpha=0.45, linewidths=0, rasterized=True)
        ax.plot(*_ellipse(centers[k], base.widths[k], plane).T, color=color_of(k), linestyle=dash_of(k), linewidth=1.6)
        ax.annotate(
            str(k + 1),
            centers[k],
            ha="center",
            va="center",
            fontsize="small",
            fontweight="bold",
            color="white",
            bbox={"boxstyle": "circle,pad=0.25", "facecolor": color_of(k), "edgecolor": "white"},
        )
    ax.set(xlabel=names[0], ylabel=names[1])
    return ax


def _histogram(ax: Axes, column: Array) -> None:
    # A column of large numbers that hardly differ may have fewer distinct values than bins.
    different = np.ptp(column) / np.spacing(np.abs(column).max())
    counts, edges = np.histogram(column, bins=40 if different > 40 else 1)
    heights = 0.55 * counts / max(int(counts.max()), 1)
    ax.bar(edges[:-1], heights, np.diff(edges), align="edge", color="0.85", edgecolor="white", linewidth=0.4, zorder=0)


def _plane(
    model: Model, rows: Array, features: tuple[str | int, str | int] | None
) -> tuple[Array, Array, tuple[str, str]]:
    """Origin, two columns that map features to the plane, and the labels of the axes."""
    d = len(model.feature_names)
    if features is not None:
        first, second = (index_of(model, feature) for feature in features)
        names = label_of(model.feature_names[first]), label_of(model.feature_names[second])
        return np.zeros(d), np.eye(d)[:, [first, second]], names
    half = model.predictor.ranges.half_widths
    mean = rows.mean(axis=0)
    _, values, axes = np.linalg.svd((rows - mean) / half, full_matrices=False)
    two = np.zeros((d, 2))
    two[:, : min(2, len(axes))] = axes[:2].T
    parts = np.append(values, np.zeros(2))[:2] ** 2 / max(float(values @ values), np.finfo(np.float64).tiny)
    return (
        mean,
        two / half[:, None],
        (
            f"first component ({parts[0]:.0%} of the variance)",
            f"second component ({parts[1]:.0%})",
        ),
    )


def _ellipse(center: Array, widths: Array, plane: Array) -> Array:
    """Outline of a rule's membership ``exp(-1)``, projected to the plane; shape (points, 2)."""
    shadow = (plane * widths[:, None] ** 2 / 2.0).T @ plane
    values, axes = np.linalg.eigh(shadow)
    angle = np.linspace(0.0, 2.0 * np.pi, 100)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    outline: Array = center + (circle * np.sqrt(2.0 * np.maximum(values, 0.0))) @ axes.T
    return outline
