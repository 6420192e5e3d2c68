"""Duplicate rows, as opposed to equal rows that are independent observations.

A table that was joined with itself holds every row twice. Leave-one-out then predicts a row from its duplicate, and
evidence takes a row that repeats for a target without noise. Rows of a few whole numbers, in contrast, are equal by
chance, and their frequencies are what there is to learn.

The rule compares the pairs of equal rows with the pairs that differ in one column alone. If column j agrees by chance
with probability ``c_j`` (its share of agreeing pairs), then ``D_j`` pairs that differ in column j alone come with
``D_j c_j / (1 - c_j)`` pairs that agree in it as well. Equal rows are duplicates if there are more than `MARGIN` times
as many as all columns together explain. All counts are sums over rows, and add over agents.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from dsfr.core.arrays import Array, IntArray

Hashes = npt.NDArray[np.uint64]

MARGIN = 4.0
"""Columns depend on each other, so that equal rows are somewhat more frequent than their columns tell."""
FEW_CELLS, FILLED = 32, 4
"""Fewer distinct rows than this, most of which occur at least so often, and not evenly: cells of a small table."""
LEAST_REPEATED = 16
"""Distinct rows from which on a common divisor of all their frequencies is no chance."""
NEAR = 1e-3
"""Distance in every column, in units of its spread, within which two rows are nearly equal."""
DENSE = 0.05
"""Share of all pairs: if more are near, and more than there are rows, they are a dense part of a table whose other
rows are far away, and not duplicates."""
FARTHER = 10.0
"""Times `NEAR`: if pairs were within `NEAR` by chance, several times as many would be within this distance."""
FEWEST_ROWS = 10
"""Of fewer rows the spread of a column is not known well enough to tell what is near."""
FARTHEST = 1e12
"""In units of a column's spread: values beyond count as lying there, or they could not be divided into cells."""
MOST_PAIRS = 5_000_000
"""Of more near pairs than this, only those in one cell of a grid are found."""


def column_hashes(values: Array, column: int) -> Hashes:
    """A 64-bit number for every value of a column; equal for equal values."""
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # there is a -0.0, and the sum is none
    return _mixed(bits ^ _mixed(np.array([column + 1], dtype=np.uint64)))


def row_hashes(X: Array, y: Array | None = None) -> Hashes:
    """A 64-bit number for every row: the sum of those of its columns, the target being the last."""
    total = np.zeros(len(X), dtype=np.uint64)
    for j in range(X.shape[1]):
        total += column_hashes(X[:, j], j)
    return total if y is None else total + column_hashes(y, X.shape[1])


def _mixed(bits: Hashes) -> Hashes:
    """The finaliser of the generator SplitMix64: every bit of the result depends on every bit given."""
    with np.errstate(over="ignore"):
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Hashes = bits ^ (bits >> np.uint64(31))
    return mixed


def equal_pairs(hashes: Hashes) -> float:
    """Number of pairs of equal hashes."""
    return _pairs(np.unique(hashes, return_counts=True)[1])


def _pairs(counts: npt.NDArray[np.int64]) -> float:
    sizes = counts.astype(np.float64)
    return float((sizes * (sizes - 1.0)).sum() / 2.0)


