"""Several predictors averaged, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import scale_features

WITHOUT_UNCERTAINTY = (
    "the model does not know how sure it is: train it with uncertainty=True, or auto=True (a simplified model does not "
    "know, whatever it came from)"
)


@dataclass(frozen=True, slots=True)
class Posterior:
    """What the labels leave open about the weights of one predictor."""

    factor: Array
    """Upper Cholesky factor of the posterior precision, in units of the noise; shape (p, p)."""
    noise: float
    """Standard deviation of the noise, in the target's units."""

    def variances(self, H: Array, unit: float) -> Array:
        """Variance of a new observation at every row of features: its noise, and that of the weights; shape (n,).

        In units of ``unit``, that of the target: squares of targets like 1e200 overflow, those of 1e-200 vanish.
        """
        root = solve_triangular(self.factor, H.T, trans="T")
        variances: Array = (self.noise / unit) ** 2 * (1.0 + np.einsum("pn,pn->n", root, root))
        return variances


@dataclass(frozen=True, slots=True)
class Member:
    """One predictor of a mixture."""

    predictor: Predictor
    share: float
    """Its weight in the average; those of all members sum to 1."""
    posterior: Posterior | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """How many leave-one-out errors lie at or below each threshold: all that jackknife intervals need."""

    thresholds: Array
    """Ascending, in the target's units."""
    counts: Array
    """Absolute errors up to each; the last counts all."""

    def half_width(self, coverage: float) -> float:
        """Half the width of the jackknife interval: the ``ceil(coverage (n + 1))``-th smallest of ``n`` errors.

        There is no guarantee for finite samples that it holds a new target with probability ``coverage``.

        Raises
        ------
        ValueError
            If there are too few labels for such a coverage.
        """
        n = float(self.counts[-1])
        wanted = np.ceil(coverage * (n + 1.0) - 1e-9)
        if wanted > n:
            raise ValueError(
                f"coverage={coverage:g} needs at least {int(np.ceil(coverage / (1.0 - coverage) - 1e-9))} labelled "
                f"rows, and the model has seen {int(n)} (duplicates count once): ask for less, or label more rows"
            )
        return float(self.thresholds[int(np.argmax(self.counts >= wanted))])


@dataclass(frozen=True, slots=True)
class Mixture:
    """Members, of which each sees the same rows in its own way."""

    members: tuple[Member, ...]
    scores: Scores | None = None

    @property
    def strongest(self) -> Predictor:
        """The predictor with the largest share; the first of several."""
        return max(self.members, key=lambda member: member.share).predictor

    def predict(self, X: Array, *, fast: bool | None = None) -> Array:
        """Average prediction of every row; shape (n,)."""
        total = np.zeros(len(X))
        for member in self.members:
            total += member.share * member.predictor.predict(X, fast=fast)
        return total

    def deviations(self, X: Array) -> Array:
        """Standard deviation of a new observation at every row: of noise, weights, and members' differences; (n,).

        Raises
        ------
        ValueError
            If the model was trained without uncertainty.
        """
        deviations = np.empty(len(X))
        for block in row_blocks(len(X)):
            deviations[block] = self._block_deviations(X[block])
        return deviations

    def _block_deviations(self, X: Array) -> Array:
        mean, square = np.zeros(len(X)), np.zeros(len(X))
        unit = self.strongest.target_scale
        for member in self.members:
            if member.posterior is None:
                raise ValueError(WITHOUT_UNCERTAINTY)
            of = member.predictor
            H = of.basis.features(scale_features(of.within_limits(X), of.ranges))
            # About the mean of the target, or large targets would drown the variance in rounding.
            values = of.target_scale / unit * (H @ of.weights)
            mean += member.share * values
            square += member.share * (member.posterior.variances(H, unit) + values**2)
        deviations: Array = unit * np.sqrt(np.maximum(square - mean**2, 0.0))
        return deviations
