"""Leave-one-out in closed form: what each label's prediction would have been without that label."""

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.features import Basis
from dsfr.core.linear import cholesky, solve_factored
from dsfr.core.statistics import Quadratic


def leave_one_out_residuals(X: Array, y: Array, basis: Basis, quadratic: Quadratic, ridge: float) -> Array:
    """``(y_i - h_i'w) / (1 - h_i' C^-1 h_i)`` for every labelled row, with ``C = curvature + ridge I``; shape (n,).

    By the Sherman-Morrison formula this is the residual of row i after a fit without its label. Rules, scaling and the
    penalty on unlabelled rows stay as they are: they do not depend on one label. In blocks, so that nothing is n x n.

    Parameters
    ----------
    X, y : arrays of shape (n, d) and (n,)
        The labelled rows, scaled, and their standardised targets: those the quadratic was made of.
    basis : Basis
        Maps rows to features.
    quadratic : Quadratic
        Squared errors plus the penalty on unlabelled rows.
    ridge : float
        Weight of the squared norm of the weights.
    """
    factor = cholesky(quadratic.curvature + ridge * np.eye(len(quadratic.moment)))
    weights = solve_factored(factor, quadratic.moment)
    residuals = np.empty(len(y))
    for block in row_blocks(len(y)):
        H = basis.features(X[block])
        root = solve_triangular(factor, H.T, trans="T")
        leverage = np.einsum("pn,pn->n", root, root)
        residuals[block] = (y[block] - H @ weights) / (1.0 - leverage)
    return residuals
