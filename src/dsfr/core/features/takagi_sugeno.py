"""Takagi-Sugeno rules: Gaussian sets around cluster centers, firing strengths, and the features they give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import squared_distances

MIN_WIDTH = 0.01
"""Narrowest fuzzy set, in units of half a feature's range: a column constant within a cluster has variance 0."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One Gaussian set ``exp(-((x - m) / s)^2)`` per rule and feature (paper eq. (1)), in scaled units."""

    centers: Array
    widths: Array

    def features(self, X: Array) -> Array:
        """The features ``H(X)`` of these rules, see `rule_features`."""
        return rule_features(X, self)

    def arrays(self) -> dict[str, Array]:
        """Centers and widths, by name."""
        return {"centers": self.centers, "widths": self.widths}

    @property
    def n_outputs(self) -> int:
        """Number of columns of ``H``: k(d + 1)."""
        return self.centers.size + len(self.centers)


def rule_widths(variances: Array, width_scale: float) -> Array:
    """Widths from cluster variances, never under `MIN_WIDTH`; shape (k, d)."""
    return np.maximum(width_scale * np.sqrt(variances), MIN_WIDTH)


def firing_strengths(X: Array, rules: Rules) -> Array:
    """Normalised firing strength of every rule on every row, paper eq. (2); shape (n, k), rows sum to 1.

    Computed as a softmax of log-memberships: the plain product underflows to 0/0 far from all centers.
    """
    log_strength = np.empty((len(X), len(rules.centers)))
    with np.errstate(over="ignore"):
        for k, (center, width) in enumerate(zip(rules.centers, rules.widths, strict=True)):
            log_strength[:, k] = -squared_distances(X / width, (center / width)[None, :])[:, 0]
    log_strength -= log_strength.max(axis=1, keepdims=True)
    strength = np.exp(log_strength, out=log_strength)
    strength /= strength.sum(axis=1, keepdims=True)
    return strength


def rule_features(X: Array, rules: Rules) -> Array:
    """``H(X)``, paper eq. (8): per rule its strength, then its strength times each feature; shape (n, k(d+1))."""
    n_rows, n_features = X.shape
    strengths = firing_strengths(X, rules)
    H = np.empty((n_rows, len(rules.centers), n_features + 1))
    H[:, :, 0] = strengths
    np.multiply(strengths[:, :, None], X[:, None, :], out=H[:, :, 1:])
    return H.reshape(n_rows, rules.n_outputs)
