"""Memberships of rows in clusters, and how much a row counts for a cluster."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from dsfr.core.arrays import Array, column_sums

MAX_SQUARED_DISTANCE = 1e300
"""Cap of squared distances."""


def squared_distances(X: Array, centers: Array) -> Array:
    """Squared Euclidean distance of every row to every center; shape (n, k).

    Computed from differences, not from ``|x|^2 - 2 x'm + |m|^2``, so that a row on a center has distance exactly 0.
    Distances to one center lie side by side in memory: what is computed from them then has long inner loops.
    """
    distances: Array = cdist(centers, X, "sqeuclidean").T
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
    nearest: Array = distances.min(axis=1, keepdims=True)
    if nearest.min(initial=1.0) > 0.0:
        ratios: Array = nearest / distances
    else:
        ratios = np.ones_like(distances)
        np.divide(nearest, distances, out=ratios, where=distances > 0.0)
    raised = _raised(ratios, power)
    scale = column_sums(raised.T)[:, None] ** -fuzzifier
    ratios *= raised
    ratios *= scale
    return ratios


def whole_power(fuzzifier: float) -> int | None:
    """``1/(a-1)`` if that is an integer up to rounding, else None.

    >>> whole_power(2.0), whole_power(1.1), whole_power(1.3)
    (1, 10, None)
    """
    power = 1.0 / (fuzzifier - 1.0)
    whole = round(power)
    return whole if whole >= 1 and abs(power - whole) <= 1e-12 * power else None


def _raised(values: Array, power: int) -> Array:
    """Elementwise power >= 1 by repeated squaring; the values themselves if it is 1."""
    factor, result = values, None
    while power > 1:
        if power & 1:
            result = factor if result is None else result * factor
        factor = factor * factor
        power >>= 1
    return factor if result is None else result * factor


@dataclass(frozen=True, slots=True)
class Weighting:
    """How much a row counts in the sums of a cluster: a power of its membership, perhaps at its own cluster alone."""

    exponent: float | None = None
    """Power of the membership; None: the fuzzifier, as in the objective. Paper eq. (5), as printed, is 1."""
    nearest_only: bool = False
    """Whether a row counts for its nearest center alone: the sums over ``C_k`` of paper eq. (4), (17), (19), (26)."""

    def of(self, distances: Array, fuzzifier: float) -> Array:
        """Weight of every row in every cluster, from squared distances; shape (n, k)."""
        if self.exponent is None:
            weights = membership_powers(distances, fuzzifier)
        else:
            weights = np.exp(self.exponent * log_memberships(distances, fuzzifier))
        if self.nearest_only:
            weights *= np.arange(distances.shape[1]) == distances.argmin(axis=1)[:, None]
        return weights


TEXTBOOK = Weighting()
"""Every row counts for every cluster by ``u^a``."""
