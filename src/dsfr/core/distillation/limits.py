"""Limits of the features of lines: beyond them a feature counts as its limit, which bends lines without a condition.

Knots cut a feature into pieces: what of it lies below the first knot, between two, and above the last. A feature within
limits at two knots is the lower knot and the sum of the pieces in between. So the products of pieces give the sums of
lines under all limits at knots exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.lines import fit_lines, penalties

SWEEPS = 2
"""How often limits are chosen, feature by feature."""
FEWEST_KNOTS = 3
"""Of a feature with limits: two values need none."""
EQUAL = 1e-9
"""Relative difference of gains that count as equal."""
DIGITS = 6
"""Of the logarithm of the size of a term: sizes that are equal in them count as equal."""

Span = tuple[int, int]
"""First and last piece of a feature that lines follow."""


def piece_columns(Z: Array, knots: Array) -> Array:
    """Pieces of every column, one after the other; they sum to the distance of a value from the first knot.

    ``knots`` are ascending, shape (u, q); the result has the shape (n, u (q + 1)).
    """
    infinite = np.full((len(knots), 1), np.inf)
    start, end = np.column_stack([-infinite, knots]), np.column_stack([knots, infinite])
    anchors = np.column_stack([knots[:, 0], knots])
    pieces: Array = np.clip(Z[:, :, None], start, end) - anchors
    return pieces.reshape(len(Z), -1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Which pieces of every column lines follow."""

    knots: Array
    """Ascending, the last one repeated; shape (u, q)."""
    spans: tuple[Span, ...]

    @classmethod
    def none(cls, knots: Array) -> Limits:
        """All pieces of all columns."""
        return cls(knots, ((0, knots.shape[1]),) * len(knots))

    def ends(self, column: int) -> tuple[float | None, float | None]:
        """Lower and upper limit of a column; None where there is none."""
        (first, last), knots = self.spans[column], self.knots[column]
        return float(knots[first - 1]) if first else None, float(knots[last]) if last < len(knots) else None

    def with_span(self, column: int, span: Span) -> Limits:
        """The same limits but those of one column."""
        return replace(self, spans=(*self.spans[:column], span, *self.spans[column + 1 :]))

    def combinations(self) -> Array:
        """The constant, the columns within limits and the teacher in the columns of sums; (u + 2, 2 + u (q + 1))."""
        u, q = self.knots.shape
        found = np.zeros((u + 2, 2 + u * (q + 1)))
        found[0, 0] = found[-1, -1] = 1.0
        for column, span in enumerate(self.spans):
            found[column + 1, _places(column, q)] = _combined(self.knots[column], span)
        return found

    def sums(self, pieces: Array) -> Array:
        """Sums of lines within the limits, from those of pieces; shape (..., u + 2, u + 2)."""
        combined = self.combinations()
        found: Array = combined @ pieces @ combined.T
        return found


def _places(column: int, q: int) -> list[int]:
    """Places of the constant and of the pieces of a column in sums."""
    return [0, *range(1 + column * (q + 1), 1 + (column + 1) * (q + 1))]


def _combined(knots: Array, span: Span) -> Array:
    """A feature within limits as a combination of the constant and its pieces; (q + 2,)."""
    first, last = span
    found = np.zeros(len(knots) + 2)
    found[0], found[1 + first : 2 + last] = knots[max(first - 1, 0)], 1.0
    return found


def possible_spans(knots: Array, kept: tuple[float, float] | None = None) -> list[Span]:
    """Spans of a feature that leave something of it, the whole first.

    All values between ``kept`` are followed: conditions use them.
    """
    q, distinct = len(knots), len(np.unique(knots))
    whole = (0, q)
    if distinct < FEWEST_KNOTS:
        return [whole]
    limits = [(i, j) for i, j in combinations(range(-1, distinct + 1), 2) if (i, j) != (-1, distinct) and j > 0]
    found = [(i + 1, j if j < distinct else q) for i, j in limits if i < distinct - 1]
    lowest, highest = (np.inf, -np.inf) if kept is None else kept
    keeping = [(a, b) for a, b in found if (not a or knots[a - 1] <= lowest) and (b == q or knots[b] >= highest)]
    return [whole, *keeping]


