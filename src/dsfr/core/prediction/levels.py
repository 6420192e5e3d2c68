"""Rows whose level of a category is missing: averages over rows that have one level each.

An indicator of 0.3 lies where there are no rows, so that a model knows nothing there. A missing level is therefore each
of the levels, with the probability that the density of the rows expects of its indicator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.density import RowDensity

Categories = tuple[tuple[int, ...], ...]
"""Numbers of the indicators of every category: one for each level, or a single one for two levels."""
MOST_ALTERNATIVES = 64
"""Rows that stand for one row at most; where more categories are missing, the largest are at expected indicators."""


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Rows that stand for others, each with its part in the average."""

    X: Array
    noise: Array
    owners: IntArray
    """Number of the row that each stands for; ascending."""
    weights: Array
    """Parts in predictions; those of one row sum to 1."""
    probabilities: Array
    """Probabilities of the levels; those of one row sum to 1.

    They differ from the weights where a model has seen completed levels in training, see `RowDensity.spread`: it has
    then learnt what rows at expected indicators have, and these have a weight.
    """


def most_alternatives(categories: Categories) -> int:
    """Largest number of rows that one row may become."""
    return min(_alternatives_of(categories), MOST_ALTERNATIVES)


def _alternatives_of(groups: Sequence[tuple[int, ...]]) -> int:
    """Number of combinations: each category has a level, at most one more than indicators, or the expected ones."""
    return prod(len(group) + 2 for group in groups)


def with_levels(X: Array, categories: Categories) -> Array:
    """Rows with the level of the largest indicator of every category."""
    rows = X.copy()
    for group in map(list, categories):
        own = X[:, group]
        rows[:, group] = own > 0.5 if len(group) == 1 else np.eye(len(group))[own.argmax(axis=1)]
    return rows


def alternatives(density: RowDensity, categories: Categories, X: Array, noise: Array) -> Alternatives:
    """Rows in the place of those whose levels are missing; all others stand for themselves."""
    unknown = np.isnan(X) | np.isinf(noise)
    gone = np.array([unknown[:, list(group)].all(axis=1) for group in categories]).reshape(len(categories), -1).T
    whole = np.flatnonzero(~gone.any(axis=1))
    ones = np.ones(len(whole))
    found = [Alternatives(X[whole], noise[whole], whole, ones, ones)]
    for pattern in np.unique(gone[gone.any(axis=1)], axis=0):
        rows = np.flatnonzero((gone == pattern).all(axis=1))
        groups = _enumerated([group for group, is_gone in zip(categories, pattern, strict=True) if is_gone])
        found.append(_of_pattern(density, groups, X[rows], noise[rows], rows))
    return _joined(found)


def _enumerated(groups: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Categories whose levels are enumerated: the smallest, as many as there may be."""
    kept: list[tuple[int, ...]] = []
    for group in sorted(groups, key=len):
        if _alternatives_of([*kept, group]) <= MOST_ALTERNATIVES:
            kept.append(group)
    return kept


def _of_pattern(
    density: RowDensity, groups: list[tuple[int, ...]], X: Array, noise: Array, rows: IntArray
) -> Alternatives:
    """Alternatives of rows that miss the levels of the same categories."""
    unknown = np.isnan(X) | np.isinf(noise)
    expected = density.expected(np.where(unknown, np.nan, X))
    choices = [_choices(expected[:, list(group)], float(density.spread[list(group)].mean())) for group in groups]
    made = []
    for combined in product(*choices):
        rows_of, noise_of = X.copy(), noise.copy()
        weights, probabilities = np.ones(len(X)), np.ones(len(X))
        for group, (indicators, weight, probability) in zip(groups, combined, strict=True):
            rows_of[:, list(group)], noise_of[:, list(group)] = indicators, 0.0
            weights, probabilities = weights * weight, probabilities * probability
        made.append(Alternatives(rows_of, noise_of, rows, weights, probabilities))
    return _joined(made)


def _choices(expected: Array, spread: float) -> list[tuple[Array, Array, Array]]:
    """Indicators, weights and probabilities of all levels of a category, and of the expected indicators."""
    shares = np.maximum(expected, 0.0) if expected.shape[1] > 1 else np.clip(expected, 0.0, 1.0)
    if shares.shape[1] == 1:
        corners, shares = np.array([[0.0], [1.0]]), np.concatenate([1.0 - shares, shares], axis=1)
    else:
        corners = np.eye(shares.shape[1])
    total = shares.sum(axis=1, keepdims=True)
    shares = np.where(total > 0.0, shares, 1.0) / np.where(total > 0.0, total, float(shares.shape[1]))
    levels = [
        (np.broadcast_to(corner, expected.shape), spread * shares[:, i], shares[:, i])
        for i, corner in enumerate(corners)
    ]
    nothing = np.zeros(len(expected))
    return levels if spread == 1.0 else [*levels, (expected, nothing + (1.0 - spread), nothing)]


def _joined(parts: Sequence[Alternatives]) -> Alternatives:
    """All rows, in the order of those that they stand for."""
    arrays = [
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("X", "noise", "owners", "weights", "probabilities")
    ]
    order = np.argsort(arrays[2], kind="stable")
    return Alternatives(*(array[order] for array in arrays))
