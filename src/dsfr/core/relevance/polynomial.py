"""Relevance of features by the evidence of a polynomial model (automatic relevance determination).

The polynomial has every feature up to the fourth degree and every product of two, in Hermite polynomials, which are
orthonormal for features of deviation 1. The weight of a term with powers ``a_j`` has the prior variance
``v prod_j b_j^a_j`` (linear terms have a variance of their own): the series expansion of a Gaussian kernel with one
length scale per feature. The ``b_j`` that maximise the evidence are the relevances. They measure curvature only: linear
effects need no extra rules. One sum over labelled rows suffices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from dsfr.core.arrays import Array, IntArray
from dsfr.core.features.gram import FeatureSums
from dsfr.core.relevance.slopes import MIN_RELEVANCE
from dsfr.core.scaling.affine import Ranges
from dsfr.core.solve.evidence import SMALLEST_NOISE
from dsfr.core.solve.label_rows import Explained, LabelRows
from dsfr.core.solve.statistics import Statistics, same_for_all

HIGHEST_POWER = 4
MAX_INPUT = 2.5
"""Features are clipped here, in deviations, for nonlinear terms: fourth powers would follow single rows."""
MOST_TERMS = 600
"""With more terms than this, products of two features are left out."""
LOG_CURVATURE, LOG_VARIANCE = (-7.0, 0.0), (-8.0, 6.0)
"""Bounds of the natural logarithms of ``b_j`` and of the two variances."""
USUAL_LOG_CURVATURE, LOG_CURVATURE_DEVIATION = -1.0, 1.8
"""Mean and deviation of a broad prior of ``log b_j``, against chance fits with few labels and many features."""
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
    def is_curved(self) -> npt.NDArray[np.bool_]:
        """Which terms are neither constant nor linear; shape (p,)."""
        curved: npt.NDArray[np.bool_] = self.powers.sum(axis=1) > 1
        return curved

    def features(self, X: Array) -> Array:
        """All terms at every scaled row; shape (n, p)."""
        d = X.shape[1]
        Z = np.clip(X, -MAX_INPUT, MAX_INPUT)
        higher = [(Z**2 - 1.0) / 2.0**0.5, (Z**3 - 3.0 * Z) / 6.0**0.5, (Z**4 - 6.0 * Z**2 + 3.0) / 24.0**0.5]
        first, second = np.triu_indices(d, 1)
        products = [Z[:, first] * Z[:, second]] if self.n_outputs > 1 + HIGHEST_POWER * d else []
        return np.concatenate([np.ones((len(X), 1)), X, *higher, *products], axis=1)

    def sums(
        self, X: Array, y: Array, ranges: Ranges | None, weights: Array | None = None, *, fast: bool
    ) -> FeatureSums:
        """``H'H``, ``H'y`` and ``H'1``."""
        return FeatureSums.of(X, y, self, ranges, weights)


def curvature_relevance(polynomial: Polynomial, total: Statistics) -> Array | None:
    """Relevance of every feature, 1 for the most relevant; None if the labels do not vary.

    A feature that is the same for all labels has the least: clusters that it set apart would have no labels.
    """
    if total.n_labeled < 2 or total.target_square <= 0.0:
        return None
    d = polynomial.powers.shape[1]
    lines = slice(1, d + 1)
    same = same_for_all(np.diag(total.gram)[lines], total.feature_sum[lines], total.n_labeled)
    kept = np.logical_not(polynomial.powers[:, same].any(axis=1))
    evidence = _CurvatureEvidence(Polynomial(polynomial.powers[kept]), total.only(kept))
    start = np.append(np.full(d, USUAL_LOG_CURVATURE), [0.0, 0.0])
    bounds = [LOG_CURVATURE] * d + [LOG_VARIANCE] * 2
    found = minimize(evidence.loss, start, jac=True, bounds=bounds, method="L-BFGS-B", options={"maxiter": MOST_STEPS})
    # A length scale is the root of a `b`.
    logs = np.where(same, -np.inf, found.x[:d])
    relevance: Array = np.exp((logs - logs.max(initial=LOG_CURVATURE[0])) / 2.0)
    return np.maximum(relevance, MIN_RELEVANCE)


class _CurvatureEvidence:
    """Log evidence, as a function of all ``log b_j`` and the logarithms of both variances, with its gradient."""

    def __init__(self, polynomial: Polynomial, total: Statistics) -> None:
        self._rows, self._n, self._square = LabelRows.of(total), total.n_labeled, total.target_square
        curved = polynomial.is_curved
        self._shape = np.column_stack([polynomial.powers * curved[:, None], curved, ~curved]).astype(np.float64)

    def loss(self, logs: Array) -> tuple[float, Array]:
        """Minus the log evidence and the log prior of the relevances, and the gradient."""
        rows = self._rows
        explained = Explained.by(np.exp(self._shape @ logs), rows.root, rows.rest)
        q = max(rows.beyond + float(rows.rest @ explained.solved), SMALLEST_NOISE * self._square)
        value = -self._n / 2.0 * np.log(q) - explained.log_determinant / 2.0
        gradient = self._shape.T @ (self._n / q * explained.means**2 - explained.used) / 2.0
        off = (logs[:-2] - USUAL_LOG_CURVATURE) / LOG_CURVATURE_DEVIATION
        gradient[:-2] -= off / LOG_CURVATURE_DEVIATION
        return float(off @ off / 2.0 - value), -gradient
