"""Leave-one-out in closed form: what each label's prediction would have been without that label."""

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.features.basis import FeatureMap
from dsfr.core.solve.cholesky import cholesky, solve_factored
from dsfr.core.solve.statistics import Quadratic


def left_out_residuals(H: Array, y: Array, factor: Array, weights: Array) -> Array:
    """``(y_i - h_i'w) / (1 - h_i' C^-1 h_i)`` of rows with features ``H``, given the factor of ``C``; shape (n,).

    By the Sherman-Morrison formula this is the residual of row i after a fit without its label. Rules, scaling and the
    penalty on unlabelled rows stay as they are: they do not depend on one label.
    """
    root = solve_triangular(factor, H.T, trans="T")
    leverage = np.einsum("pn,pn->n", root, root)
    # A label that alone decides its prediction has leverage 1, or more by rounding.
    residuals: Array = (y - H @ weights) / np.maximum(1.0 - leverage, np.finfo(np.float64).eps)
    return residuals


def leave_one_out_residuals(X: Array, y: Array, basis: FeatureMap, quadratic: Quadratic, ridge: float) -> Array:
    """`left_out_residuals` of every labelled row, with ``C = curvature + ridge I``; shape (n,), in blocks.

    Parameters
    ----------
    X, y : arrays of shape (n, d) and (n,)
        The labelled rows, scaled, and their standardised targets: those the quadratic was made of.
    basis : FeatureMap
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
        residuals[block] = left_out_residuals(basis.features(X[block]), y[block], factor, weights)
    return residuals
