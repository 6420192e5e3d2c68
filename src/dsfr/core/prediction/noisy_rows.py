"""Rows with missing and noisy values: the distribution of what is true."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.density import Conditional, RowDensity


@dataclass(frozen=True, slots=True)
class NoisyRows:
    """Means and deviations of the true values of some rows."""

    means: Array
    """Shape (n, d); anything finite where the deviation is infinite."""
    deviations: Array
    """What predictions average over; shape (n, d).

    0 where a value is exact, infinite where it is missing and nothing is known of it.
    """
    found: Conditional | None = None
    """The joint distribution; None: values are independent."""

    def directions(self) -> Iterator[Array]:
        """Steps of one deviation along independent directions; each of shape (n, d)."""
        if self.found is not None:
            yield from self.found.directions()
            return
        known = np.where(np.isfinite(self.deviations), self.deviations, 0.0)
        for j in np.flatnonzero(known.any(axis=0)).tolist():
            yield known * (np.arange(known.shape[1]) == j)


def noisy_rows(X: Array, noise: Array | None) -> IntArray:
    """Numbers of the rows with missing values or noise."""
    if noise is None and not np.isnan(X.min(initial=0.0)):  # a minimum needs no second table
        return np.empty(0, dtype=np.int64)
    uncertain = np.isnan(X).any(axis=1)
    return np.flatnonzero(uncertain if noise is None else uncertain | (noise > 0.0).any(axis=1))


def noisy_blocks(density: RowDensity | None, X: Array, noise: Array) -> Iterator[tuple[slice, NoisyRows]]:
    """Distributions of the true values, block by block, given the density of the rows, or else values and noise alone.

    Without a density a missing value has infinite noise.
    """
    if density is None:
        for block in row_blocks(len(X)):
            missing = np.isnan(X[block]) | np.isinf(noise[block])
            yield block, NoisyRows(np.where(missing, 0.0, X[block]), np.where(missing, np.inf, noise[block]))
        return
    for block, found in density.conditionals(X, noise):
        yield block, NoisyRows(found.means, np.sqrt(density.spread) * found.deviations, found)
