"""Prior variances of groups of weights that maximise the evidence of the labels.

The logarithm of the prior variance of every weight is linear in a few parameters, which have broad Gaussian priors:
``log v = offset + shape @ logs``. Evidence and gradient follow from sums over labelled rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from dsfr.core.arrays import Array
from dsfr.core.solve.cholesky import log_determinant, quick_factor, quick_solve
from dsfr.core.solve.evidence import SMALLEST_NOISE, low_rank_root
from dsfr.core.solve.statistics import Statistics

MOST_STEPS = 80
FOLDS = 5
MOST_ROWS = 300
"""With more labels, choosing few parameters costs next to nothing."""
MOST_OPTIMISM = 10.0
"""A member that follows all labels without noise may have an error of eight times what leaving one out shows."""
LARGEST = 23.0
"""Log prior variance, in units of the noise, beyond which none grows: systems could not be solved, and a search that
steps there would end. Noise of 1e-4 of the targets takes less."""
FARTHEST = 4.0
"""Deviations of its prior beyond which a parameter is not sought."""


@dataclass(frozen=True, slots=True)
class VariancePrior:
    """How the prior variances of weights depend on parameters, and what these are like before labels are seen."""

    shape: Array
    """Shape (p, parameters)."""
    offset: Array
    """Log variances where all parameters are 0; (p,)."""
    mean: Array
    deviation: Array
    begin: Array
    """Where the search for parameters begins if nothing is known of them."""

    def variances(self, logs: Array) -> Array:
        """Prior variances of the weights at these parameters, in units of the noise; (p,)."""
        found: Array = np.exp(np.minimum(self.offset + self.shape @ logs, LARGEST))
        return found


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


def maximize_prior_evidence(
    total: Statistics, prior: VariancePrior, start: PriorVariances | None = None
) -> PriorVariances | None:
    """Prior variances of the highest evidence, sought from others if these are given; None if labels do not vary.

    The others may be of a prior without the last parameters.
    """
    if total.n_labeled < 2 or total.target_square <= 0.0:
        return None
    evidence = _Evidence(*_rows_of(total), total.n_labeled, prior)
    known = np.empty(0) if start is None else start.logs
    logs, height = evidence.maximize(np.append(known, prior.begin[len(known) :]))
    variances = prior.variances(logs)
    return PriorVariances(logs, variances, evidence.noise(variances), height)


def optimism(total: Statistics, prior: VariancePrior, found: PriorVariances, seed: int) -> float:
    """Factor by which leave-one-out errors are too small because the parameters were chosen with all labels.

    The sums determine the labelled rows up to a rotation, and under independent Gaussian noise rotated rows are as good
    as any. So rows in a random rotation are left out in `FOLDS` groups, with the parameters chosen again without them,
    and as they are: the ratio of the two errors is what choosing costs. No further round is needed.
    """
    root, rest, beyond = _rows_of(total)
    n = len(root)
    if not FOLDS <= n <= MOST_ROWS:
        return 1.0
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    root, rest = rotation @ root, rotation @ rest
    refitted = fixed = beyond
    for fold in range(FOLDS):
        out = np.arange(n) % FOLDS == fold
        kept = 1.0 - out.mean()
        evidence = _Evidence(root[~out], rest[~out], kept * beyond, kept * total.n_labeled, prior)
        logs, _ = evidence.maximize(found.logs)
        refitted += float(np.sum((rest[out] - root[out] @ evidence.weights(prior.variances(logs))) ** 2))
        fixed += float(np.sum((rest[out] - root[out] @ evidence.weights(found.variances)) ** 2))
    return float(np.clip(np.sqrt(refitted / max(fixed, np.finfo(np.float64).tiny)), 1.0, MOST_OPTIMISM))


def _rows_of(total: Statistics) -> tuple[Array, Array, float]:
    """Rows and labels that have these sums, as many as their rank, and the part of the labels' square beyond them."""
    root, rest = low_rank_root(total.gram, total.moment)
    signs = np.where(rest < 0.0, -1.0, 1.0)  # eigenvectors have no sign of their own
    root, rest = signs[:, None] * root, signs * rest
    return root, rest, max(total.target_square - float(rest @ rest), 0.0)


class _Evidence:
    """Log evidence as a function of the parameters, with its gradient."""

    def __init__(self, root: Array, rest: Array, beyond: float, n: float, prior: VariancePrior) -> None:
        self._root, self._rest, self._beyond, self._n = root, rest, beyond, n
        self._square = beyond + float(rest @ rest)
        self._prior = prior

    def maximize(self, start: Array) -> tuple[Array, float]:
        """Parameters of the highest evidence, and its value."""
        prior = self._prior
        reach = FARTHEST * prior.deviation
        bounds = list(zip(prior.mean - reach, prior.mean + reach, strict=True))
        options = {"maxiter": MOST_STEPS}
        found = minimize(self.loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options)
        return found.x, -float(found.fun)

    def weights(self, variances: Array) -> Array:
        """Posterior mean of the weights."""
        factor = quick_factor((self._root * variances) @ self._root.T + np.eye(len(self._root)))
        mean: Array = variances * (self._root.T @ quick_solve(factor, self._rest))
        return mean

    def noise(self, variances: Array) -> float:
        """The best standard deviation of the noise."""
        factor = quick_factor((self._root * variances) @ self._root.T + np.eye(len(self._root)))
        return float(np.sqrt(self._residual(quick_solve(factor, self._rest)) / self._n))

    def _residual(self, solved: Array) -> float:
        return max(self._beyond + float(self._rest @ solved), SMALLEST_NOISE * self._square)

    def loss(self, logs: Array) -> tuple[float, Array]:
        """Minus the log evidence and the log prior of the parameters, and the gradient."""
        prior = self._prior
        variances = prior.variances(logs)
        scaled = self._root * variances
        try:
            factor = quick_factor(scaled @ self._root.T + np.eye(len(self._root)))
        except LinAlgError:
            return np.inf, np.zeros_like(logs)
        solved = quick_solve(factor, self._rest)
        q = self._residual(solved)
        value = -self._n / 2.0 * np.log(q / self._n) - log_determinant(factor) / 2.0
        fitted, used = self._root.T @ solved, np.einsum("rp,rp->p", scaled, quick_solve(factor, self._root))
        by_weight = np.where(variances < np.exp(LARGEST), self._n / q * variances * fitted**2 - used, 0.0)
        gradient = prior.shape.T @ by_weight / 2.0
        off = (logs - prior.mean) / prior.deviation
        return float(off @ off / 2.0 - value), off / prior.deviation - gradient
