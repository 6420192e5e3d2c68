"""Fuzzy c-means: memberships, sums that give the next centers, start centers.

Objective (paper eq. (4) and (17)): ``1/2 sum_ik u_ik^a |x_i - m_k|^2`` with the fuzzifier ``a > 1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from dsfr.core import compiled
from dsfr.core.arrays import Array, row_blocks
from dsfr.core.scaling.affine import Ranges, scaled_blocks, shift_and_unit
from dsfr.core.solve.lbfgs import LBFGS, Evaluation
from dsfr.core.threads import each_chunk

MAX_SQUARED_DISTANCE = 1e300
"""Cap of squared distances."""
N_MERGE_STARTS = 10
EMPTY = 1e-3
"""A cluster with a mass of fewer rows counts as empty."""
MIN_MASS = 1e-9
"""Relative to the total mass: smaller clusters take L-BFGS steps as if they had this mass."""
MAX_STEP = 0.5
"""Most by which an L-BFGS step moves a center along a scaled feature: the quadratic model is local."""
TINY = float(np.finfo(np.float64).tiny)


def squared_distances(X: Array, centers: Array) -> Array:
    """Squared Euclidean distance of every row to every center; shape (n, k).

    Computed from differences, not from ``|x|^2 - 2 x'm + |m|^2``, so that a row on a center has distance exactly 0.
    """
    distances: Array = cdist(X, centers, "sqeuclidean")
    return np.minimum(distances, MAX_SQUARED_DISTANCE, out=distances)


def log_memberships(distances: Array, fuzzifier: float) -> Array:
    """Logarithm of ``u_ik = 1 / sum_c (d_ik / d_ic)^(1/(a-1))`` from squared distances ``d``; shape (n, k).

    In log space, because with the paper's fuzzifier 1.1 the ratios are raised to the tenth power. A row that equals
    centers has membership in these alone, in equal parts.
    """
    on_center = distances == 0.0
    with np.errstate(divide="ignore"):
        log_u = np.log(distances)
    log_u *= -1.0 / (fuzzifier - 1.0)
    seated = on_center.any(axis=1)
    log_u[seated] = np.where(on_center[seated], 0.0, -np.inf)
    log_u -= log_u.max(axis=1, keepdims=True)
    log_u -= np.log(np.exp(log_u).sum(axis=1, keepdims=True))
    return log_u


def memberships(X: Array, centers: Array, fuzzifier: float) -> Array:
    """Membership of every row in every cluster, paper eq. (5); shape (n, k), rows sum to 1.

    The paper prints ``u^a`` on the left of eq. (5); it is ``u``, and ``u^a`` weights centers and widths.
    """
    return np.exp(log_memberships(squared_distances(X, centers), fuzzifier))


def membership_powers(distances: Array, fuzzifier: float) -> Array:
    """The weights ``u^a`` of centers and widths, from squared distances; shape (n, k).

    If ``p = 1/(a-1)`` is an integer no logarithm is needed: with ratios ``r`` of the nearest distance to each, and
    ``s`` the sum of ``r^p``, the weights are ``r^(p+1) / s^a``.
    """
    power = whole_power(fuzzifier)
    if power is None:
        return np.exp(fuzzifier * log_memberships(distances, fuzzifier))
    ratios = np.ones_like(distances)
    np.divide(distances.min(axis=1, keepdims=True), distances, out=ratios, where=distances > 0.0)
    raised = _raised(ratios, power)
    scale = raised.sum(axis=1, keepdims=True) ** -fuzzifier
    raised *= ratios
    raised *= scale
    return raised


def whole_power(fuzzifier: float) -> int | None:
    """``1/(a-1)`` if that is an integer up to rounding, else None.

    >>> whole_power(2.0), whole_power(1.1), whole_power(1.3)
    (1, 10, None)
    """
    power = 1.0 / (fuzzifier - 1.0)
    whole = round(power)
    return whole if whole >= 1 and abs(power - whole) <= 1e-12 * power else None


def _raised(values: Array, power: int) -> Array:
    """Elementwise power by repeated squaring."""
    result, factor = np.ones_like(values), values.copy()
    while power:
        if power & 1:
            result *= factor
        power >>= 1
        factor *= factor
    return result


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Sums over rows from which one fuzzy c-means step follows; the sums of two tables add."""

    mass: Array
    """Sum of ``u^a``; shape (k,)."""
    total: Array
    """Sum of ``u^a x``; shape (k, d)."""
    objective: float

    @classmethod
    def none(cls, centers: Array) -> ClusterSums:
        """Sums over no rows."""
        return cls(np.zeros(len(centers)), np.zeros_like(centers), 0.0)

    @classmethod
    def of(
        cls, X: Array, centers: Array, fuzzifier: float, row_weights: Array | None = None, *, fast: bool = False
    ) -> ClusterSums:
        """Sums over the rows of ``X`` with memberships from ``centers``; a row of weight 2 counts as two rows."""
        if row_weights is None:
            return sum(cls.parts(X, centers, fuzzifier, fast=fast), cls.none(centers))
        blocks = (cls._of_block(X[block], centers, fuzzifier, row_weights[block]) for block in row_blocks(len(X)))
        return sum(blocks, cls.none(centers))

    @classmethod
    def parts(
        cls, X: Array, centers: Array, fuzzifier: float, ranges: Ranges | None = None, *, fast: bool = False
    ) -> Iterator[ClusterSums]:
        """Sums over each chunk of rows, which are scaled first if ``ranges`` are given."""

        def of_chunk(chunk: slice) -> ClusterSums:
            if fast:
                return cls(*_compiled_sums(X[chunk], centers, fuzzifier, ranges, squares=False))
            blocks = scaled_blocks(X[chunk], ranges)
            return sum((cls._of_block(block, centers, fuzzifier) for block in blocks), cls.none(centers))

        return each_chunk(of_chunk, len(X))

    @classmethod
    def _of_block(cls, X: Array, centers: Array, fuzzifier: float, row_weights: Array | None = None) -> ClusterSums:
        distances = squared_distances(X, centers)
        weights = membership_powers(distances, fuzzifier)
        if row_weights is not None:
            weights *= row_weights[:, None]
        return cls(weights.sum(axis=0), weights.T @ X, 0.5 * float(np.vdot(weights, distances)))

    def __add__(self, other: ClusterSums) -> ClusterSums:
        return ClusterSums(self.mass + other.mass, self.total + other.total, self.objective + other.objective)

    def evaluation(self, centers: Array) -> Evaluation:
        """Objective and gradient at ``centers``, with the masses of the clusters as a diagonal preconditioner."""
        mass = np.maximum(self.mass, max(MIN_MASS * float(self.mass.sum()), TINY))
        gradient = self.mass[:, None] * centers - self.total
        return Evaluation(centers.ravel(), self.objective, gradient.ravel(), np.repeat(mass, centers.shape[1]))

    def largest_move(self, centers: Array, moved: Array) -> float:
        """How far a step moves a center at most; centers of empty clusters do not count.

        ADMM moves a center by about its mass over the penalty of what a step would, and descent by its mass over the
        least that it divides by. Centers of empty clusters hence never come to rest, whatever the number of rounds.
        """
        moves = np.abs(moved - centers).max(axis=1)
        return float(np.where(self.is_empty, 0.0, moves).max())

    @property
    def is_empty(self) -> npt.NDArray[np.bool_]:
        """Which clusters have no rows to speak of."""
        empty: npt.NDArray[np.bool_] = self.mass < EMPTY
        return empty

    def centers(self, previous: Array) -> Array:
        """Next centers, paper eq. (6); an empty cluster stays where it was."""
        filled = self.mass > TINY
        mass = np.where(filled, self.mass, 1.0)
        return np.where(filled[:, None], self.total / mass[:, None], previous)


