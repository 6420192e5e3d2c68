"""Shrinkage of the slopes of different rules towards their mean, feature by feature.

Clusters do not separate low from high values of a feature with small relevance ``s_j``, so slopes that differ between
rules along it could only fit noise. The slope of rule k along feature j is ``mean_j + s_j (u_kj - mean_j)``, and the
ridge penalises ``u``: the mean over rules is penalised as before, deviations from it more.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """The symmetric matrix ``T`` that maps weights ``u`` to those of ordinary lines, by what it does.

    It has k(d+1) rows and columns, and few that are not 0 in each: products with it take no longer than reading.
    """

    factors: Array
    """On the deviations from the mean over rules, of intercepts and of slopes along each feature; shape (d+1,)."""
    n_rules: int

    @classmethod
    def of(cls, relevance: Array, n_rules: int) -> Shrinkage:
        """By the relevance of each feature; intercepts are not shrunk."""
        return cls(np.append(1.0, relevance), n_rules)

    def times(self, weights: Array) -> Array:
        """``T`` times weights, shape (k(d+1),), or times the columns of a matrix."""
        own = weights.reshape(self.n_rules, len(self.factors), -1)
        mean = own.mean(axis=0)
        shrunk: Array = own - mean
        shrunk *= self.factors[:, None]
        shrunk += mean
        return shrunk.reshape(weights.shape)

    @property
    def inverse(self) -> Shrinkage:
        """What undoes it."""
        return Shrinkage(1.0 / self.factors, self.n_rules)


def unshrunk_factor(factor: Array, shrinkage: Shrinkage) -> Array:
    """Upper Cholesky factor of the system of ordinary weights, from that of the weights ``u``.

    Computed without forming the system, whose condition number is larger by the inverse square of the least relevance.
    """
    upper = np.linalg.qr(shrinkage.inverse.times(factor.T).T, mode="r")
    signed: Array = upper * np.sign(np.diag(upper))[:, None]
    return signed
