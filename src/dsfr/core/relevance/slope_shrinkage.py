"""Lines of different rules that differ only along features that matter.

A rule base looks at features according to their relevance ``s_j``. Where that is small, clusters do not tell low from
high, and lines that bend the model along the feature could only fit chance. So slopes of rule k along feature j are
``mean_j + s_j (u_kj - mean_j)`` with weights ``u`` that the ridge sees alike: the mean over rules is as free as ever,
and deviations from it are held back. The model stays one of ordinary lines.
"""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array


def ties(relevance: Array, n_rules: int) -> Array:
    """The symmetric matrix that maps weights ``u`` to those of ordinary lines; shape (k(d+1), k(d+1)).

    Intercepts are not tied.
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


def untied_factor(factor: Array, tied: Array) -> Array:
    """Upper Cholesky factor of the system of ordinary weights, from that of the weights ``u``.

    Without the system itself: its condition is worse by the square of the least relevance.
    """
    upper = np.linalg.qr(np.linalg.solve(tied, factor.T).T, mode="r")
    signed: Array = upper * np.sign(np.diag(upper))[:, None]
    return signed
