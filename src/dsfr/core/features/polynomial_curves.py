"""Polynomials of a feature's values, orthonormal over the rows: curves for functions that are smooth.

A Gaussian kernel has such functions, and the variance of each falls by the same factor from one degree to the next, the
faster the longer the kernel's length. With a factor for each feature, products of polynomials make a Gaussian process
with automatic relevance determination of finitely many weights, whose evidence follows from sums over labels.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial import legendre

from dsfr.core.arrays import Array
from dsfr.core.features.quantile_curves import LEAST_STEP, shares_of_rows

LEAST_SHARE = 1e-6
"""Of a polynomial, what those of lower degree must leave over: with less, rounding decides."""


def polynomial_curves(knots: Array, ranks: Array, n_curves: int) -> Array:
    """Values at the knots of polynomials of degree 2, 3, ... of every feature; shape (m, d, n_curves).

    Over the rows they have mean 0 and variance 1, and are not correlated with each other nor with the feature. A
    feature with ``m`` values has those up to degree ``m - 1`` at most; the others are 0.
    """
    curves = np.zeros((*knots.shape, n_curves))
    for j in range(knots.shape[1]):
        distinct = np.append(True, np.diff(knots[:, j]) >= LEAST_STEP)
        own = knots[distinct, j]
        if len(own) > 2:
            found = _orthonormal(own, shares_of_rows(ranks[distinct, j]), min(n_curves + 1, len(own) - 1))
            curves[:, j, : found.shape[1]] = found[np.cumsum(distinct) - 1]
    return curves


def _orthonormal(values: Array, shares: Array, degree: int) -> Array:
    """Polynomials of degree 2 to ``degree``, or to the highest that can be told from lower ones; shape (m, ...)."""
    middle, half = (values[0] + values[-1]) / 2.0, (values[-1] - values[0]) / 2.0
    root = np.sqrt(shares)
    powers = root[:, None] * legendre.legvander((values - middle) / half, degree)
    Q, R = np.linalg.qr(powers / np.linalg.norm(powers, axis=0))
    own = np.diag(R)
    n_told = int(np.argmax(np.append(np.abs(own) < LEAST_SHARE, True)))
    found: Array = Q[:, 2:n_told] / root[:, None] * np.sign(own[2:n_told])
    return found
