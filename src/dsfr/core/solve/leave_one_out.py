"""Leave-one-out in closed form: what each label's prediction would have been without that label."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.features.basis import FeatureMap
from dsfr.core.solve.cholesky import cholesky, solve_factored
from dsfr.core.solve.statistics import Quadratic


@dataclass(frozen=True, slots=True)
class Together:
    """Of every row, those that are left out with it, itself included: their number and the sum of their residuals.

    With weights, the sum of the weights and the weighted sum of the residuals.
    """

    size: Array
    residual_sum: Array


def leverages(H: Array, factor: Array) -> Array:
    """``h_i' C^-1 h_i`` of rows with features ``H``, given the factor of ``C``; shape (n,)."""
    root = solve_triangular(factor, H.T, trans="T")
    found: Array = np.einsum("pn,pn->n", root, root)
    return found


def left_out_variances(leverage: Array, together: Together | None = None) -> Array:
    """Variance of a label's prediction without that label, in units of the noise, the noise included; shape (n,).

    ``1 + l / (1 - m l)`` for a row of leverage ``l`` that is left out with ``m - 1`` others.
    """
    size = 1.0 if together is None else together.size
    variances: Array = 1.0 + leverage / np.maximum(1.0 - size * leverage, np.finfo(np.float64).eps)
    return variances


def left_out_residuals(residuals: Array, leverage: Array, together: Together | None = None) -> Array:
    """``(y_i - h_i'w) / (1 - h_i' C^-1 h_i)`` from residuals and leverages of all rows; shape (n,).

    By the Sherman-Morrison formula this is the residual of row i after a fit without its label. Rules, scaling and the
    penalty on unlabelled rows stay as they are: they do not depend on one label.

    With ``together``, rows with equal (or nearly equal) features are left out in groups. A group of m rows with
    leverage ``l`` each and residuals that sum to ``s`` has ``y_i - h_i'w + l s / (1 - m l)``, by Woodbury's formula.
    """
    # A label that alone decides its prediction has leverage 1, or more by rounding.
    least = np.finfo(np.float64).eps
    if together is not None:
        share = leverage / np.maximum(1.0 - together.size * leverage, least)
        left: Array = residuals + share * together.residual_sum
        return left
    alone: Array = residuals / np.maximum(1.0 - leverage, least)
    return alone


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
        H = basis.features(X[block])
        residuals[block] = left_out_residuals(y[block] - H @ weights, leverages(H, factor))
    return residuals
