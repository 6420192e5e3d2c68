"""Shrinkage of the slopes of different rules towards their mean, feature by feature.

Clusters do not separate low from high values of a feature with small relevance ``s_j``, so slopes that differ between
rules along it could only fit noise. The slope of rule k along feature j is ``mean_j + s_j (u_kj - mean_j)``, and the
ridge penalises ``u``: the mean over rules is penalised as before, deviations from it more.
"""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array


def shrinkage_matrix(relevance: Array, n_rules: int) -> Array:
    """The symmetric matrix that maps weights ``u`` to those of ordinary lines; shape (k(d+1), k(d+1)).

    Intercepts are not shrunk.
    """
    shrunk = np.append(1.0, relevance)
    n = len(shrunk)
    blocks = np.zeros((n_rules, n, n_rules, n))
    columns = np.arange(n)
    # Advanced indices come first: one block of rules by rules for every column.
    blocks[:, columns, :, columns] = (1.0 - shrunk)[:, None, None] / n_rules
    matrix: Array = blocks.reshape(n_rules * n, n_rules * n)
    matrix[np.diag_indices(len(matrix))] += np.tile(shrunk, n_rules)
    return matrix


def unshrunk_factor(factor: Array, shrinkage: Array) -> Array:
    """Upper Cholesky factor of the system of ordinary weights, from that of the weights ``u``.

    Computed without forming the system, whose condition number is larger by the inverse square of the least relevance.
    """
    upper = np.linalg.qr(np.linalg.solve(shrinkage, factor.T).T, mode="r")
    signed: Array = upper * np.sign(np.diag(upper))[:, None]
    return signed
