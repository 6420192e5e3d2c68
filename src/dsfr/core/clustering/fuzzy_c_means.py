"""Fuzzy c-means: sums that give the next centers and widths, start centers.

Objective (paper eq. (4) and (17)): ``1/2 sum_ik u_ik^a |x_i - m_k|^2`` with the fuzzifier ``a > 1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsfr.core import compiled
from dsfr.core.arrays import Array, row_blocks
from dsfr.core.clustering.memberships import MAX_SQUARED_DISTANCE, TEXTBOOK, Weighting, squared_distances, whole_power
from dsfr.core.scaling.affine import Ranges, scaled_blocks, shift_and_unit
from dsfr.core.solve.lbfgs import LBFGS, Evaluation
from dsfr.core.threads import each_chunk

N_MERGE_STARTS = 10
EMPTY = 1e-3
"""A cluster with a mass of fewer rows counts as empty."""
MIN_MASS = 1e-9
"""Relative to the total mass: smaller clusters take L-BFGS steps as if they had this mass."""
MAX_STEP = 0.5
"""Most by which an L-BFGS step moves a center along a scaled feature: the quadratic model is local."""
TINY = float(np.finfo(np.float64).tiny)


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
        cls,
        X: Array,
        centers: Array,
        fuzzifier: float,
        ranges: Ranges | None = None,
        weighting: Weighting = TEXTBOOK,
        *,
        fast: bool = False,
    ) -> Iterator[ClusterSums]:
        """Sums over each chunk of rows, which are scaled first if ``ranges`` are given."""

        def of_chunk(chunk: slice) -> ClusterSums:
            if fast and weighting == TEXTBOOK:
                return cls(*_compiled_sums(X[chunk], centers, fuzzifier, ranges, squares=False))
            blocks = scaled_blocks(X[chunk], ranges)
            parts = (cls._of_block(block, centers, fuzzifier, weighting=weighting) for block in blocks)
            return sum(parts, cls.none(centers))

        return each_chunk(of_chunk, len(X))

    @classmethod
    def _of_block(
        cls,
        X: Array,
        centers: Array,
        fuzzifier: float,
        row_weights: Array | None = None,
        weighting: Weighting = TEXTBOOK,
    ) -> ClusterSums:
        distances = squared_distances(X, centers)
        weights = weighting.of(distances, fuzzifier)
        if row_weights is not None:
            weights *= row_weights[:, None]
        objective = np.vdot(weights.T, distances.T)
        return cls(weights.T.sum(axis=1), weights.T @ X, 0.5 * float(objective))

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
        cls,
        X: Array,
        centers: Array,
        fuzzifier: float,
        ranges: Ranges | None = None,
        weighting: Weighting = TEXTBOOK,
        *,
        fast: bool = False,
    ) -> Iterator[ClusterVariances]:
        """Sums over each chunk of rows, which are scaled first if ``ranges`` are given."""

        def of_chunk(chunk: slice) -> ClusterVariances:
            if fast and weighting == TEXTBOOK:
                return cls(*_compiled_sums(X[chunk], centers, fuzzifier, ranges, squares=True)[:2])
            blocks = scaled_blocks(X[chunk], ranges)
            return sum((cls._of_block(block, centers, fuzzifier, weighting) for block in blocks), cls.none(centers))

        return each_chunk(of_chunk, len(X))

    @classmethod
    def _of_block(cls, X: Array, centers: Array, fuzzifier: float, weighting: Weighting) -> ClusterVariances:
        weights = weighting.of(squared_distances(X, centers), fuzzifier)
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
