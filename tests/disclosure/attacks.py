"""Attacks on sums: labelled rows from statistics, and rows from clusters that are made for one row each."""

from __future__ import annotations

import numpy as np
from scipy.optimize import least_squares

from dsfr.core.features.takagi_sugeno import Rules
from dsfr.training.tasks.messages import symmetric

EXACT = 1e-6
"""Distance, in scaled features, at which a row counts as found."""


def labeled_rows(rules: Rules, gram: np.ndarray, moment: np.ndarray, n_labels: int, n_starts: int):
    """Labelled rows and their targets from ``H'H`` and ``H'y``: the rows are where h(x) lies in the range of H'H.

    Where the range is the whole space, every x fits, and so none is told apart: no row is returned then.
    """
    G = symmetric(gram, len(moment))
    null = np.linalg.eigh(G)[1][:, : max(len(moment) - n_labels, 0)]
    if null.shape[1] == 0:
        return np.empty((0, rules.centers.shape[1])), np.empty(0)
    rng, found = np.random.default_rng(0), []
    for start in rng.uniform(-1.0, 1.0, (n_starts, rules.centers.shape[1])):
        result = least_squares(lambda x: rules.features(x[None])[0] @ null, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        fits = result.cost < 1e-16 and np.abs(result.x).max() <= 1.0 + 1e-9
        if fits and all(np.abs(result.x - other).max() > 1e-4 for other in found):
            found.append(result.x)
    rows = np.array(found).reshape(-1, rules.centers.shape[1])
    targets = np.linalg.lstsq(rules.features(rows).T, moment, rcond=None)[0] if len(rows) else np.empty(0)
    return rows, targets


def hits(found: np.ndarray, truth: np.ndarray) -> int:
    """How many rows of the truth were found."""
    if len(found) == 0:
        return 0
    return int((np.abs(truth[:, None] - found[None]).max(axis=2).min(axis=1) < EXACT).sum())


def hard_clusters(n_centers: int, n_features: int) -> np.ndarray:
    """Collinear centers along a direction in which rows differ: with a fuzzifier of nearly 1, one slice each."""
    direction = np.array([1.0, *np.full(n_features - 1, 1e-3)])
    return np.linspace(-1.0, 1.0, n_centers)[:, None] * direction


def rows_of_clusters(mass: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Centers of clusters with a mass of exactly one row."""
    return total[np.abs(mass - 1.0) < 1e-9]


def effects_rows(effects, gram: np.ndarray, n_labels: int) -> np.ndarray:
    """Labelled rows from the statistics of curves of two features, cell by cell: between knots h(x) is linear.

    As in `labeled_rows`, a row is where h(x) lies in the range of H'H.
    """
    size = effects.n_outputs
    values, vectors = np.linalg.eigh(symmetric(gram, size))
    null = vectors[:, values < 1e-9 * values[-1]]
    if size - null.shape[1] < n_labels or null.shape[1] <= 2:
        return np.empty((0, 2))
    found = []
    for a, b in np.ndindex(len(effects.knots) - 1, len(effects.knots) - 1):
        low = np.array([effects.knots[a, 0], effects.knots[b, 1]])
        high = np.array([effects.knots[a + 1, 0], effects.knots[b + 1, 1]])
        corners = np.array([low, [high[0], low[1]], [low[0], high[1]]])
        h = effects.features(corners) @ null
        step, *_ = np.linalg.lstsq((h[1:] - h[0]).T, -h[0], rcond=None)
        left = h[0] + step @ (h[1:] - h[0])
        if np.abs(left).max() < 1e-8 and (step >= 0.0).all() and (step <= 1.0).all():
            found.append(low + step * (high - low))
    return np.array(found).reshape(-1, 2)