@dataclass(frozen=True, slots=True)
class ClusterVariances:
    """Sum of ``u^a`` and of ``u^a (x - m)^2`` per feature, about the final centers; adds over tables."""

    mass: Array
    square: Array

    @classmethod
    def none(cls, centers: Array) -> ClusterVariances:
        """Sums over no rows."""
        return cls(np.zeros(len(centers)), np.zeros_like(centers))

    @classmethod
    def of(cls, X: Array, centers: Array, fuzzifier: float) -> ClusterVariances:
        """Sums over the rows of ``X`` about ``centers``, with memberships from these centers."""
        return sum(cls.parts(X, centers, fuzzifier), cls.none(centers))

    @classmethod
    def parts(
        cls, X: Array, centers: Array, fuzzifier: float, ranges: Ranges | None = None, *, fast: bool = False
    ) -> Iterator[ClusterVariances]:
        """Sums over each chunk of rows, which are scaled first if ``ranges`` are given."""

        def of_chunk(chunk: slice) -> ClusterVariances:
            if fast:
                return cls(*_compiled_sums(X[chunk], centers, fuzzifier, ranges, squares=True)[:2])
            blocks = scaled_blocks(X[chunk], ranges)
            return sum((cls._of_block(block, centers, fuzzifier) for block in blocks), cls.none(centers))

        return each_chunk(of_chunk, len(X))

    @classmethod
    def _of_block(cls, X: Array, centers: Array, fuzzifier: float) -> ClusterVariances:
        weights = membership_powers(squared_distances(X, centers), fuzzifier)
        square = [weights[:, k] @ (X - center) ** 2 for k, center in enumerate(centers)]
        return cls(weights.sum(axis=0), np.array(square))

    def __add__(self, other: ClusterVariances) -> ClusterVariances:
        return ClusterVariances(self.mass + other.mass, self.square + other.square)

    @property
    def variances(self) -> Array:
        """Weighted variance per cluster and feature, paper eq. (7) squared; 0 for an empty cluster."""
        filled = self.mass > TINY
        return np.where(filled[:, None], self.square / np.where(filled, self.mass, 1.0)[:, None], 0.0)


