"""One rule base or wavelet network as a function of rows: scaling, features, weights, target units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.compiled import worthwhile
from dsfr.core.features.bases import AnyBasis
from dsfr.core.features.basis import Kernel
from dsfr.core.features.expectation import expected_features
from dsfr.core.scaling.affine import Ranges, scale_features, scaled_blocks
from dsfr.core.threads import each_chunk


@dataclass(frozen=True, slots=True)
class Predictor:
    """``y(x) = target_mean + target_scale * H(scaled x) w``."""

    ranges: Ranges
    basis: AnyBasis
    weights: Array
    target_mean: float
    target_scale: float
    shares: Array
    """Each rule's share of the training rows (its cluster's mass over all mass); empty for wavelets."""
    limits: Ranges | None = None
    """Features are clipped to these before scaling; None: no clipping."""
    seen: Ranges | None = None
    """Where the training rows are, if the limits go on beyond."""

    @property
    def domain(self) -> Ranges:
        """Where the training rows are and features are followed; what is shown of the model spans it."""
        return self.seen or self.limits or self.ranges

    @property
    def n_features(self) -> int:
        """Number of input columns."""
        return len(self.ranges.low)

    def predict(self, X: Array, *, fast: bool | None = None) -> Array:
        """Predictions in the target's units; shape (n,).

        ``fast`` uses compiled kernels where they exist; None: for large tables.
        """
        values = self.values(fast=worthwhile(len(X)) if fast is None else fast)
        parts = each_chunk(lambda chunk: values(self.within_limits(X[chunk])), len(X))
        return np.concatenate([np.empty(0), *parts])

    def values(self, *, fast: bool) -> Kernel:
        """A function that predicts few rows within the limits, not scaled, in the target's units."""
        kernel = self.basis.kernel(self.ranges, self.weights) if fast else None
        predict = self._plain_chunk if kernel is None else kernel
        return lambda X: self.target_mean + self.target_scale * predict(X)

    def features(self, X: Array, deviations: Array | None = None) -> Array:
        """Features of rows that are not scaled, expected ones with deviations of their noise; shape (n, p)."""
        scaled = scale_features(self.within_limits(X), self.ranges)
        if deviations is None:
            return self.basis.features(scaled)
        return expected_features(self.basis, scaled, deviations / self.ranges.half_widths)

    def within_limits(self, X: Array) -> Array:
        """Rows clipped to the limits, not scaled."""
        return X if self.limits is None else self.limits.clip(X)

    def _plain_chunk(self, X: Array) -> Array:
        # einsum sums each row in the same order whatever the number of rows; BLAS does not.
        blocks = (self.basis.features(block) for block in scaled_blocks(X, self.ranges))
        return np.concatenate([np.einsum("np,p->n", H, self.weights) for H in blocks])
