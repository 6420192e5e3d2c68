"""Whether a matrix of sums of products can be one: symmetric and positive semidefinite, to rounding.

Necessary conditions cost O(p^2): no negative diagonal, and ``g_ij^2 <= g_ii g_jj``. Eigenvalues are computed for small
matrices only.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.storage.bundles import Bundle
from dsfr.training.tasks.declaration import Rule
from dsfr.training.tasks.symbols import Sizes, size_of

MAX_DECOMPOSED = 64
"""Larger matrices are not decomposed."""
ROUNDING = 1e-6
"""Of the largest entry, or of 1 where entries are smaller: differences of sums cancel to that."""


def gram_triangle(symbol: str) -> Rule:
    """The upper triangle of a Gram matrix of so many features."""

    def holds(triangle: npt.NDArray[np.float64], _: Bundle, sizes: Sizes) -> bool:
        size = size_of(symbol, sizes)
        return size is not None and triangle_is_semidefinite(triangle, size)

    return Rule("the upper triangle of a positive semidefinite matrix", holds)


def gram_triangles(symbol: str) -> Rule:
    """The upper triangles of several Gram matrices of so many features, one in every row."""

    def holds(triangles: npt.NDArray[np.float64], _: Bundle, sizes: Sizes) -> bool:
        size = size_of(symbol, sizes)
        return size is not None and all(triangle_is_semidefinite(triangle, size) for triangle in triangles)

    return Rule("upper triangles of positive semidefinite matrices", holds)


GRAM = Rule("a symmetric positive semidefinite matrix", lambda matrix, *_: matrix_is_semidefinite(matrix))


def matrix_is_semidefinite(matrix: Array) -> bool:
    """Whether a square matrix is symmetric and, as far as that is checked, positive semidefinite."""
    slack = ROUNDING * max(float(np.abs(matrix).max(initial=0.0)), 1.0)
    if not (np.abs(matrix / 2.0 - matrix.T / 2.0) <= slack).all():  # halves cannot overflow
        return False
    return triangle_is_semidefinite(matrix[np.triu_indices(len(matrix))], len(matrix))


def triangle_is_semidefinite(triangle: Array, size: int) -> bool:
    """Whether the upper triangle of a matrix, row by row, can be that of a positive semidefinite one."""
    sizes = np.abs(triangle)
    largest = max(float(sizes.max(initial=0.0)), 1.0)
    lengths = np.arange(size, 0, -1)
    diagonal = triangle[np.cumsum(lengths) - lengths] / largest
    if (diagonal < -ROUNDING).any():
        return False
    roots = np.sqrt(np.maximum(diagonal, 0.0) + ROUNDING)
    others = np.concatenate([np.empty(0), *(roots[i:] for i in range(size))])
    sizes /= largest * (1.0 + ROUNDING)
    if (sizes > np.repeat(roots, lengths) * others).any():
        return False
    return size > MAX_DECOMPOSED or _smallest_eigenvalue(triangle / largest, size) >= -ROUNDING * size


def _smallest_eigenvalue(triangle: Array, size: int) -> float:
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return float(np.linalg.eigvalsh(matrix, UPLO="U")[0]) if size else 0.0
