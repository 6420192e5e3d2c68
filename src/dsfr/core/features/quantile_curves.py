"""Curves of a feature on its quantile scale: the leading functions of a smoothing kernel under the data's distribution.

On the scale of ranks every feature is spread evenly, so that one prior of smooth functions serves heavy tails,
logarithmic effects and few-valued columns. The kernel is Matern's of order 3/2; its functions are orthogonal over the
rows, have mean 0, and variances that sum to 1, those of rough functions being small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array

LENGTH = 0.5
"""Length scale of the kernel, as a share of the rows."""
LEAST_VARIANCE = 1e-3
"""Functions with a smaller part of the variance are left out."""

LEAST_STEP = 1e-270
"""Knots that are nearer to each other have one value: a slope between them would overflow."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """Counts of all rows at or below ascending thresholds, feature by feature."""

    thresholds: Array
    """Shape (t, d)."""
    counts: Array
    """Shape (t, d); the last row counts all rows."""

    @classmethod
    def of(cls, thresholds: Array, counts: Array) -> Distribution:
        """From thresholds in any order; shapes (t, d). The largest lie beyond all values."""
        order = np.argsort(thresholds, axis=0, kind="stable")
        ordered = np.take_along_axis(counts, order, axis=0)
        return cls(np.take_along_axis(thresholds, order, axis=0), np.maximum.accumulate(ordered, axis=0))

    def knots(self, most: int) -> tuple[Array, Array]:
        """Knots of every feature at evenly spaced quantiles, and their ranks in [0, 1]; shapes (most, d).

        A feature with fewer distinct values has fewer knots, the last one repeated. The rank of a value that many rows
        share is the middle of theirs.
        """
        found = [self._column_knots(j, most) for j in range(self.thresholds.shape[1])]
        return np.stack([knots for knots, _ in found], axis=1), np.stack([ranks for _, ranks in found], axis=1)

    def _column_knots(self, j: int, most: int) -> tuple[Array, Array]:
        thresholds, counts = self.thresholds[:, j], self.counts[:, j]
        # The first and the last threshold at which the count is reached: a value is there, or just before.
        wanted = np.linspace(0.0, 1.0, most) * (counts[-1] - 1.0) + 1.0
        places = np.unique(np.searchsorted(counts, wanted - 1e-9))
        before = np.where(places > 0, counts[places - 1], 0.0)
        knots, ranks = thresholds[places], (before + counts[places]) / (2.0 * counts[-1])
        distinct = np.append(True, np.diff(knots) > 0.0)
        knots, ranks = knots[distinct], ranks[distinct]
        more = (0, most - len(knots))
        return np.pad(knots, more, mode="edge"), np.pad(ranks, more, mode="edge")


def quantile_curves(knots: Array, ranks: Array, n_curves: int) -> Array:
    """Values at the knots of the ``n_curves`` leading functions of every feature; shape (m, d, n_curves).

    Functions that a feature with few values does not have are 0.
    """
    curves = np.zeros((*knots.shape, n_curves))
    for j in range(knots.shape[1]):
        distinct = np.append(True, np.diff(knots[:, j]) >= LEAST_STEP)
        m = int(np.count_nonzero(distinct))
        if m > 1:
            found = _leading_functions(ranks[distinct, j], min(n_curves, m - 1))
            curves[:, j, : found.shape[1]] = found[np.cumsum(distinct) - 1]
    return curves


def shares_of_rows(ranks: Array) -> Array:
    """Share of the rows that are nearest to each of ascending ranks; (m,)."""
    edges = np.concatenate([[0.0], (ranks[1:] + ranks[:-1]) / 2.0, [1.0]])
    shares: Array = np.diff(edges)
    return shares


def _leading_functions(ranks: Array, n_curves: int) -> Array:
    """Eigenfunctions of the centered kernel, scaled by the roots of their variances; shape (m, at most n_curves)."""
    mass = shares_of_rows(ranks)
    distance = np.sqrt(3.0) * np.abs(ranks[:, None] - ranks) / LENGTH
    kernel = (1.0 + distance) * np.exp(-distance)
    mean = kernel @ mass
    centered = kernel - np.outer(mean, mean) / (mass @ mean)
    root = np.sqrt(mass)
    values, vectors = np.linalg.eigh(root[:, None] * centered * root)
    values, vectors = values[::-1][:n_curves], vectors[:, ::-1][:, :n_curves]
    total = float(np.diag(centered) @ mass)
    kept = values > LEAST_VARIANCE * total
    signs = np.sign(vectors[-1, kept] + np.finfo(np.float64).tiny)
    functions: Array = vectors[:, kept] / root[:, None] * np.sqrt(values[kept] / total) * signs
    return functions
