"""A preconditioner of the weights' problem that is computed from the rules alone.

Features of rules are nearly collinear, so the problem is badly conditioned: iterations in the weights themselves are
slow along the directions that hardly change the predictions. Rows drawn from the rules give the curvature to expect,
and everybody who knows the rules and the seed draws the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.penalties.interpolation_consistency import Pairs, gap_gram
from dsfr.core.solve.cholesky import cholesky, solve_factored

N_POINTS = 4000


def expected_curvature(
    basis: Rules | Wavelets,
    shares: Array | None,
    n_labeled: float,
    n_pairs: float,
    concentration: float,
    rng: np.random.Generator,
) -> Array:
    """Curvature to expect of an agent with so many labelled rows and (weighted) pairs; shape (p, p)."""
    rows = basis.typical_rows(N_POINTS, shares, rng)
    H = basis.features(rows)
    curvature = H.T @ H * (n_labeled / len(rows))
    if n_pairs > 0.0:
        pairs = Pairs.draw(len(rows), len(rows), concentration, rng)
        curvature += gap_gram(rows, pairs, basis) * (n_pairs / len(rows))
    return np.asarray(curvature)


@dataclass(frozen=True, slots=True)
class Preconditioner:
    """A positive definite matrix ``M = R'R``, and the coordinates ``u = R w`` in which it is the identity."""

    root: Array
    """The upper triangular factor ``R``."""

    @classmethod
    def of(cls, curvature: Array) -> Preconditioner:
        """The preconditioner ``M = curvature`` of a positive definite matrix."""
        return cls(cholesky(curvature))

    @classmethod
    def identity(cls, n_weights: int) -> Preconditioner:
        """No preconditioning: coordinates are the weights."""
        return cls(np.eye(n_weights))

    def solve(self, gradient: Array) -> Array:
        """``M^-1 g``, the step that would solve the problem if ``M`` were its matrix."""
        return solve_factored(self.root, gradient)

    def residual(self, gradient: Array) -> Array:
        """``R^-T g``, the gradient with respect to coordinates; its squared norm is ``g' M^-1 g``."""
        residual: Array = solve_triangular(self.root, gradient, trans="T")
        return residual

    def curvature(self, plain: Array) -> Array:
        """A symmetric matrix of second derivatives in these coordinates: ``R^-T A R^-1``."""
        curvature = self.residual(self.residual(plain).T)
        return (curvature + curvature.T) / 2

    def weights(self, value: Array) -> Array:
        """Weights at coordinates ``value``."""
        weights: Array = solve_triangular(self.root, value)
        return weights

    def coordinates(self, weights: Array) -> Array:
        """Coordinates of ``weights``."""
        return self.root @ weights

    def pull(self, difference: Array) -> Array:
        """``M`` times a difference of weights, from that of their coordinates."""
        return self.root.T @ difference

    @property
    def matrix(self) -> Array:
        """``M = R'R``."""
        return self.root.T @ self.root
