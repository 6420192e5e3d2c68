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
from dsfr.core.solve.evidence import SMALLEST_NOISE
from dsfr.core.solve.label_rows import Explained, LabelRows

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
    rows: LabelRows, prior: VariancePrior, start: PriorVariances | None = None
) -> PriorVariances | None:
    """Prior variances of the highest evidence, sought from others if these are given; None if labels do not vary.

    The others may be of a prior without the last parameters.
    """
    evidence = _Evidence(rows, prior)
    if rows.n_labeled < 2 or evidence.square <= 0.0:
        return None
    known = np.empty(0) if start is None else start.logs
    logs, height = evidence.maximize(np.append(known, prior.begin[len(known) :]))
    variances = prior.variances(logs)
    return PriorVariances(logs, variances, evidence.noise(variances), height)


def optimism(rows: LabelRows, prior: VariancePrior, found: PriorVariances, seed: int) -> float:
    """Factor by which leave-one-out errors are too small because the parameters were chosen with all labels.

    The sums determine the labelled rows up to a rotation, and under independent Gaussian noise rotated rows are as good
    as any. So rows in a random rotation are left out in `FOLDS` groups, with the parameters chosen again without them,
    and as they are: the ratio of the two errors is what choosing costs. No further round is needed.
    """
    n, beyond = len(rows.root), rows.beyond
    if not FOLDS <= n <= MOST_ROWS:
        return 1.0
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((n, n)))[0]
    root, rest = rotation @ rows.root, rotation @ rows.rest
    refitted = fixed = beyond
    for fold in range(FOLDS):
        out = np.arange(n) % FOLDS == fold
        kept = 1.0 - out.mean()
        evidence = _Evidence(LabelRows(root[~out], rest[~out], kept * beyond, kept * rows.n_labeled), prior)
        logs, _ = evidence.maximize(found.logs)
        refitted += float(np.sum((rest[out] - root[out] @ evidence.weights(prior.variances(logs))) ** 2))
        fixed += float(np.sum((rest[out] - root[out] @ evidence.weights(found.variances)) ** 2))
    return float(np.clip(np.sqrt(refitted / max(fixed, np.finfo(np.float64).tiny)), 1.0, MOST_OPTIMISM))


class _Evidence:
    """Log evidence as a function of the parameters, with its gradient."""

    def __init__(self, rows: LabelRows, prior: VariancePrior) -> None:
        self._rows, self._prior = rows, prior
        self.square = rows.beyond + float(rows.rest @ rows.rest)

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
        mean: Array = np.sqrt(variances) * self._explained(variances).means
        return mean

    def noise(self, variances: Array) -> float:
        """The best standard deviation of the noise."""
        return float(np.sqrt(self._residual(self._explained(variances)) / self._rows.n_labeled))

    def _explained(self, variances: Array) -> Explained:
        return Explained.by(variances, self._rows.root, self._rows.rest)

    def _residual(self, explained: Explained) -> float:
        return max(self._rows.beyond + float(self._rows.rest @ explained.solved), SMALLEST_NOISE * self.square)

    def loss(self, logs: Array) -> tuple[float, Array]:
        """Minus the log evidence and the log prior of the parameters, and the gradient."""
        prior, n = self._prior, self._rows.n_labeled
        variances = prior.variances(logs)
        try:
            explained = self._explained(variances)
        except LinAlgError:
            return np.inf, np.zeros_like(logs)
        q = self._residual(explained)
        value = -n / 2.0 * np.log(q / n) - explained.log_determinant / 2.0
        by_weight = np.where(variances < np.exp(LARGEST), n / q * explained.means**2 - explained.used, 0.0)
        gradient = prior.shape.T @ by_weight / 2.0
        off = (logs - prior.mean) / prior.deviation
        return float(off @ off / 2.0 - value), off / prior.deviation - gradient
