"""Tails of a column with few values: where to move them, so that no cell of a grid at either end holds a few alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.scaling.affine import LARGEST_FLOAT, Ranges
from dsfr.core.scaling.grid import grid

MOST_MOVED = 0.05
"""Share of the rows that are moved at either end of a column, at most."""
ROOM = (5.0, 2.0, 1.0)
"""Factors on the fewest rows, the first for which that is enough: rules with a part of the rows have enough as well."""
INSIDE = 1e-3
"""Distance from the end of a cell of values that are moved to it, in lengths of the cell: the end is the next one's."""


@dataclass(frozen=True, slots=True)
class CellSums:
    """Rows in the cells of one column: below the first value of a grid, between two, and from the last one on."""

    values: Array
    """Ascending; shape (m,)."""
    counts: Array
    """Shape (m + 1,)."""
    positions: Array
    """Sums of positions within the cell, 0 at its lower end and 1 at its upper end; 0 in the outer two."""

    @classmethod
    def none(cls, values: Array) -> CellSums:
        """Of no rows."""
        return cls(values, *np.zeros((2, len(values) + 1)))

    def plus(self, column: Array) -> CellSums:
        """With more values of the column; missing ones are left out."""
        values, n = self.values, len(self.counts)
        x = column[~np.isnan(column)].astype(np.float64)
        place = np.searchsorted(values, x, side="right")
        is_inner = (place > 0) & (place < len(values))
        low, high = values[np.maximum(place - 1, 0)], values[np.minimum(place, len(values) - 1)]
        share = np.where(is_inner, (x - low) / np.where(is_inner, high - low, 1.0), 0.0)
        counts, positions = np.bincount(place, minlength=n), np.bincount(place, share, n)
        return CellSums(values, self.counts + counts, self.positions + positions)

    def limits(self, least: float) -> tuple[float, float]:
        """Where values beyond are to be moved to, at the lower and at the upper end; `LARGEST_FLOAT` where none are.

        From an end, the first cell that has enough rows, those from beyond it included.
        """
        cells = range(len(self.counts))
        return self._limit(cells, least, is_upper=False), self._limit(cells[::-1], least, is_upper=True)

    def _limit(self, cells: Sequence[int], least: float, *, is_upper: bool) -> float:
        none = LARGEST_FLOAT if is_upper else -LARGEST_FLOAT
        tried = (self._nearest(cells, factor * least, none, is_upper=is_upper) for factor in ROOM)
        return next((limit for limit in tried if limit is not None), none)

    def _nearest(self, cells: Sequence[int], least: float, none: float, *, is_upper: bool) -> float | None:
        """The limit nearest to an end; None if too many rows lie beyond."""
        beyond = 0.0
        for cell in cells:
            if self._is_enough(cell, least) and not beyond:
                return none
            if beyond > MOST_MOVED * self.counts.sum():
                return None
            ends = self._ends(cell, beyond, least) if beyond and self.counts[cell] else []
            if ends:
                return ends[-1] if is_upper else ends[0]
            beyond += float(self.counts[cell])
        return None

    def _is_enough(self, cell: int, least: float) -> bool:
        """Whether a cell has enough rows, and enough of them away from either end."""
        here, up = float(self.counts[cell]), float(self.positions[cell])
        is_inner = 0 < cell < len(self.values)
        return here >= least and (not is_inner or (_enough(up, least) and _enough(here - up, least)))

    def _ends(self, cell: int, beyond: float, least: float) -> list[float]:
        """Ends of a cell that has enough rows once those from beyond are there; the upper one is within the cell."""
        here, up = float(self.counts[cell]), float(self.positions[cell])
        if here + beyond < least:
            return []
        if cell == 0:
            return [float(self.values[0] - INSIDE * (self.values[-1] - self.values[0]))]
        low = float(self.values[cell - 1])
        if cell == len(self.values):
            return [low]
        high = float(self.values[cell])
        ends = [low] if _enough(up, least) and here - up + beyond >= least else []
        # Where all rows are at the lower end, as whole numbers may be, those from beyond go there as well.
        return (
            [*ends, high - INSIDE * (high - low)] if up and up + beyond >= least and _enough(here - up, least) else ends
        )


def _enough(total: float, least: float) -> bool:
    return total == 0.0 or total >= least


def tail_limits(ranges: Ranges, parts: Iterable[Array], least: float) -> Ranges:
    """Limits of every column beyond which it has few rows.

    Parameters
    ----------
    ranges : Ranges
        Declared ranges, which the grid follows from.
    parts : iterable of arrays of shape (n, d)
        Rows, part by part.
    least : float
        Fewest rows in a cell at either end.

    Returns
    -------
    Ranges
        `LARGEST_FLOAT` where nothing has to be moved, or more than `MOST_MOVED` of the rows would have to be.
    """
    cells = [CellSums.none(np.unique(values)) for values in grid(ranges)]
    for X in parts:
        cells = [of_column.plus(X[:, j]) for j, of_column in enumerate(cells)]
    low, high = np.array([of_column.limits(least) for of_column in cells]).T
    return Ranges(low, np.maximum(low, high))
