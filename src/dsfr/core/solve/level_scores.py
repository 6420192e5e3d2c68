"""What levels of a feature would tell beside effects that are known: the slope of the evidence where they begin."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.solve.cholesky import cholesky, solve_factored
from dsfr.core.solve.statistics import Statistics


def level_scores(total: Statistics, variances: Array, features: IntArray) -> dict[int, float]:
    """By feature, how far the squares of what its levels have in common with the residuals are above chance.

    ``total`` has weights with these prior variances, in units of the noise, and levels of ``features`` behind them. The
    score is in deviations of a sum of independent squares.
    """
    n = len(variances)
    factor = cholesky(total.gram[:n, :n] + np.diag(1.0 / variances))
    cross = total.gram[n:, :n]
    weights = solve_factored(factor, total.moment[:n])
    residual = max(total.target_square - float(weights @ total.moment[:n]), np.finfo(np.float64).tiny)
    squares = (total.moment[n:] - cross @ weights) ** 2 * total.n_labeled / residual
    expected = np.diag(total.gram)[n:] - np.einsum("ln,nl->l", cross, solve_factored(factor, cross.T))
    scores = {}
    for j in np.unique(features).tolist():
        own = features == j
        chance = np.sqrt(2.0 * float(np.square(expected[own]).sum()))
        scores[j] = float((squares[own] - expected[own]).sum()) / max(chance, np.finfo(np.float64).tiny)
    return scores
