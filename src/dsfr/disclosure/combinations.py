"""Whether any combination of answers about rules is about few own rows, however many answers are combined.

A sum over rows has a weight for each, and a combination of sums the combination of their weights. The largest part that
one row can have of the squared weights of any combination is its leverage in the matrix of all weights: the diagonal of
the projection on its columns. Below one over `Policy.min_mass` no combination is about fewer rows, by squares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from dsfr.core.arrays import Array
from dsfr.disclosure.differences import Weights, row_parts
from dsfr.disclosure.history import asked, has_centers, is_answered, row_batches, weights_of
from dsfr.disclosure.rules import Request

HIDDEN = 1e-12
"""Directions of combinations with smaller weights, as a part of the largest, are hidden by rounding."""


def combinations(request: Request) -> str | None:
    """No combination of the rules of a fit, those of earlier questions among them, is about a few own rows."""
    new = [one for one in asked(request) if has_centers(one, is_cluster=False) and not is_answered(request, one)]
    least = request.policy.min_mass
    if not new or least <= 0.0:
        return None
    earlier = [one for one in request.answered if has_centers(one, is_cluster=False)]
    leverage = largest_leverage([weights_of(one) for one in (*earlier, *new)], lambda: row_batches(request))
    if leverage * least <= 1.0:
        return None
    return (
        "rules of which a combination, with those of earlier questions of this fit, is about "
        f"{int(1.0 / leverage)} of the own rows, and min_mass is {least:g}. Take fewer rules, or the same again"
    )


def largest_leverage(columns: Sequence[Weights], blocks: Callable[[], Iterable[Array]]) -> float:
    """Largest part of the squared weights of a combination that a row can have; over two passes, block by block."""
    triangle = np.empty((0, 0))
    for X in row_parts(blocks()):
        block = np.hstack([weights(X) for weights in columns])
        below = np.vstack([triangle, block]) if triangle.size else block
        triangle = np.asarray(np.linalg.qr(below, mode="r"), dtype=np.float64)
    if not triangle.size:
        return 0.0
    if not np.isfinite(triangle).all():
        return 1.0
    _, sizes, directions = np.linalg.svd(triangle)
    kept = sizes > HIDDEN * sizes[0]
    inverse = directions[: len(sizes)][kept].T / sizes[kept]
    squares = (np.hstack([weights(X) for weights in columns]) @ inverse for X in row_parts(blocks()))
    return min(1.0, max(float((block**2).sum(axis=1).max(initial=0.0)) for block in squares))
