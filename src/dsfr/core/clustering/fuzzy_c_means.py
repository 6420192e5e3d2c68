"""Fuzzy c-means: memberships, the sums that give the next centers, and where to start.

Objective (paper eq. (4) and (17)): ``1/2 sum_ik u_ik^a |x_i - m_k|^2`` with the fuzzifier ``a > 1``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from dsfr.core import compiled
from dsfr.core.arrays import Array, row_blocks
from dsfr.core.scaling.affine import Ranges, scaled_blocks, shift_and_unit
from dsfr.core.solve.lbfgs import Descent, Evaluation
from dsfr.core.threads import each_chunk

FARTHEST = 1e300
"""Squared distances are capped here: farther away, every center is equally far."""
N_MERGE_STARTS = 10
LEAST_MASS = 1e-9
"""Of all mass; a cluster with less is moved as if it had this much, where steps have a memory."""
LONGEST_STEP = 0.5
"""Of a center along a scaled feature, in one step with a memory: farther, little is known."""
TINY = float(np.finfo(np.float64).tiny)


def squared_distances(X: Array, centers: Array) -> Array:
    """Squared Euclidean distance of every row to every center; shape (n, k).

    Taken from differences, not from ``|x|^2 - 2 x'm + |m|^2``: a row on a center must be at distance exactly 0.
    """
    distances: Array = cdist(X, centers, "sqeuclidean")
    return np.minimum(distances, FARTHEST, out=distances)


def log_memberships(distances: Array, fuzzifier: float) -> Array:
    """Logarithm of ``u_ik = 1 / sum_c (d_ik / d_ic)^(1/(a-1))`` from squared distances ``d``; shape (n, k).

    In log space, because at the paper's fuzzifier 1.1 the ratios are raised to the tenth power. A row that sits on
    centers belongs to those alone, in equal parts.
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

    The paper prints ``u^a`` on the left of eq. (5); it is ``u``, and ``u^a`` weighs centers and widths.
    """
    return np.exp(log_memberships(squared_distances(X, centers), fuzzifier))


def membership_powers(distances: Array, fuzzifier: float) -> Array:
    """The weights ``u^a`` of centers and widths, from squared distances; shape (n, k).

    Where ``p = 1/(a-1)`` is whole they need no logarithm: with ratios ``r`` of the nearest distance to each, and ``s``
    the sum of ``r^p``, they are ``r^(p+1) / s^a``.
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
    """``1/(a-1)`` if that is a whole number to rounding, else None.

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
    """What one fuzzy c-means step needs of the rows: adding the sums of two tables gives those of both."""

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
        """The objective as a function of the centers that the sums are about, in the metric of the clusters' masses."""
        mass = np.maximum(self.mass, max(LEAST_MASS * float(self.mass.sum()), TINY))
        gradient = self.mass[:, None] * centers - self.total
        return Evaluation(centers.ravel(), self.objective, gradient.ravel(), np.repeat(mass, centers.shape[1]))

    def centers(self, previous: Array) -> Array:
        """Next centers, paper eq. (6); an empty cluster stays where it was."""
        filled = self.mass > TINY
        mass = np.where(filled, self.mass, 1.0)
        return np.where(filled[:, None], self.total / mass[:, None], previous)


@dataclass(frozen=True, slots=True)
class ClusterSpread:
    """Sum of ``u^a`` and of ``u^a (x - m)^2`` per feature, about the final centers; adds over tables."""

    mass: Array
    square: Array

    @classmethod
    def none(cls, centers: Array) -> ClusterSpread:
        """Spread of no rows."""
        return cls(np.zeros(len(centers)), np.zeros_like(centers))

    @classmethod
    def of(cls, X: Array, centers: Array, fuzzifier: float) -> ClusterSpread:
        """Spread of the rows of ``X`` about ``centers``, with memberships from these same centers."""
        return sum(cls.parts(X, centers, fuzzifier), cls.none(centers))

    @classmethod
    def parts(
        cls, X: Array, centers: Array, fuzzifier: float, ranges: Ranges | None = None, *, fast: bool = False
    ) -> Iterator[ClusterSpread]:
        """Spread of each chunk of rows, which are scaled first if ``ranges`` are given."""

        def of_chunk(chunk: slice) -> ClusterSpread:
            if fast:
                return cls(*_compiled_sums(X[chunk], centers, fuzzifier, ranges, squares=True)[:2])
            blocks = scaled_blocks(X[chunk], ranges)
            return sum((cls._of_block(block, centers, fuzzifier) for block in blocks), cls.none(centers))

        return each_chunk(of_chunk, len(X))

    @classmethod
    def _of_block(cls, X: Array, centers: Array, fuzzifier: float) -> ClusterSpread:
        weights = membership_powers(squared_distances(X, centers), fuzzifier)
        square = [weights[:, k] @ (X - center) ** 2 for k, center in enumerate(centers)]
        return cls(weights.sum(axis=0), np.array(square))

    def __add__(self, other: ClusterSpread) -> ClusterSpread:
        return ClusterSpread(self.mass + other.mass, self.square + other.square)

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
    """Centers of centers: fuzzy c-means of local centers weighted by their clusters' masses; best of several starts."""
    attempts = []
    for _ in range(N_MERGE_STARTS):
        start = seed_centers(centers, n_centers, rng, masses)
        merged = fuzzy_c_means(centers, start, fuzzifier=fuzzifier, tol=1e-6, max_rounds=300, row_weights=masses)
        attempts.append((ClusterSums.of(centers, merged, fuzzifier, masses).objective, merged))
    return min(attempts, key=lambda attempt: attempt[0])[1]


def seed_centers(X: Array, n_centers: int, rng: np.random.Generator, row_weights: Array | None = None) -> Array:
    """Rows far from each other (k-means++) to start from; shape (n_centers, d).

    Where the table has fewer distinct rows than centers, the rest are drawn uniformly from the scaled cube [-1, 1]^d.
    """
    centers = np.empty((n_centers, X.shape[1]))
    weights = np.ones(len(X)) if row_weights is None else row_weights
    chances = weights
    nearest = np.full(len(X), FARTHEST)
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

    With a ``memory`` steps are longer, see `dsfr.core.solve.lbfgs`.
    """
    moved, descent = centers, Descent(memory, LONGEST_STEP)
    for _ in range(max_rounds):
        sums = ClusterSums.of(X, centers, fuzzifier, row_weights, fast=fast)
        moved = sums.centers(centers)
        if np.abs(moved - centers).max() <= tol:
            break
        centers = descent.advance(sums.evaluation(centers)).reshape(moved.shape) if memory else moved
    return moved
