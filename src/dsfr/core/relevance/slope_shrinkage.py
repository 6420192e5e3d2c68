"""Shrinkage of the slopes of different rules towards their mean, feature by feature.

Clusters do not separate low from high values of a feature with small relevance ``s_j``, so slopes that differ between
rules along it could only fit noise. The slope of rule k along feature j is ``mean_j + s_j (u_kj - mean_j)``, and the
ridge penalises ``u``: the mean over rules is penalised as before, deviations from it more. A feature that is the same
for all labels has hardly any slope: it would share the constants with them, and rows where it differs would be off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.solve.statistics import Statistics, same_for_all

CONSTANT = 1e-3
"""Factor on slopes along features that are the same for all labels: 0 could not be undone."""


@dataclass(frozen=True, slots=True)
class Shrinkage:
    """The symmetric matrix ``T`` that maps weights ``u`` to those of ordinary lines, by what it does.

    It has k(d+1) rows and columns, and few that are not 0 in each: products with it take no longer than reading.
    """

    factors: Array
    """On the deviations from the mean over rules, of intercepts and of slopes along each feature; shape (d+1,)."""
    of_means: Array
    """On the means over rules; shape (d+1,)."""
    n_rules: int

    @classmethod
    def of(cls, relevance: Array, n_rules: int, is_constant: npt.NDArray[np.bool_] | None = None) -> Shrinkage:
        """By the relevance of each feature, and whether it is the same for all labels; intercepts are not shrunk."""
        kept = np.ones(len(relevance)) if is_constant is None else np.where(is_constant, CONSTANT, 1.0)
        return cls(np.append(1.0, kept * relevance), np.append(1.0, kept), n_rules)

    def with_constant(self, is_constant: npt.NDArray[np.bool_]) -> Shrinkage:
        """The same relevances, where other features are the same for all labels."""
        return Shrinkage.of((self.factors / self.of_means)[1:], self.n_rules, is_constant)

    def times(self, weights: Array) -> Array:
        """``T`` times weights, shape (k(d+1),), or times the columns of a matrix."""
        own = weights.reshape(self.n_rules, len(self.factors), -1)
        mean = own.mean(axis=0)
        shrunk: Array = own - mean
        shrunk *= self.factors[:, None]
        shrunk += self.of_means[:, None] * mean
        return shrunk.reshape(weights.shape)

    @property
    def inverse(self) -> Shrinkage:
        """What undoes it."""
        return Shrinkage(1.0 / self.factors, 1.0 / self.of_means, self.n_rules)


def constant_features(total: Statistics, n_rules: int) -> npt.NDArray[np.bool_]:
    """Whether each feature is the same for all labels, from sums over these; shape (d,).

    Strengths of rules sum to 1, so sums over rules are those of the features themselves.
    """
    p = len(total.feature_sum) // n_rules
    squares = np.einsum("kjlj->j", total.gram.reshape(n_rules, p, n_rules, p))
    return same_for_all(squares, total.feature_sum.reshape(n_rules, p).sum(axis=0), total.n_labeled)[1:]


def unshrunk_factor(factor: Array, shrinkage: Shrinkage) -> Array:
    """Upper Cholesky factor of the system of ordinary weights, from that of the weights ``u``.

    Computed without forming the system, whose condition number is larger by the inverse square of the least relevance.
    """
    upper = np.linalg.qr(shrinkage.inverse.times(factor.T).T, mode="r")
    signed: Array = upper * np.sign(np.diag(upper))[:, None]
    return signed
