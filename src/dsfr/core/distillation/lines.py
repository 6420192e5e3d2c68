"""Lines of rules from sums of products: least squares with the parent's line as the prior, few terms, few digits.

A matrix of sums has a row for the constant, one for every feature of the line, and a last one for what is to be
reproduced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray

RIDGE = 0.01
"""Weight, per unit of a rule's mass, of the squared distance of slopes to those of the parent, in scaled units."""
LEAST = 1e-9
"""The same for the constant, and for all lines without a parent: a column that is constant has slope 0."""
CONSTANT = 1e-9
"""A column whose variance within a rule is below this part of its mean square is constant there."""


def matrices(triangles: Array, size: int) -> Array:
    """Symmetric matrices of upper triangles; shape (..., size, size)."""
    full = np.zeros((*triangles.shape[:-1], size, size))
    i, j = np.triu_indices(size)
    full[..., i, j] = triangles
    full[..., j, i] = triangles
    return full


def penalties(mass: Array, n_columns: int, *, has_parent: bool) -> Array:
    """Diagonal of the penalty on the distance to the prior; shape (..., columns)."""
    weights = np.full(n_columns, RIDGE if has_parent else LEAST)
    weights[0] = LEAST
    diagonal: Array = np.maximum(mass, np.finfo(np.float64).tiny)[..., None] * weights
    return diagonal


def fit_lines(sums: Array, prior: Array | None) -> tuple[Array, Array]:
    """Lines that minimise the weighted squared distance, and that distance; shapes (..., p) and (...)."""
    gram, moment, square = sums[..., :-1, :-1], sums[..., :-1, -1], sums[..., -1, -1]
    diagonal = penalties(sums[..., 0, 0], gram.shape[-1], has_parent=prior is not None)
    start = np.zeros(gram.shape[-1]) if prior is None else prior
    system = gram + diagonal[..., None] * np.eye(gram.shape[-1])
    lines = np.linalg.solve(system, (moment + diagonal * start)[..., None])[..., 0].astype(np.float64)
    return lines, distance(lines, gram, moment, square)


def distance(lines: Array, gram: Array, moment: Array, square: Array) -> Array:
    """``sum w (t - line)^2`` from sums; not below 0."""
    fitted = np.einsum("...i,...ij,...j->...", lines, gram, lines)
    left: Array = np.maximum(square - 2.0 * np.einsum("...i,...i->...", lines, moment) + fitted, 0.0)
    return left


@dataclass(frozen=True, slots=True)
class LineRules:
    """What a line may be."""

    max_terms: int | None = None
    signs: tuple[tuple[int, int], ...] = ()
    """Columns whose slope has a prescribed sign, and the sign, 1 or -1."""
    without: tuple[int, ...] = ()
    """Columns that lines may not have."""
    categories: tuple[tuple[tuple[int, float], ...], ...] = ()
    """Columns that indicate all levels of one category, with half the range by which each was scaled."""


def plain_prior(sums: Array, prior: Array, categories: Sequence[Sequence[tuple[int, float]]]) -> Array:
    """The line of the parent in the plainest form that is the same on the rows of a rule; shape (p,).

    A column that is constant there counts in the constant. Indicators of all levels of a category sum to 1, so that the
    same number can be taken from all their slopes and added to the constant: the median is.
    """
    mass, plain = max(float(sums[0, 0]), np.finfo(np.float64).tiny), prior.copy()
    means = sums[0, :-1] / mass
    spreads = np.diag(sums)[:-1] / mass - means**2
    constant = [j for j in range(1, len(prior)) if spreads[j] <= CONSTANT * (1.0 + means[j] ** 2)]
    plain[0] += plain[constant] @ means[constant]
    plain[constant] = 0.0
    for columns in categories:
        varying = [(j, half) for j, half in columns if j not in constant]
        if not varying:
            continue
        shift = float(np.median([plain[j] / half for j, half in varying]))
        for j, half in varying:
            plain[0] += shift * half * means[j]
            plain[j] -= shift * half
    return plain


def forward_selection(sums: Array, n_terms: int) -> IntArray:
    """Columns, the constant left out, that together reproduce the last one best, chosen one after the other; sorted.

    At most ``n_terms``; those that add nothing are chosen last.
    """
    left = sums.copy()
    _sweep(left, 0)
    sizes = np.diag(left).copy()
    chosen: list[int] = []
    for _ in range(min(n_terms, len(sums) - 2)):
        diagonal = np.diag(left)[1:-1]
        usable = diagonal > 1e-9 * np.maximum(sizes[1:-1], np.finfo(np.float64).tiny)
        gains = np.where(usable, left[1:-1, -1] ** 2 / np.where(usable, diagonal, 1.0), -1.0)
        gains[[j - 1 for j in chosen]] = -2.0
        best = int(gains.argmax()) + 1
        chosen.append(best)
        if gains[best - 1] >= 0.0:
            _sweep(left, best)
    return np.sort(np.array(chosen, dtype=np.int64))


def _sweep(matrix: Array, pivot: int) -> None:
    """Take the part that one column explains out of all others, in place."""
    if matrix[pivot, pivot] > 0.0:
        matrix -= np.outer(matrix[:, pivot], matrix[pivot]) / matrix[pivot, pivot]
