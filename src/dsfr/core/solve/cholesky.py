"""Symmetric positive definite systems by Cholesky factors."""

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpocon, dpotrf, dpotrs, dtrtri

from dsfr.core.arrays import Array


class SingularSystemError(ValueError):
    """The normal equations do not determine the weights."""


def cholesky(matrix: Array) -> Array:
    """Upper Cholesky factor of a symmetric positive definite matrix; the lower triangle is zero.

    Raises
    ------
    SingularSystemError
        If the matrix is not positive definite to working precision.
    """
    try:
        factor, _ = cho_factor(matrix, lower=False)
    except LinAlgError:
        raise SingularSystemError(_singular(matrix, 0.0)) from None
    upper: Array = np.triu(factor)
    # LAPACK estimates the condition from the factor in O(p^2).
    reciprocal_condition, _ = dpocon(upper, float(np.abs(matrix).sum(axis=0).max()), uplo="U")
    if reciprocal_condition < np.finfo(np.float64).eps:
        raise SingularSystemError(_singular(matrix, float(reciprocal_condition)))
    return upper


def solve_factored(factor: Array, right: Array) -> Array:
    """Solution ``x`` of ``R'R x = right`` for the factor ``R`` of `cholesky`."""
    solution: Array = cho_solve((factor, False), right)
    return solution


def quick_factor(matrix: Array) -> Array:
    """What ``cho_factor(matrix)[0]`` is, without scipy's checks, which take longer than small systems themselves.

    The upper triangle is the factor; the lower one is arbitrary.

    Raises
    ------
    LinAlgError
        If the matrix is not positive definite to working precision.
    ValueError
        If it is not finite, with the words of scipy.
    """
    if matrix.size == 0:  # which LAPACK's interface refuses
        return matrix
    factor, failed = dpotrf(matrix, lower=False, clean=False)
    if failed:
        raise LinAlgError(f"the leading minor of order {failed} is not positive definite")
    # Whatever is not finite above the diagonal makes a later entry of it so.
    if not np.isfinite(factor.diagonal()).all():
        raise ValueError("array must not contain infs or NaNs")
    found: Array = factor
    return found


def quick_solve(factor: Array, right: Array) -> Array:
    """Solution ``x`` of ``R'R x = right`` for a factor of `quick_factor`, without checks."""
    solution: Array = dpotrs(factor, right, lower=False)[0] if right.size else right.copy()
    return solution


def quick_half_solve(factor: Array, right: Array) -> Array:
    """``R'^-1 right`` for a factor of `quick_factor`, without checks; ``right' (R'R)^-1 right`` is its own square."""
    # From the right to the transpose, which is in the order of LAPACK where ``right`` is in that of C: no copy.
    half: Array = dtrsm(1.0, factor, right.T, side=True).T if right.size else right.copy()
    return half


def inverse_diagonal(factor: Array) -> Array:
    """Diagonal of the inverse of the matrix with this factor, of `quick_factor`."""
    inverse = np.triu(dtrtri(factor)[0]) if factor.size else factor
    diagonal: Array = np.einsum("ij,ij->i", inverse, inverse)
    return diagonal


def log_determinant(factor: Array) -> float:
    """Of the matrix with this factor."""
    return 2.0 * float(np.log(factor.diagonal()).sum())


def _singular(matrix: Array, reciprocal_condition: float) -> str:
    return (
        f"the {len(matrix)} x {len(matrix)} system of the weights is singular to working precision "
        f"(reciprocal condition {reciprocal_condition:.1e}). Likely causes: (a) ridge is too small for this table, "
        "raise it (0.1 and 0.001 are usual values); (b) two rules coincide because there are fewer distinct rows than "
        "rules, lower n_rules; (c) a penalty weight (consistency, smoothness) is so large that it drowns the ridge."
    )
