"""A metric in which the weights of all agents are about equally well determined, from the rules alone.

Features of rules are nearly collinear, and a consensus in plain coordinates is slow along the directions that hardly
matter. Points drawn from the rules tell which those are: everybody who knows the rules can draw the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.penalties.interpolation_consistency import Pairs, gap_gram
from dsfr.core.solve.cholesky import cholesky
from dsfr.core.solve.statistics import Quadratic

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
class Metric:
    """Coordinates ``u = R w`` in which ``R'R`` is the identity."""

    root: Array

    @classmethod
    def of(cls, curvature: Array) -> Metric:
        """The metric of a positive definite matrix."""
        return cls(cholesky(curvature))

    @classmethod
    def plain(cls, n_weights: int) -> Metric:
        """Weights as they are."""
        return cls(np.eye(n_weights))

    def curvature(self, plain: Array) -> Array:
        """A symmetric matrix of second derivatives in these coordinates."""
        half = solve_triangular(self.root, plain, trans="T")
        curvature: Array = solve_triangular(self.root, half.T, trans="T")
        return (curvature + curvature.T) / 2

    def quadratic(self, plain: Quadratic) -> Quadratic:
        """A quadratic in these coordinates."""
        moment = solve_triangular(self.root, plain.moment, trans="T")
        return Quadratic(self.curvature(plain.curvature), moment, plain.constant)

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
