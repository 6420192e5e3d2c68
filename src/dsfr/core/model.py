"""The learnt function: scaling, basis, weights, and the target's own units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.rules import Rules
from dsfr.core.scaling import Ranges, scale_features
from dsfr.core.wavelets import Wavelets


@dataclass(frozen=True, slots=True)
class Predictor:
    """``y(x) = target_mean + target_scale * H(scaled x) w``."""

    ranges: Ranges
    basis: Rules | Wavelets
    weights: Array
    target_mean: float
    target_scale: float
    shares: Array
    """Each rule's share of the training rows (its cluster's mass over all mass); empty for wavelets."""

    @property
    def n_features(self) -> int:
        """Number of input columns."""
        return len(self.ranges.low)

    def predict(self, X: Array) -> Array:
        """Predictions in the target's units; shape (n,)."""
        predictions = np.empty(len(X))
        for block in row_blocks(len(X)):
            H = self.basis.features(scale_features(X[block], self.ranges))
            # einsum adds each row's products in the same order whatever the number of rows; BLAS does not.
            predictions[block] = np.einsum("np,p->n", H, self.weights)
        return self.target_mean + self.target_scale * predictions
