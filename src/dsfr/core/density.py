"""Normal distribution of the rows: what it expects of missing and noisy values, given the others of their row.

Rows are drawn from ``N(mean, covariance)``; a noisy value is the true one plus normal noise of known deviation, and a
missing value has infinite noise. Given the values of a row, the true ones are normal again. Mean and covariance come
from sums over rows: at once where rows are complete, else by the steps of expectation maximisation (Dempster, Laird and
Rubin 1977), each of which is one sum.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array, IntArray, row_blocks

MOST_CORRELATED = 100
"""Features of more columns count as independent of each other: a row costs the cube of their number."""
PRIOR_ROWS = 1.0
"""Rows without correlation, for each feature, that correlations are held back by: few rows do not determine many."""
EXACT, UNKNOWN = 1e-6, 1e6
"""Noise, in deviations of the feature, below which a value is exact and above which it says nothing."""
FARTHEST = 1e6
"""Deviations from the mean beyond which distances grow no further, so that they stay finite."""
BLOCK_NUMBERS = 2**20
"""Numbers of the largest array of a block of rows."""


@dataclass(frozen=True, slots=True)
class NormalSums:
    """Sums over rows in units of a density; the sums of two tables add."""

    n_samples: float
    total: Array
    """Expected values; shape (d,)."""
    products: Array
    """Expected products; upper triangle, row by row."""

    def __add__(self, other: NormalSums) -> NormalSums:
        return NormalSums(self.n_samples + other.n_samples, self.total + other.total, self.products + other.products)


@dataclass(frozen=True, slots=True)
class Conditional:
    """Normal distributions of the true values of some rows."""

    means: Array
    """Shape (n, d); exact values as they are."""
    covariances: Array
    """Of the different patterns of noise, in units; shape (u, d, d), or variances alone, (u, d), if independent."""
    pattern: IntArray
    """Pattern of every row; shape (n,)."""
    units: Array
    """Shape (d,)."""

    @property
    def deviations(self) -> Array:
        """Standard deviation of every value, 0 where it is exact; shape (n, d)."""
        own = self.covariances
        variances = own if own.ndim == 2 else np.einsum("udd->ud", own)
        return (self.units * np.sqrt(np.maximum(variances, 0.0)))[self.pattern]

    def directions(self) -> Iterator[Array]:
        """Columns of a root of every row's covariance, one by one; each of shape (n, d)."""
        if self.covariances.ndim == 2:
            deviations = self.deviations
            for j in range(deviations.shape[1]):
                if deviations[:, j].any():
                    yield deviations * (np.arange(deviations.shape[1]) == j)
            return
        for column in _cholesky_columns(self.covariances):
            if column.any():
                yield (self.units * column)[self.pattern]