@dataclass(frozen=True, slots=True)
class Coincidences:
    """How often rows agree, in all columns and in some; adds over agents."""

    pairs: float
    """Pairs of rows of one agent."""
    equal: float
    """Pairs that agree in all columns."""
    all_but: Array
    """Pairs that agree in all columns but one, by that column; shape (m,)."""
    alike: Array
    """Pairs that agree in a column; shape (m,)."""
    distinct: float
    """Number of distinct rows."""
    filled: float
    """Number of those that occur at least `FILLED` times."""
    squares: float
    """Sum of the squared frequencies of distinct rows."""
    rows: float
    agents: float
    """Number of agents with any rows."""

    @classmethod
    def none(cls, n_columns: int) -> Coincidences:
        """Of no rows."""
        zeros = np.zeros(n_columns)
        return cls(0.0, 0.0, zeros, zeros, 0.0, 0.0, 0.0, 0.0, 0.0)

    @classmethod
    def of(cls, total: Hashes, columns: Iterable[Hashes]) -> Coincidences:
        """From hashes of rows and of their columns, which add up to those of the rows."""
        counts = np.unique(total, return_counts=True)[1]
        equal, n = _pairs(counts), len(total)
        agreeing = np.array([(equal_pairs(total - column) - equal, equal_pairs(column)) for column in columns])
        all_but, alike = agreeing.T
        return cls(
            pairs=n * (n - 1) / 2.0,
            equal=equal,
            all_but=all_but,
            alike=alike,
            distinct=float(len(counts)),
            filled=float(np.count_nonzero(counts >= FILLED)),
            squares=float((counts.astype(np.float64) ** 2).sum()),
            rows=float(n),
            agents=float(n > 0),
        )

    def __add__(self, other: Coincidences) -> Coincidences:
        return Coincidences(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def expected(self) -> float:
        """Pairs of equal rows that chance explains, at most."""
        share = self.alike / max(self.pairs, 1.0)
        odds = share / np.maximum(1.0 - share, np.finfo(np.float64).eps)
        return MARGIN * float(self.all_but @ odds)

    @property
    def are_duplicates(self) -> bool:
        """Whether there are equal rows, and more than chance explains."""
        return self.equal > self.expected and not self._are_cells

    @property
    def _are_cells(self) -> bool:
        """Whether most of a few distinct rows occur often, and not all equally often."""
        uneven = self.squares * self.distinct > self.rows**2
        few = self.distinct < FEW_CELLS * max(self.agents, 1.0)
        return few and self.filled > self.distinct / 2.0 and uneven


def first_of_equal(hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Which rows are the first of those equal to them; shape (n,)."""
    first = np.zeros(len(hashes), dtype=bool)
    first[np.unique(hashes, return_index=True)[1]] = True
    return first


def without_repetition(hashes: Hashes) -> npt.NDArray[np.bool_]:
    """Which rows are left if the whole table was repeated: of every row the same share, the first ones; shape (n,).

    A table was repeated if the frequencies of its distinct rows, at least `LEAST_REPEATED`, have a common divisor.
    """
    _, group, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    divisor = int(np.gcd.reduce(counts)) if len(counts) >= LEAST_REPEATED else 1
    if divisor == 1:
        return np.ones(len(hashes), dtype=bool)
    order = np.argsort(group, kind="stable")
    starts = np.cumsum(counts) - counts
    rank = np.empty(len(hashes), dtype=np.int64)
    rank[order] = np.arange(len(hashes)) - starts[group[order]]
    left: npt.NDArray[np.bool_] = rank < counts[group] // divisor
    return left


@dataclass(frozen=True, slots=True)
class NearPairs:
    """Pairs of distinct rows that are nearly equal, and those within `FARTHER` times that; adds over agents."""

    near: float
    farther: float
    rows: float
    pairs: float

    @property
    def are_duplicates(self) -> bool:
        """Whether more pairs are near than can be by chance, and these are no dense part of the table.

        If rows have a density, pairs within a distance grow at least in proportion to it.
        """
        is_dense = self.near > max(self.rows, DENSE * self.pairs)
        return self.near > self.farther - self.near and not is_dense

    def __add__(self, other: NearPairs) -> NearPairs:
        return NearPairs(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


class Neighborhood:
    """Which of some distinct rows are nearly equal to each other.

    Rows in one cell of a fine grid are nearly equal. Of each cell one row is compared with those of other cells.
    """

    def __init__(self, Z: Array) -> None:
        with np.errstate(over="ignore"):
            scaled = np.clip(Z / _spreads(Z), -FARTHEST, FARTHEST)
        cells = row_hashes(np.floor(scaled * (2.0 / NEAR)))
        _, first, self._cell, counts = np.unique(cells, return_index=True, return_inverse=True, return_counts=True)
        self._counts = counts.astype(np.float64)
        self._tree = KDTree(scaled[first])

    def pairs(self) -> NearPairs:
        """How many are near, and how many within `FARTHER` times that."""
        weights = (self._counts, self._counts)
        ordered = self._tree.count_neighbors(self._tree, [NEAR, FARTHER * NEAR], p=np.inf, weights=weights)
        near, farther = (np.asarray(ordered) - self._counts.sum()) / 2.0  # a row is no pair with itself
        n = float(self._counts.sum())
        return NearPairs(float(near), float(farther), n, n * (n - 1.0) / 2.0)

    def groups(self) -> IntArray:
        """A number for every row, the same for those connected by near pairs; shape (n,)."""
        n_cells = len(self._counts)
        if self._tree.count_neighbors(self._tree, NEAR, p=np.inf) > 2 * MOST_PAIRS:
            return self._cell.astype(np.int64)
        pairs = self._tree.query_pairs(NEAR, p=np.inf, output_type="ndarray")
        links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(n_cells, n_cells))
        joined = connected_components(links, directed=False)[1]
        groups: IntArray = joined[self._cell].astype(np.int64)
        return groups


def near_groups(Z: Array) -> Neighborhood | None:
    """The neighborhood of rows, if they are enough to tell what is near."""
    return Neighborhood(Z) if len(Z) >= FEWEST_ROWS else None


def _spreads(Z: Array) -> Array:
    """Distance of the quantiles 0.1 and 0.9 of every column; its deviation if these are equal; 1 if it is constant."""
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.quantile(Z, [0.1, 0.9], axis=0)
        spread = np.where(high > low, high - low, Z.std(axis=0))
    return np.where((spread > 0.0) & np.isfinite(spread), spread, 1.0)
