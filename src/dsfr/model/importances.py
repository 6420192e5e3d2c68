"""How much each feature matters to a model, and how predictions depend on one feature: from the model alone.

No row is permuted: a feature is held at its typical value, or at the values of a grid.
"""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.prediction.mixture import Mixture

MOST_ROWS = 1000
"""Rows that means are taken of; longer tables are thinned evenly."""


def thinned(rows: Array) -> Array:
    """At most `MOST_ROWS` rows, evenly spaced."""
    return rows[np.unique(np.linspace(0, len(rows) - 1, MOST_ROWS).round().astype(np.int64))]


def importances(mixture: Mixture, rows: Array) -> Array:
    """Share of every feature in the variation that the model explains; they sum to 1, or are 0 for a constant model.

    The part of feature ``j`` is the mean square of ``f(x) - f(x with x_j at its mean)``, on the scale on which the
    model is learnt: for a line ``slope^2 variance``.
    """
    rows = thinned(rows)
    means, values = rows.mean(axis=0), mixture.values(rows)
    parts = np.zeros(rows.shape[1])
    for j in range(rows.shape[1]):
        held = rows.copy()
        held[:, j] = means[j]
        parts[j] = np.mean(((values - mixture.values(held)) / mixture.strongest.target_scale) ** 2)
    total = parts.sum()
    shares: Array = parts / total if total > 0.0 else parts
    return shares


def partial_dependence(mixture: Mixture, rows: Array, feature: int, grid: Array) -> Array:
    """Mean prediction over rows whose feature is held at each value of a grid; shape of the grid."""
    held = thinned(rows).copy()
    means = np.empty(len(grid))
    for i, value in enumerate(grid.tolist()):
        held[:, feature] = value
        means[i] = mixture.predict(held).mean()
    return means
