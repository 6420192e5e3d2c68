"""Ridge and weight of the penalty from the labels themselves: the marginal likelihood, in closed form from sums.

The objective ``1/2 |y - Hw|^2 + c/2 w'Gw + r/2 |w|^2`` is that of a Gaussian model: ``y ~ N(Hw, s^2 I)`` with the prior
``w ~ N(0, s^2 P^-1)``, ``P = c G + r I``. Without ``w`` the labels have the density ``N(0, s^2 (I + H P^-1 H'))``, and
its logarithm needs only ``H'H``, ``H'y``, ``y'y`` and the number of labels. The best noise ``s^2`` is ``q / n`` with
``q = y'y - b'(A + P)^-1 b``, which leaves two numbers to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError
from scipy.optimize import minimize

from dsfr.core.arrays import Array
from dsfr.core.solve.cholesky import (
    SingularSystemError,
    cholesky,
    inverse_diagonal,
    log_determinant,
    quick_factor,
    quick_solve,
)
from dsfr.core.solve.label_rows import Explained, low_rank_root
from dsfr.core.solve.statistics import Statistics

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
    loo_error: float | None = None
    """Root mean square leave-one-out error, for targets of deviation 1, if it was what decided."""


@dataclass(frozen=True, slots=True)
class _Solved:
    """The posterior for one weight and ridge, in the basis where the prior is diagonal."""

    weights: Array
    q: float
    log_ratio: float
    """Logarithm of the ratio of the determinants of the prior's and the posterior's precision."""
    gain: Callable[[], Array]
    """Variances of the prior less those of the posterior; only gradients need them."""


class Evidence:
    """Log marginal likelihood of the labels as a function of ridge and weight."""

    def __init__(self, statistics: Statistics) -> None:
        values, vectors = np.linalg.eigh(statistics.unlabeled_gram)
        # In the basis where the penalty is diagonal, so are the prior and its determinant.
        self._penalty = np.maximum(values, 0.0)
        self._n, self._square = statistics.n_labeled, statistics.target_square
        self._root: Array | None = None
        if self._n <= len(values) / 2:
            # A root of ``H'H`` with as many rows as its rank, and the targets as it sees them.
            root, self._rest = low_rank_root(statistics.gram, statistics.moment)
            self._root = root @ vectors
        else:
            self._gram = vectors.T @ statistics.gram @ vectors
            self._moment = vectors.T @ statistics.moment

    def noise(self, unlabeled_weight: float, ridge: float) -> float:
        """The best standard deviation of the noise."""
        return float(np.sqrt(self._solve(unlabeled_weight, ridge).q / self._n))

    def noise_and_value(self, unlabeled_weight: float, ridge: float) -> tuple[float, float]:
        """The best standard deviation of the noise, and the log density of the labels at it."""
        solved = self._solve(unlabeled_weight, ridge)
        return float(np.sqrt(solved.q / self._n)), self._value(solved)

    def value(self, unlabeled_weight: float, ridge: float) -> float:
        """Log density of the labels at the best noise."""
        return self._value(self._solve(unlabeled_weight, ridge))

    def value_and_gradient(self, unlabeled_weight: float, ridge: float) -> tuple[float, Array]:
        """The log density, and its derivatives by the logarithms of weight and ridge; shape (2,)."""
        solved = self._solve(unlabeled_weight, ridge)
        slopes = np.array([unlabeled_weight * self._penalty, np.full(len(self._penalty), ridge)])
        gradient: Array = slopes @ (solved.gain() - self._n / solved.q * solved.weights**2) / 2.0
        return self._value(solved), gradient

    def _value(self, solved: _Solved) -> float:
        log_noise = np.log(2.0 * np.pi * solved.q / self._n) + 1.0
        return float((solved.log_ratio - self._n * log_noise) / 2.0)

    def _solve(self, unlabeled_weight: float, ridge: float) -> _Solved:
        prior = unlabeled_weight * self._penalty + ridge
        return self._solve_by_weights(prior) if self._root is None else self._solve_by_labels(prior, self._root)

    def _solve_by_weights(self, prior: Array) -> _Solved:
        factor = quick_factor(self._gram + np.diag(prior))
        weights = quick_solve(factor, self._moment)
        log_ratio = np.log(prior).sum() - log_determinant(factor)

        def gain() -> Array:
            lost: Array = 1.0 / prior - inverse_diagonal(factor)
            return lost

        return _Solved(weights, self._floored(self._square - float(self._moment @ weights)), float(log_ratio), gain)

    def _solve_by_labels(self, prior: Array, root: Array) -> _Solved:
        """With fewer labels than weights: all in the space of ``root``, where ``H'H = root' root``."""
        variances = 1.0 / prior
        explained = Explained.by(variances, root, self._rest)
        q = self._floored(self._square - float(self._rest @ (self._rest - explained.solved)))
        weights = np.sqrt(variances) * explained.means
        return _Solved(weights, q, -explained.log_determinant, lambda: variances * explained.used)

    def _floored(self, q: float) -> float:
        return max(q, SMALLEST_NOISE * self._square)


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

    def height(powers: Array) -> float:
        try:
            return evidence.value(*unpacked(powers))
        except LinAlgError:  # too small a ridge for working precision
            return -np.inf

    def loss(powers: Array) -> tuple[float, Array]:
        try:
            value, slope = evidence.value_and_gradient(*unpacked(powers))
        except LinAlgError:
            return np.inf, np.zeros(len(bounds))
        return -value, -np.log(10.0) * slope[-len(bounds) :]

    grids = np.meshgrid(*(np.linspace(low, high, STARTS) for low, high in bounds), indexing="ij")
    starts = np.stack([grid.ravel() for grid in grids], axis=1)
    heights = [height(start) for start in starts]
    best = starts[int(np.argmax(heights))]
    found = minimize(loss, best, jac=True, bounds=bounds, method="L-BFGS-B")
    weight, ridge = unpacked(found.x if -found.fun >= max(heights) else best)
    ridge = solvable_ridge(statistics.quadratic(weight).curvature, ridge)
    return Tuned(weight, ridge, *evidence.noise_and_value(weight, ridge))


def solvable_ridge(curvature: Array, ridge: float) -> float:
    """The ridge, or the first of 10, 100, ... times it for which the system of the weights can be solved.

    Labels without noise speak for hardly any ridge. Where they are fewer than the weights, the evidence needs no system
    of the weights, and does not notice that this one has become singular.
    """
    while True:
        try:
            cholesky(curvature + ridge * np.eye(len(curvature)))
        except SingularSystemError:
            ridge *= 10.0
        else:
            return ridge
