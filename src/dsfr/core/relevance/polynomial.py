"""Along which features the target bends, by what the labels say of a polynomial of low degree.

The polynomial has every feature up to the fourth degree and every product of two, in the polynomials of Hermite, which
are orthonormal for features of deviation 1. A term with powers ``a_j`` of the features has a prior weight of variance
``v prod_j b_j^a_j`` (linear terms have one of their own): the series of a Gaussian kernel with one length scale for
each feature. The ``b_j`` of the highest evidence tell which features the target bends along. They are not slopes: what
is linear, rules need no clusters for. All that it takes is one sum over labelled rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from dsfr.core.arrays import Array, IntArray
from dsfr.core.features.gram import FeatureSums
from dsfr.core.relevance.slopes import MIN_RELEVANCE
from dsfr.core.scaling.affine import Ranges
from dsfr.core.solve.evidence import SMALLEST_CURVATURE, SMALLEST_NOISE
from dsfr.core.solve.statistics import Statistics

HIGHEST_POWER = 4
MAX_INPUT = 2.5
"""In deviations: bent terms count features beyond as lying there, or fourth powers would follow single rows."""
MOST_TERMS = 600
"""Products of two features are left out where there would be more terms."""
LOG_BEND, LOG_VARIANCE = (-7.0, 0.0), (-8.0, 6.0)
"""Natural logarithms within which ``b_j`` and the two variances are sought."""
USUAL_LOG_BEND, LOG_BEND_SPREAD = -1.0, 1.8
"""Mean and deviation of a broad prior of ``log b_j``: with few labels and many features some fit by chance."""
MOST_STEPS = 60


@dataclass(frozen=True, slots=True)
class Polynomial:
    """Terms of a polynomial, as features that enter linearly."""

    powers: IntArray
    """Of every feature in every term; shape (p, d). First the constant, then linear terms, then higher powers."""

    @classmethod
    def of(cls, n_features: int) -> Polynomial | None:
        """The polynomial of so many features; without products if they are many, None if they are too many."""
        one = np.eye(n_features, dtype=np.int64)
        alone = [np.zeros((1, n_features), dtype=np.int64), *(power * one for power in range(1, HIGHEST_POWER + 1))]
        first, second = np.triu_indices(n_features, 1)
        n_alone = sum(map(len, alone))
        if n_alone > MOST_TERMS:
            return None
        products = [one[first] + one[second]] if n_alone + len(first) <= MOST_TERMS else []
        return cls(np.concatenate(alone + products))

    @property
    def n_outputs(self) -> int:
        """Number of terms."""
        return len(self.powers)

    @property
    def is_bent(self) -> npt.NDArray[np.bool_]:
        """Which terms are neither constant nor linear; shape (p,)."""
        bent: npt.NDArray[np.bool_] = self.powers.sum(axis=1) > 1
        return bent

    def features(self, X: Array) -> Array:
        """All terms at every scaled row; shape (n, p)."""
        d = X.shape[1]
        Z = np.clip(X, -MAX_INPUT, MAX_INPUT)
        higher = [(Z**2 - 1.0) / 2.0**0.5, (Z**3 - 3.0 * Z) / 6.0**0.5, (Z**4 - 6.0 * Z**2 + 3.0) / 24.0**0.5]
        first, second = np.triu_indices(d, 1)
        products = [Z[:, first] * Z[:, second]] if self.n_outputs > 1 + HIGHEST_POWER * d else []
        return np.concatenate([np.ones((len(X), 1)), X, *higher, *products], axis=1)

    def sums(self, X: Array, y: Array, ranges: Ranges | None, *, fast: bool) -> FeatureSums:
        """``H'H``, ``H'y`` and ``H'1``."""
        return FeatureSums.of(X, y, self, ranges)


def bend_relevance(polynomial: Polynomial, total: Statistics) -> Array | None:
    """Relevance of every feature, 1 for the most relevant; None if the labels do not vary, and so tell nothing."""
    if total.n_labeled < 2 or total.target_square <= 0.0:
        return None
    evidence, d = _BendEvidence(polynomial, total), polynomial.powers.shape[1]
    start = np.append(np.full(d, USUAL_LOG_BEND), [0.0, 0.0])
    bounds = [LOG_BEND] * d + [LOG_VARIANCE] * 2
    found = minimize(evidence.loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": MOST_STEPS})
    # A length scale is the root of a `b`.
    relevance: Array = np.exp((found.x[:d] - found.x[:d].max()) / 2.0)
    return np.maximum(relevance, MIN_RELEVANCE)


class _BendEvidence:
    """Log evidence, as a function of all ``log b_j`` and the logarithms of both variances, with its gradient."""

    def __init__(self, polynomial: Polynomial, total: Statistics) -> None:
        values, vectors = np.linalg.eigh(total.gram)
        kept = values > SMALLEST_CURVATURE * max(values[-1], np.finfo(np.float64).tiny)
        sizes = np.sqrt(values[kept])
        # With R'R the sum of products, all is as if the rows of R were those with labels, and these `rest`.
        self._root, self._rest = (vectors[:, kept] * sizes).T, vectors[:, kept].T @ total.moment / sizes
        self._n, self._square = total.n_labeled, total.target_square
        self._beyond = max(self._square - float(self._rest @ self._rest), 0.0)
        bent = polynomial.is_bent
        self._shape = np.column_stack([polynomial.powers * bent[:, None], bent, ~bent]).astype(np.float64)

    def loss(self, logs: Array) -> tuple[float, Array]:
        """Minus the log evidence and the log prior of the bends, and the gradient."""
        prior = np.exp(self._shape @ logs)
        scaled = self._root * prior
        factor = cho_factor(scaled @ self._root.T + np.eye(len(self._root)))
        solved = cho_solve(factor, self._rest)
        q = max(self._beyond + float(self._rest @ solved), SMALLEST_NOISE * self._square)
        value = -self._n / 2.0 * np.log(q) - np.log(np.diag(factor[0])).sum()
        fitted, used = self._root.T @ solved, np.einsum("rp,rp->p", scaled, cho_solve(factor, self._root))
        gradient = self._shape.T @ (self._n / q * prior * fitted**2 - used) / 2.0
        off = (logs[:-2] - USUAL_LOG_BEND) / LOG_BEND_SPREAD
        gradient[:-2] -= off / LOG_BEND_SPREAD
        return float(off @ off / 2.0 - value), -gradient