@dataclass(frozen=True, slots=True)
class RowDensity:
    """A normal distribution of rows, in the units of the data."""

    mean: Array
    deviation: Array
    """Standard deviations; 0 of constant columns."""
    correlation: Array | None
    """Shape (d, d); None: features are independent."""
    low: Array
    high: Array
    """Values beyond count as lying here, and none is expected beyond."""
    spread: Array
    """Part of the variance of a value that is not known which predictions average over, from 0 to 1.

    A model of complete rows averages over all of it. One that has seen completed rows has averaged in training, and
    takes a completed value as it takes them there: see `spread_of`.
    """
    shift: Array
    """What is added to the expected value of a feature where it is missing, see `missing_shifts`; shape (d,)."""

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array]) -> RowDensity:
        """The density that `arrays` describes."""
        found = {name: array for name, array in arrays.items() if name != "correlation"}
        if "correlation" not in arrays:
            return cls(correlation=None, **found)
        upper = np.zeros((len(arrays["mean"]),) * 2)
        upper[np.triu_indices(len(upper))] = arrays["correlation"]
        return cls(correlation=upper + np.triu(upper, 1).T, **found)

    def arrays(self) -> dict[str, Array]:
        """The arrays that define it, by name; of the correlations the upper triangle, row by row."""
        arrays = {name: getattr(self, name) for name in ("mean", "deviation", "low", "high", "spread", "shift")}
        if self.correlation is None:
            return arrays
        return {**arrays, "correlation": self.correlation[np.triu_indices(self.n_features)]}

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return len(self.mean)

    @property
    def units(self) -> Array:
        """Deviations by which one can divide; shape (d,)."""
        return np.where(self.deviation > 0.0, self.deviation, 1.0)

    @property
    def block_rows(self) -> int:
        """Rows whose distributions are computed at once."""
        size = self.n_features if self.correlation is None else self.n_features**2
        return max(BLOCK_NUMBERS // size, 1)

    def conditionals(self, X: Array, noise: Array) -> Iterator[tuple[slice, Conditional]]:
        """Distributions of the true values, given rows with NaN where missing and the deviation of the noise, (n, d).

        Block by block, with the slice of the rows.
        """
        for block in row_blocks(len(X), self.block_rows):
            yield block, self.conditional(X[block], noise[block])

    def expected(self, X: Array) -> Array:
        """Rows with missing values replaced by what is expected of them, given the others; shape (n, d)."""
        filled = X.copy()
        missing = np.isnan(X)
        rows = np.flatnonzero(missing.any(axis=1))
        for block, found in self.conditionals(X[rows], np.zeros((len(rows), self.n_features))):
            filled[rows[block]] = np.where(missing[rows[block]], found.means, X[rows[block]])
        return filled

    def drawn(self, n_rows: int, rng: np.random.Generator) -> Array:
        """Rows drawn from the density, within its ends; shape (n, d)."""
        z = rng.standard_normal((n_rows, self.n_features))
        if self.correlation is not None:
            z = z @ np.stack([column[0] for column in _cholesky_columns(self.correlation[None])])
        return np.clip(self.mean + self.deviation * z, self.low, self.high)

    def sums(self, X: Array) -> NormalSums:
        """Sums of expected rows and products in units of this density, with correlations: the expectation step."""
        sums = no_sums(self.n_features)
        for _, found in self.conditionals(X, np.zeros(X.shape)):
            own = complete_sums(self.scaled(found.means))
            sums += replace(own, products=own.products + _total_covariance(found))
        return sums

    def updated(self, sums: NormalSums) -> RowDensity:
        """The density of highest likelihood for expected sums: the maximisation step."""
        d, n = self.n_features, sums.n_samples
        shift, second = sums.total / n, np.zeros((d, d))
        second[np.triu_indices(d)] = sums.products / n
        covariance = second + np.triu(second, 1).T - np.outer(shift, shift)
        variances = np.maximum(np.diag(covariance), 0.0)
        varies = self.deviation > 0.0
        mean = np.where(varies, self.mean + self.units * shift, self.mean)
        return replace(
            self,
            mean=np.clip(mean, self.low, self.high),
            deviation=self.deviation * np.sqrt(variances),
            correlation=_held_back(covariance, n),
        )

    def distance(self, other: RowDensity) -> float:
        """Largest difference of means and deviations, in deviations, and of correlations."""
        parts = [(other.mean - self.mean) / self.units, (other.deviation - self.deviation) / self.units]
        if self.correlation is not None and other.correlation is not None:
            parts.append((other.correlation - self.correlation).ravel())
        return float(max(np.abs(part).max(initial=0.0) for part in parts))

    def scaled(self, X: Array) -> Array:
        """Rows in units of the density, moved to the ends where they lie beyond; shape (n, d)."""
        with np.errstate(over="ignore"):
            return (np.clip(X, self.low, self.high) - self.mean) / self.units

    def squared_distances(self, X: Array) -> Array:
        """Squared distance of every row from the mean, in deviations, correlations taken into account; (n,).

        Its mean over the rows of the density is about the number of features. It goes on growing beyond the ends.
        """
        with np.errstate(over="ignore"):
            z = np.clip((X - self.mean) / self.units, -FARTHEST, FARTHEST) * (self.deviation > 0.0)
        if self.correlation is not None:
            z = solve_triangular(np.linalg.cholesky(self.correlation), z.T, lower=True).T
        squares: Array = np.einsum("nd,nd->n", z, z)
        return squares

    def conditional(self, X: Array, noise: Array) -> Conditional:
        """Distributions of the true values of a few rows, see `conditionals`."""
        X = X.astype(np.float64)
        with np.errstate(over="ignore"):
            relative = np.where(np.isnan(X), np.inf, noise / self.units)
            relative = np.where((self.deviation == 0.0) & (relative > 0.0), np.inf, relative)
        relative = np.where(relative < EXACT, 0.0, np.where(relative > UNKNOWN, np.inf, relative))
        known = np.isfinite(relative)
        z = np.where(known, self.scaled(np.where(known, X, self.mean)), 0.0)
        patterns, index = np.unique(relative, axis=0, return_inverse=True)
        index = index.reshape(len(X))
        expected, covariances = self._regression(z, patterns, index)
        # How far a value is believed: the shift is for others, and what lies beyond the ends for these.
        believed = 1.0 / (1.0 + np.where(known, relative, np.inf) ** 2)
        means = np.clip(self.mean + self.units * expected + (1.0 - believed) * self.shift, self.low, self.high)
        inside = np.where(known, X, 0.0)
        beyond = believed * np.where(known, inside - np.clip(inside, self.low, self.high), 0.0)
        means = np.where(relative == 0.0, X, means + beyond)
        return Conditional(means, covariances, index, self.deviation)

    def _regression(self, z: Array, patterns: Array, index: IntArray) -> tuple[Array, Array]:
        """Expected values of rows in units of the density, (n, d), and covariances of the patterns."""
        known = np.isfinite(patterns)
        squares = np.where(known, patterns, 0.0) ** 2
        if self.correlation is None:
            gain = known / (1.0 + squares)
            return z * gain[index], 1.0 - gain
        d = self.n_features
        both = known[:, :, None] & known[:, None, :]
        system = np.where(both, self.correlation, 0.0)
        system[:, np.arange(d), np.arange(d)] = np.where(known, 1.0 + squares, 1.0)
        beside = np.where(known[:, :, None], self.correlation, 0.0)
        gains = np.linalg.solve(system, beside)
        covariances = self.correlation - np.einsum("uki,ukj->uij", beside, gains)
        exact = patterns == 0.0
        covariances[exact[:, :, None] | exact[:, None, :]] = 0.0
        return np.einsum("nk,nkj->nj", z, gains[index]), covariances


def density_of(sums: NormalSums, origin: Array, unit: Array, low: Array, high: Array) -> RowDensity:
    """The density of complete rows, from sums about an origin and in units of their own; shapes (d,)."""
    d = len(origin)
    return RowDensity(origin, unit, np.eye(d), low, high, np.ones(d), np.zeros(d)).updated(sums)


def spread_of(known: Array) -> Array:
    """`RowDensity.spread` of features that are known in a part of the rows: by how much these outnumber the others."""
    return np.maximum(2.0 * known - 1.0, 0.0)


def complete_sums(z: Array) -> NormalSums:
    """Sums of complete rows in units of their own."""
    return NormalSums(float(len(z)), z.sum(axis=0), (z.T @ z)[np.triu_indices(z.shape[1])])


def no_sums(n_features: int) -> NormalSums:
    """Sums of no rows."""
    return NormalSums(0.0, np.zeros(n_features), np.zeros(n_features * (n_features + 1) // 2))


def _total_covariance(found: Conditional) -> Array:
    """Sum of the rows' covariances in units of the density, as `NormalSums.products`."""
    counts = np.bincount(found.pattern, minlength=len(found.covariances)).astype(np.float64)
    total: Array = np.einsum("u,uij->ij", counts, found.covariances)
    return total[np.triu_indices(len(total))]


def _held_back(covariance: Array, n_samples: float) -> Array:
    """Correlations as if `PRIOR_ROWS` uncorrelated rows for each feature had been seen as well; shape (d, d)."""
    d = len(covariance)
    roots = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    divisors = np.outer(np.where(roots > 0.0, roots, np.inf), np.where(roots > 0.0, roots, np.inf))
    seen = n_samples / (n_samples + PRIOR_ROWS * (d + 1.0))
    correlation: Array = seen * np.clip(covariance / divisors, -1.0, 1.0)
    correlation[np.arange(d), np.arange(d)] = 1.0
    return correlation


def _cholesky_columns(covariances: Array) -> Iterator[Array]:
    """Columns of the Cholesky factors of semidefinite matrices; each of shape (u, d)."""
    rest = covariances.copy()
    for j in range(rest.shape[1]):
        pivots = rest[:, j, j]
        least = 1e-12 * np.maximum(covariances[:, j, j], np.finfo(np.float64).tiny)
        roots = np.sqrt(np.where(pivots > least, pivots, np.inf))
        column = rest[:, :, j] / roots[:, None]
        column[:, :j] = 0.0
        rest -= column[:, :, None] * column[:, None, :]
        yield column
