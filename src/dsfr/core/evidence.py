"""Ridge and weight of the penalty from the labels themselves: the marginal likelihood, in closed form from sums.

The objective ``1/2 |y - Hw|^2 + c/2 w'Gw + r/2 |w|^2`` is that of a Gaussian model: ``y ~ N(Hw, s^2 I)`` with the prior
``w ~ N(0, s^2 P^-1)``, ``P = c G + r I``. Without ``w`` the labels have the density ``N(0, s^2 (I + H P^-1 H'))``, and
its logarithm needs only ``H'H``, ``H'y``, ``y'y`` and the number of labels. The best noise ``s^2`` is ``q / n`` with
``q = y'y - b'(A + P)^-1 b``, which leaves two numbers to choose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize

from dsfr.core.arrays import Array
from dsfr.core.statistics import Statistics

LOG_RIDGE = (-6.0, 4.0)
LOG_WEIGHT = (-8.0, 4.0)
"""Powers of ten within which ridge and weight are sought."""
STARTS = 6
"""Values of each, evenly over these powers, from the best of which the search starts."""
SMALLEST_NOISE = 1e-12
"""Of the target's square: an exact fit must not make the likelihood infinite."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """What the labels speak for most."""

    unlabeled_weight: float
    ridge: float
    noise: float
    """Standard deviation ``s`` of the noise, for targets of deviation 1."""
    log_evidence: float


class Evidence:
    """Log marginal likelihood of the labels as a function of ridge and weight."""

    def __init__(self, statistics: Statistics) -> None:
        values, vectors = np.linalg.eigh(statistics.unlabeled_gram)
        # In the basis where the penalty is diagonal, so are the prior and its determinant.
        self._penalty = np.maximum(values, 0.0)
        self._gram = vectors.T @ statistics.gram @ vectors
        self._moment = vectors.T @ statistics.moment
        self._n, self._square = statistics.n_labeled, statistics.target_square

    def noise(self, unlabeled_weight: float, ridge: float) -> float:
        """The best standard deviation of the noise."""
        return float(np.sqrt(self._solve(unlabeled_weight, ridge)[3] / self._n))

    def value(self, unlabeled_weight: float, ridge: float) -> float:
        """Log density of the labels at the best noise."""
        return self._value(*self._solve(unlabeled_weight, ridge))

    def value_and_gradient(self, unlabeled_weight: float, ridge: float) -> tuple[float, Array]:
        """The log density, and its derivatives by the logarithms of weight and ridge; shape (2,)."""
        solved = prior, factor, weights, q = self._solve(unlabeled_weight, ridge)
        posterior = np.diag(cho_solve(factor, np.eye(len(prior))))
        slopes = np.array([unlabeled_weight * self._penalty, np.full(len(prior), ridge)])
        gradient: Array = slopes @ (1.0 / prior - posterior - self._n / q * weights**2) / 2.0
        return self._value(*solved), gradient

    def _value(self, prior: Array, factor: tuple[Array, bool], _: Array, q: float) -> float:
        log_noise = np.log(2.0 * np.pi * q / self._n) + 1.0
        log_posterior = 2.0 * np.log(np.diag(factor[0])).sum()
        return float((np.log(prior).sum() - log_posterior - self._n * log_noise) / 2.0)

    def _solve(self, unlabeled_weight: float, ridge: float) -> tuple[Array, tuple[Array, bool], Array, float]:
        """Prior precisions, factor of the posterior's, its mean, and ``q``."""
        prior = unlabeled_weight * self._penalty + ridge
        factor = cho_factor(self._gram + np.diag(prior))
        weights = cho_solve(factor, self._moment)
        q = max(self._square - float(self._moment @ weights), SMALLEST_NOISE * self._square)
        return prior, factor, weights, q


def maximize_evidence(statistics: Statistics) -> Tuned | None:
    """Weight and ridge of the highest evidence; None if the labels do not vary, and so speak for nothing.

    Without a penalty on unlabelled rows only the ridge is sought.
    """
    if statistics.n_labeled < 2 or statistics.target_square <= 0.0:
        return None
    evidence = Evidence(statistics)
    bounds = [LOG_WEIGHT, LOG_RIDGE] if statistics.unlabeled_gram.any() else [LOG_RIDGE]

    def unpacked(powers: Array) -> tuple[float, float]:
        weight, ridge = 10.0 ** np.asarray(powers) if len(bounds) == 2 else (0.0, 10.0 ** powers[0])
        return float(weight), float(ridge)

    def loss(powers: Array) -> tuple[float, Array]:
        try:
            value, slope = evidence.value_and_gradient(*unpacked(powers))
        except LinAlgError:  # too small a ridge for working precision
            return np.inf, np.zeros(len(bounds))
        return -value, -np.log(10.0) * slope[-len(bounds) :]

    grids = np.meshgrid(*(np.linspace(low, high, STARTS) for low, high in bounds), indexing="ij")
    starts = np.stack([grid.ravel() for grid in grids], axis=1)
    best = min(starts, key=lambda powers: loss(powers)[0])
    found = minimize(loss, best, jac=True, bounds=bounds, method="L-BFGS-B")
    weight, ridge = unpacked(found.x if found.fun <= loss(best)[0] else best)
    return Tuned(weight, ridge, evidence.noise(weight, ridge), evidence.value(weight, ridge))
