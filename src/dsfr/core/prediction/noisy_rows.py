"""Rows with missing and noisy values: the distribution of what is true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.density import Conditional, RowDensity
from dsfr.core.prediction.levels import Alternatives, Categories, alternatives, most_alternatives


@dataclass(frozen=True, slots=True)
class NoisyRows:
    """Means and deviations of the true values of some rows.

    A row whose level of a category is missing has several: see `dsfr.core.prediction.levels`.
    """

    means: Array
    """Shape (n, d); anything finite where the deviation is infinite."""
    deviations: Array
    """What predictions average over; shape (n, d).

    0 where a value is exact, infinite where it is missing and nothing is known of it.
    """
    found: Conditional | None = None
    """The joint distribution; None: values are independent."""
    parts: Alternatives | None = None
    """Which row each stands for, and how much; None: each for itself."""

    def mean(self, values: Array) -> Array:
        """Average of values over what stands for each row, by the weights of predictions; one for each row."""
        if self.parts is None:
            return values
        return _sums(self.parts.owners, self.parts.weights * values)

    def variance(self, values: Array, variances: Array) -> Array:
        """Variance over what stands for each row, by probabilities, of values that have variances of their own."""
        if self.parts is None:
            return variances
        owners, probabilities = self.parts.owners, self.parts.probabilities
        away = values - _sums(owners, probabilities * values)[owners]
        return _sums(owners, probabilities * (variances + away**2))

    def directions(self) -> Iterator[Array]:
        """Steps of one deviation along independent directions; each of shape (n, d)."""
        if self.found is not None:
            yield from self.found.directions()
            return
        known = np.where(np.isfinite(self.deviations), self.deviations, 0.0)
        for j in np.flatnonzero(known.any(axis=0)).tolist():
            yield known * (np.arange(known.shape[1]) == j)


def _sums(owners: IntArray, values: Array) -> Array:
    sums: Array = np.bincount(owners, values).astype(np.float64)
    return sums


def noisy_rows(X: Array, noise: Array | None) -> IntArray:
    """Numbers of the rows with missing values or noise."""
    if noise is None and not np.isnan(X.min(initial=0.0)):  # a minimum needs no second table
        return np.empty(0, dtype=np.int64)
    uncertain = np.isnan(X).any(axis=1)
    return np.flatnonzero(uncertain if noise is None else uncertain | (noise > 0.0).any(axis=1))


def noisy_blocks(
    density: RowDensity | None, categories: Categories, X: Array, noise: Array
) -> Iterator[tuple[slice, NoisyRows]]:
    """Distributions of the true values, block by block, given the density of the rows, or else values and noise alone.

    Without a density a missing value has infinite noise.
    """
    if density is None:
        for block in row_blocks(len(X)):
            missing = np.isnan(X[block]) | np.isinf(noise[block])
            yield block, NoisyRows(np.where(missing, 0.0, X[block]), np.where(missing, np.inf, noise[block]))
        return
    for block in row_blocks(len(X), max(density.block_rows // most_alternatives(categories), 1)):
        rows, amount, parts = X[block], noise[block], None
        if categories:
            parts = alternatives(density, categories, rows, amount)
            rows, amount = parts.X, parts.noise
        found = density.conditional(rows, amount)
        yield block, NoisyRows(found.means, np.sqrt(density.spread) * found.deviations, found, parts)
