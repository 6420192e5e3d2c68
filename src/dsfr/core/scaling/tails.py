"""Tails of a column with few values: where to move them, so that no cell of a grid at either end holds a few alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.scaling.affine import LARGEST_FLOAT, Ranges
from dsfr.core.scaling.grid import grid

ROOM = ((5.0, 0.01), (2.0, 0.02), (1.0, 0.05))
"""Factor on the fewest rows, and share of the rows that are moved at either end at most: rules with a part of the rows
have enough as well, where that takes few."""
MOST_MOVED = max(share for _, share in ROOM)
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
        none, n = LARGEST_FLOAT if is_upper else -LARGEST_FLOAT, float(self.counts.sum())
        for factor, share in ROOM:
            limit = self._nearest(cells, factor * least, share * n, is_upper=is_upper)
            if limit is not None:
                return none if np.isinf(limit) else limit
        return none

    def _nearest(self, cells: Sequence[int], least: float, most: float, *, is_upper: bool) -> float | None:
        """The limit nearest to an end, infinite if nothing is to be moved; None if too many rows lie beyond."""
        beyond = 0.0
        for cell in cells:
            if beyond > most:
                return None
            if self._is_enough(cell, beyond if is_upper else 0.0, 0.0 if is_upper else beyond, least):
                return self._end(cell, is_upper=is_upper) if beyond else np.inf
            beyond += float(self.counts[cell])
        return None

    def _is_enough(self, cell: int, from_above: float, from_below: float, least: float) -> bool:
        """Whether a cell has enough rows, those from beyond included, and enough away from either of its ends, or none.

        Where all are at the lower end, as whole numbers may be, those from above go there as well.
        """
        here, up = float(self.counts[cell]), float(self.positions[cell])
        if here == 0.0 or here + from_above + from_below < least:
            return False
        if cell in (0, len(self.values)) or up == 0.0:
            return True
        return _enough(up + from_above, least) and _enough(here - up + from_below, least)

    def _end(self, cell: int, *, is_upper: bool) -> float:
        """The end of a cell where values from beyond go; the upper one lies within, as the next cell begins there."""
        values = self.values
        if cell == 0:
            return float(values[0] - INSIDE * (values[-1] - values[0]))
        low = float(values[cell - 1])
        if not is_upper or cell == len(values) or self.positions[cell] == 0.0:
            return low
        return float(values[cell] - INSIDE * (values[cell] - low))


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