def _compiled_sums(
    X: Array, centers: Array, fuzzifier: float, ranges: Ranges | None, *, squares: bool
) -> tuple[Array, Array, float]:
    shift, unit = shift_and_unit(ranges, X.shape[1])
    return compiled.cluster_sums(X, shift, unit, centers, fuzzifier, whole_power(fuzzifier) or 0, squares=squares)


def merge_centers(centers: Array, masses: Array, n_centers: int, fuzzifier: float, rng: np.random.Generator) -> Array:
    """Fuzzy c-means of local centers, weighted by the masses of their clusters; best of several starts."""
    attempts = []
    for _ in range(N_MERGE_STARTS):
        start = seed_centers(centers, n_centers, rng, masses)
        merged = fuzzy_c_means(centers, start, fuzzifier=fuzzifier, tol=1e-6, max_rounds=300, row_weights=masses)
        attempts.append((ClusterSums.of(centers, merged, fuzzifier, masses).objective, merged))
    return min(attempts, key=lambda attempt: attempt[0])[1]


def seed_centers(X: Array, n_centers: int, rng: np.random.Generator, row_weights: Array | None = None) -> Array:
    """Start centers by k-means++; shape (n_centers, d).

    If the table has fewer distinct rows than centers, the rest are drawn uniformly from [-1, 1]^d.
    """
    centers = np.empty((n_centers, X.shape[1]))
    weights = np.ones(len(X)) if row_weights is None else row_weights
    chances = weights
    nearest = np.full(len(X), MAX_SQUARED_DISTANCE)
    for k in range(n_centers):
        total = chances.sum()
        centers[k] = X[rng.choice(len(X), p=chances / total)] if total > 0.0 else rng.uniform(-1.0, 1.0, X.shape[1])
        nearest = np.minimum(nearest, squared_distances(X, centers[k : k + 1])[:, 0])
        chances = weights * nearest
    return centers


def fuzzy_c_means(
    X: Array,
    centers: Array,
    *,
    fuzzifier: float,
    tol: float,
    max_rounds: int,
    memory: int = 0,
    row_weights: Array | None = None,
    fast: bool = False,
) -> Array:
    """Centers after at most ``max_rounds`` steps, or once a step moves no coordinate by more than ``tol``.

    ``memory`` is that of L-BFGS; 0 gives plain steps.
    """
    moved, descent = centers, LBFGS(memory, MAX_STEP)
    for _ in range(max_rounds):
        sums = ClusterSums.of(X, centers, fuzzifier, row_weights, fast=fast)
        moved = sums.centers(centers)
        if np.abs(moved - centers).max() <= tol:
            break
        centers = descent.advance(sums.evaluation(centers)).reshape(moved.shape) if memory else moved
    return moved
