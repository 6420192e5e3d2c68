"""Start centers from a normal distribution with the mean and covariance of the rows, where no row may be a start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array

N_STARTS = 8
"""Sets of start centers that are compared by their objective."""
REACH = 1.0
"""Start centers lie within the scaled range of the features."""


@dataclass(frozen=True, slots=True)
class RowMoments:
    """Number of rows, their sum, and the sum of their outer products; the moments of two tables add."""

    n_samples: float
    total: Array
    products: Array
    """Upper triangle, row by row; shape (d(d+1)/2,)."""

    @classmethod
    def of(cls, X: Array) -> RowMoments:
        """Moments of the rows of ``X``."""
        return cls(float(len(X)), X.sum(axis=0), (X.T @ X)[np.triu_indices(X.shape[1])])

    def __add__(self, other: RowMoments) -> RowMoments:
        return RowMoments(self.n_samples + other.n_samples, self.total + other.total, self.products + other.products)

    @classmethod
    def none(cls, n_features: int) -> RowMoments:
        """Moments of no rows."""
        return cls(0.0, np.zeros(n_features), np.zeros(n_features * (n_features + 1) // 2))

    @property
    def mean(self) -> Array:
        """Mean of the rows; shape (d,)."""
        return self.total / self.n_samples

    @property
    def root(self) -> Array:
        """Symmetric square root of the covariance; shape (d, d)."""
        d = len(self.total)
        second = np.zeros((d, d))
        second[np.triu_indices(d)] = self.products / self.n_samples
        covariance = second + np.triu(second, 1).T - np.outer(self.mean, self.mean)
        values, vectors = np.linalg.eigh(covariance)
        # Rounding may leave a value just below 0.
        root: Array = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        return root


def normal_starts(moments: RowMoments, n_rules: int, stretch: Array, rng: np.random.Generator) -> Array:
    """`N_STARTS` sets of centers drawn from the rows' normal distribution, stretched; shape (N_STARTS, k, d)."""
    draws = rng.standard_normal((N_STARTS, n_rules, len(moments.total)))
    centers: Array = np.clip(moments.mean + draws @ moments.root, -REACH, REACH)
    return centers * stretch
