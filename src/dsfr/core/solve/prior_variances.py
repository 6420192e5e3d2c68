"""Prior variances of groups of weights that maximise the evidence of the labels.

The logarithm of the prior variance of every weight is linear in a few parameters, which have broad Gaussian priors:
``log v = shape @ logs``. Evidence and gradient follow from sums over labelled rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from dsfr.core.arrays import Array
from dsfr.core.solve.evidence import SMALLEST_NOISE, low_rank_root
from dsfr.core.solve.statistics import Statistics

MOST_STEPS = 80
FARTHEST = 4.0
"""Deviations of its prior beyond which a parameter is not sought."""


@dataclass(frozen=True, slots=True)
class VariancePrior:
    """How the prior variances of weights depend on parameters, and what these are like before labels are seen."""

    shape: Array
    """Shape (p, parameters)."""
    mean: Array
    deviation: Array


@dataclass(frozen=True, slots=True)
class PriorVariances:
    """What the labels speak for most."""

    logs: Array
    """The parameters."""
    variances: Array
    """Of every weight, in units of the noise; (p,)."""
    noise: float
    """Standard deviation of the noise, for targets of deviation 1."""
    log_evidence: float
    """At these parameters, less half their squared distance from the prior's mean in deviations."""


def maximize_prior_evidence(total: Statistics, prior: VariancePrior) -> PriorVariances | None:
    """Prior variances of the highest evidence; None if the labels do not vary."""
    if total.n_labeled < 2 or total.target_square <= 0.0:
        return None
    evidence = _Evidence(total, prior)
    bounds = list(zip(prior.mean - FARTHEST * prior.deviation, prior.mean + FARTHEST * prior.deviation, strict=True))
    options = {"maxiter": MOST_STEPS}
    found = minimize(evidence.loss, prior.mean, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
    variances: Array = np.exp(prior.shape @ found.x)
    return PriorVariances(found.x, variances, evidence.noise(variances), -float(found.fun))


class _Evidence:
    """Log evidence as a function of the parameters, with its gradient."""

    def __init__(self, total: Statistics, prior: VariancePrior) -> None:
        self._root, self._rest = low_rank_root(total.gram, total.moment)
        self._n, self._square = total.n_labeled, total.target_square
        self._beyond = max(self._square - float(self._rest @ self._rest), 0.0)
        self._prior = prior

    def noise(self, variances: Array) -> float:
        """The best standard deviation of the noise."""
        factor = cho_factor((self._root * variances) @ self._root.T + np.eye(len(self._root)))
        return float(np.sqrt(self._residual(cho_solve(factor, self._rest)) / self._n))

    def _residual(self, solved: Array) -> float:
        return max(self._beyond + float(self._rest @ solved), SMALLEST_NOISE * self._square)

    def loss(self, logs: Array) -> tuple[float, Array]:
        """Minus the log evidence and the log prior of the parameters, and the gradient."""
        prior = self._prior
        variances = np.exp(prior.shape @ logs)
        scaled = self._root * variances
        try:
            factor = cho_factor(scaled @ self._root.T + np.eye(len(self._root)))
        except LinAlgError:
            return np.inf, np.zeros_like(logs)
        solved = cho_solve(factor, self._rest)
        q = self._residual(solved)
        value = -self._n / 2.0 * np.log(q / self._n) - np.log(np.diag(factor[0])).sum()
        fitted, used = self._root.T @ solved, np.einsum("rp,rp->p", scaled, cho_solve(factor, self._root))
        gradient = prior.shape.T @ (self._n / q * variances * fitted**2 - used) / 2.0
        off = (logs - prior.mean) / prior.deviation
        return float(off @ off / 2.0 - value), off / prior.deviation - gradient