def chosen_limits(
    pieces: Array, priors: Sequence[Array | None], knots: Array, possible: Sequence[Sequence[Span]], worth: float
) -> Limits:
    """Limits with which lines, fitted rule by rule, come closest to the teacher.

    Parameters
    ----------
    pieces : array of shape (k, 2 + u (q + 1), 2 + u (q + 1))
        Sums of the products of the constant, all pieces and the teacher's predictions, rule by rule.
    priors : sequence
        The line of the parent of every rule.
    knots : array of shape (u, q)
        Where limits may be.
    possible : sequence
        Spans that every column may have, the whole first.
    worth : float
        Drop of the weighted squared distance that a limit must be worth.
    """
    limits = Limits.none(knots)
    for _ in range(SWEEPS):
        before = limits.spans
        for column in _largest_first(limits.sums(pieces), priors):
            if len(possible[column]) > 1:
                limits = limits.with_span(column, _best_span(pieces, priors, limits, column, possible[column], worth))
        if limits.spans == before:
            break
    return limits


def _largest_first(sums: Array, priors: Sequence[Array | None]) -> list[int]:
    """Columns by the size of their terms in any rule."""
    sizes = np.zeros(sums.shape[1] - 2)
    for local, prior in zip(sums, priors, strict=True):
        line, _ = fit_lines(local, prior)
        mass = max(float(local[0, 0]), np.finfo(np.float64).tiny)
        variances = np.diag(local)[1:-1] / mass - (local[0, 1:-1] / mass) ** 2
        sizes = np.maximum(sizes, np.abs(line[1:]) * np.sqrt(np.maximum(variances, 0.0)))
    ranks = np.round(np.log(np.maximum(sizes, np.finfo(np.float64).tiny)), DIGITS)
    return [int(column) for column in np.argsort(-ranks, kind="stable")]


def _best_span(
    pieces: Array,
    priors: Sequence[Array | None],
    limits: Limits,
    column: int,
    possible: Sequence[Span],
    worth: float,
) -> Span:
    """The span of a column that explains most, the others being as they are; the first of equal ones."""
    q = limits.knots.shape[1]
    choices = np.stack([_combined(limits.knots[column], span) for span in possible])
    combined, places = limits.combinations(), _places(column, q)
    gains = sum(
        _explained(local, prior, combined, places, choices, column + 1)
        for local, prior in zip(pieces, priors, strict=True)
    )
    values = gains - worth * np.array([(first > 0) + (last < q) for first, last in possible])
    most = float(values.max())
    return possible[int(np.flatnonzero(values >= most - EQUAL * abs(most))[0])]


def _explained(
    local: Array, prior: Array | None, combined: Array, places: Sequence[int], choices: Array, column: int
) -> Array:
    """What a column explains of the penalised weighted squared distance that the others leave, for each choice; (m,).

    One rule: ``combined @ local @ combined.T`` are its sums, and ``choices`` are combinations of the entries ``places``
    that may take the place of ``column``.
    """
    others = [i for i in range(len(combined) - 1) if i != column]
    weights = penalties(local[0, 0], len(combined) - 1, has_parent=prior is not None)
    start = np.zeros(len(weights)) if prior is None else prior
    rows = combined[others] @ local
    system = rows @ combined[others].T + np.diag(weights[others])
    cross, target = rows[:, places] @ choices.T, rows[:, -1] + weights[others] * start[others]
    solved = np.linalg.solve(system, np.column_stack([target, cross]))
    own = np.einsum("mi,ij,mj->m", choices, local[np.ix_(places, places)], choices) + weights[column]
    left = own - np.einsum("im,im->m", cross, solved[:, 1:])
    moment = choices @ local[places, -1] + weights[column] * start[column] - cross.T @ solved[:, 0]
    usable = left > EQUAL * own
    explained: Array = np.where(usable, moment**2, 0.0) / np.where(usable, left, 1.0)
    return explained
