"""How far missing values lie from what the others of their row say, as the labels tell.

Where values are missing because of what they are (the highest incomes, say), those that are missing lie elsewhere than
the known ones: a shift for each feature is added to what is expected of them, the delta adjustment of pattern-mixture
models (Little 1993). It is known from the labels: in a linear model of the target with slopes ``b``, rows with a
missing value of feature ``j`` have targets that are higher by ``b_j`` times its shift. Shifts have a normal prior of
variance ``t``, which maximises the evidence; where values are missing at random it is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array

SLOPES = (0.01, 0.03, 0.1, 0.3, 1.0)
"""Prior variances of all slopes together that are tried, for standardised targets."""
NOISES = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
"""Variances of the noise that are tried."""
SHIFTS = (0.03, 0.1, 0.3, 1.0, 3.0)
"""Prior variances of the shifts that are tried, in deviations of the features."""
FARTHEST = 3.0
"""Largest shift, in deviations of the feature."""
LEAST_LABELS = 10


@dataclass(frozen=True, slots=True)
class _Sums:
    """Products of centered columns, and of these with the standardised target."""

    gram: Array
    moment: Array
    n: float

    def posterior(self, variances: Array, noise: float) -> tuple[float, Array]:
        """Log evidence up to a constant, and the mean of the weights, under independent normal priors."""
        roots = np.sqrt(variances)
        system = np.eye(len(roots)) + roots[:, None] * self.gram * roots / noise
        factor = np.linalg.cholesky(system)
        half = np.linalg.solve(factor, roots * self.moment / noise)
        weights = roots * np.linalg.solve(factor.T, half)
        squares = self.n / noise - float(half @ half)
        log_evidence = -0.5 * squares - float(np.log(np.diag(factor)).sum()) - 0.5 * self.n * np.log(noise)
        return float(log_evidence), weights


def missing_shifts(products: Array) -> Array:
    """Shifts of the features in their deviations, from products of labelled rows; shape (d,).

    ``products`` are those of the columns 1, completed features in their deviations, whether each is missing, and the
    target; shape (2d + 2, 2d + 2).
    """
    d, n = (len(products) - 2) // 2, float(products[0, 0])
    if n < LEAST_LABELS:
        return np.zeros(d)
    means = products[0] / n
    centered = products - n * np.outer(means, means)
    variance = centered[-1, -1] / n
    if not variance > 1e-12 * max(products[-1, -1] / n, np.finfo(np.float64).tiny):
        return np.zeros(d)
    whole = _Sums(centered[1:-1, 1:-1], centered[1:-1, -1] / np.sqrt(variance), n)
    lines = _Sums(whole.gram[:d, :d], whole.moment[:d], n)
    trials = [(slope, noise, *lines.posterior(np.full(d, slope / d), noise)) for slope in SLOPES for noise in NOISES]
    slope, noise, before, slopes = max(trials, key=lambda trial: trial[2])
    found = [whole.posterior(np.append(np.full(d, slope / d), t * slopes**2), noise) for t in SHIFTS]
    after, weights = max(found, key=lambda trial: trial[0])
    if after <= before:
        return np.zeros(d)
    effective = np.where(slopes == 0.0, np.inf, slopes)
    shifts: Array = np.clip(weights[d:] / effective, -FARTHEST, FARTHEST)
    return shifts
