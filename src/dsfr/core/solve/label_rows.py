"""Labels and rows that have given sums, and what they say of weights with independent Gaussian priors.

Sums over labelled rows determine these rows up to a rotation. There are as many as their rank: with fewer labels than
weights, all systems are as small as the labels are few.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpstrf

from dsfr.core.arrays import Array
from dsfr.core.solve.cholesky import log_determinant, quick_factor, quick_half_solve, quick_solve
from dsfr.core.solve.statistics import Statistics

SMALLEST_CURVATURE = 1e-13
"""Of the largest: below, an eigenvalue of ``H'H`` is rounding."""


def low_rank_root(gram: Array, moment: Array) -> tuple[Array, Array]:
    """``R`` with ``R'R = gram`` and as many rows as its rank, and ``r`` with ``R'r = moment``.

    The evidence is that of labels ``r`` on rows ``R``, whatever the number of rows that were summed. Rows are
    orthogonal, and the longer the later. Where they are few, a decomposition of their products is all that it takes.
    """
    few = _few_rows(gram)
    values, vectors = np.linalg.eigh(gram if few is None else few @ few.T)
    kept = values > SMALLEST_CURVATURE * max(values[-1], np.finfo(np.float64).tiny)
    values, vectors = values[kept], vectors[:, kept]
    root: Array = (vectors * np.sqrt(values)).T if few is None else vectors.T @ few
    return root, root @ moment / values


def _few_rows(gram: Array) -> Array | None:
    """Rows whose products are ``gram``, by a Cholesky factor with pivots; None unless it has half its size at most."""
    if gram.size == 0:
        return None
    factor, order, rank, _ = dpstrf(gram)
    if not 0 < rank <= len(gram) // 2:
        return None
    rows = np.empty((rank, len(gram)))
    rows[:, order - 1] = np.triu(factor[:rank])
    return rows


@dataclass(frozen=True, slots=True)
class LabelRows:
    """Rows and labels with the sums of all, as many as their rank."""

    root: Array
    """The rows; shape (r, p)."""
    rest: Array
    """Their labels; shape (r,)."""
    beyond: float
    """The part of the square of all labels that these do not have."""
    n_labeled: float
    """Number of labels that were summed."""

    @classmethod
    def of(cls, total: Statistics) -> LabelRows:
        """The rows of these sums; each has a sign by which its label is not negative."""
        root, rest = low_rank_root(total.gram, total.moment)
        signs = np.where(rest < 0.0, -1.0, 1.0)  # eigenvectors have no sign of their own
        root, rest = signs[:, None] * root, signs * rest
        return cls(root, rest, max(total.target_square - float(rest @ rest), 0.0), total.n_labeled)


@dataclass(frozen=True, slots=True)
class Explained:
    """Labels ``r`` on rows ``R`` under prior variances ``v`` of the weights, in units of the noise: ``K = I + R v R'``.

    All follows from ``S = R sqrt(v)``: a product of a matrix with itself, and one half of a solution, cost half of
    products and solutions with two matrices.
    """

    scaled: Array
    """``S``; shape (r, p)."""
    factor: Array
    """Of ``K``, see `quick_factor`."""
    solved: Array
    """``K^-1 r``."""

    @classmethod
    def by(cls, variances: Array, root: Array, rest: Array) -> Explained:
        """What prior variances of the weights, shape (p,), explain of labels ``rest`` on rows ``root``.

        Raises
        ------
        LinAlgError
            If ``K`` is not positive definite to working precision.
        """
        scaled = root * np.sqrt(variances)
        factor = quick_factor(scaled @ scaled.T + np.eye(len(root)))
        return cls(scaled, factor, quick_solve(factor, rest))

    @property
    def log_determinant(self) -> float:
        """Of ``K``."""
        return log_determinant(self.factor)

    @property
    def means(self) -> Array:
        """Posterior means of the weights, in prior deviations; shape (p,)."""
        found: Array = self.scaled.T @ self.solved
        return found

    @property
    def used(self) -> Array:
        """Of every prior variance, the part that the labels take away, between 0 and 1; shape (p,)."""
        half = quick_half_solve(self.factor, self.scaled)
        found: Array = np.einsum("rp,rp->p", half, half)
        return found
