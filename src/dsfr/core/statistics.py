"""All that the weights depend on: sums over rows that add over agents, and their closed-form solution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.features import Basis
from dsfr.core.linear import cholesky, solve_factored


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sums over the labelled rows, and the Gram matrix of the penalty on the unlabelled ones."""

    gram: Array
    """``H'H`` over labelled rows; shape (p, p)."""
    moment: Array
    """``H'y``; shape (p,)."""
    feature_sum: Array
    """``H'1``; shape (p,)."""
    unlabeled_gram: Array
    """``B'B`` or ``H'LH``, without its weight; shape (p, p)."""
    n_labeled: float
    target_sum: float
    target_square: float

    @classmethod
    def of(cls, X: Array, y: Array, basis: Basis, unlabeled_gram: Array | None = None) -> Statistics:
        """Statistics of labelled rows ``X`` with targets ``y``, accumulated in blocks."""
        p = basis.n_outputs
        gram, moment, feature_sum = np.zeros((p, p)), np.zeros(p), np.zeros(p)
        for block in row_blocks(len(X)):
            H = basis.features(X[block])
            gram += H.T @ H
            moment += H.T @ y[block]
            feature_sum += H.sum(axis=0)
        penalty = np.zeros((p, p)) if unlabeled_gram is None else unlabeled_gram
        return cls(gram, moment, feature_sum, penalty, float(len(y)), float(y.sum()), float(y @ y))

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.gram + other.gram,
            self.moment + other.moment,
            self.feature_sum + other.feature_sum,
            self.unlabeled_gram + other.unlabeled_gram,
            self.n_labeled + other.n_labeled,
            self.target_sum + other.target_sum,
            self.target_square + other.target_square,
        )

    def quadratic(self, unlabeled_weight: float) -> Quadratic:
        """The objective without its ridge term."""
        return Quadratic(self.gram + unlabeled_weight * self.unlabeled_gram, self.moment, self.target_square)


@dataclass(frozen=True, slots=True)
class Quadratic:
    """``1/2 w'Aw - b'w + c/2``: squared errors plus the penalty on unlabelled rows, ridge left out."""

    curvature: Array
    moment: Array
    constant: float

    def value(self, weights: Array) -> float:
        """Value at ``weights``."""
        return float(weights @ (self.curvature @ weights / 2 - self.moment) + self.constant / 2)

    def gradient(self, weights: Array) -> Array:
        """Gradient at ``weights``."""
        return self.curvature @ weights - self.moment


def solve_weights(quadratic: Quadratic, ridge: float) -> Array:
    """Minimiser of the quadratic plus ``ridge/2 |w|^2``, paper eq. (11) and (16), by Cholesky.

    Raises
    ------
    SingularSystemError
        If the ridge is too small to make the system definite.
    """
    damped = quadratic.curvature + ridge * np.eye(len(quadratic.moment))
    return solve_factored(cholesky(damped), quadratic.moment)
