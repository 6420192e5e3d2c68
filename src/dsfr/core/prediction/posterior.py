"""Posterior distribution of weights, and the variance of observations that follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array


@dataclass(frozen=True, slots=True)
class Posterior:
    """Posterior distribution of the weights of one predictor, given the labels."""

    factor: Array
    """Upper Cholesky factor of the posterior precision, in units of the noise; shape (p, p)."""
    noise: float
    """Standard deviation of the noise, in the target's units."""

    def variances(self, H: Array, unit: float) -> Array:
        """Variance of a new observation at every row of features, that of the noise plus that of the weights; (n,).

        Targets are divided by ``unit`` first: the square of 1e200 overflows, that of 1e-200 underflows.
        """
        root = solve_triangular(self.factor, H.T, trans="T")
        variances: Array = (self.noise / unit) ** 2 * (1.0 + np.einsum("pn,pn->n", root, root))
        return variances
