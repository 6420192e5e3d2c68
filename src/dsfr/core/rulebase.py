"""The rules of a model side by side, whether one predictor or a weighted average of several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.model import Predictor
from dsfr.core.rules import Rules, firing_strengths
from dsfr.core.scaling import scale_features

Members: TypeAlias = Sequence[tuple[float, Predictor]]
"""Predictors and their shares, which sum to 1: the prediction is the weighted sum."""

N_STAND_INS = 2048
"""Rows drawn from the model itself where there are no data: a part of 0.1 of them is known to about 0.007."""


@dataclass(frozen=True, slots=True)
class RuleBase:
    """Every rule of every member, in the data's units; a member's share is part of what its rules weigh."""

    members: tuple[tuple[float, Predictor], ...]
    shares: Array
    """Part of the training rows that belong to each rule, times the share of its member; (k,), sums to 1."""
    centers: Array
    widths: Array
    intercepts: Array
    slopes: Array

    @classmethod
    def of(cls, members: Members) -> RuleBase:
        """The rules of predictors that have some.

        Strengths sum to 1, so mean and scale of the target move into every rule's own line without changing a
        prediction.

        Raises
        ------
        ValueError
            If the model has wavelets instead.
        """
        parts = [_in_data_units(share, predictor) for share, predictor in members]
        stacked = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return cls(tuple(members), *stacked)

    @property
    def n_rules(self) -> int:
        """Number of rules, of all members together."""
        return len(self.shares)

    @property
    def typical_row(self) -> Array:
        """Mean of the centers, weighted by the rules' shares: nearly the mean of the training rows; (d,)."""
        mean: Array = self.shares @ self.centers / self.shares.sum()
        return mean

    @property
    def mean_output(self) -> float:
        """What the rules say at their centers, weighted by their shares: nearly the mean prediction."""
        at_centers = self.intercepts + np.einsum("kd,kd->k", self.slopes, self.centers)
        return float(self.shares @ at_centers / self.shares.sum())

    def strengths(self, X: Array) -> Array:
        """How much every rule counts on every row; shape (n, k), rows sum to 1."""
        blocks = [self._strengths(X[block]) for block in row_blocks(len(X))]
        return np.concatenate([np.empty((0, self.n_rules)), *blocks])

    def _strengths(self, X: Array) -> Array:
        parts = [share * firing_strengths(scale_features(X, p.ranges), _rules(p)) for share, p in self.members]
        return np.concatenate(parts, axis=1)

    def lines(self, X: Array) -> Array:
        """What every rule says on every row; shape (n, k)."""
        said: Array = self.intercepts + X @ self.slopes.T
        return said

    def stand_in_rows(self, width_scale: float = 1.0) -> Array:
        """Rows as the model remembers its training rows: Gaussian clusters around the centers, within the ranges.

        A set's width is ``width_scale`` times the deviation of its cluster. The same model gives the same rows.
        """
        rng = np.random.default_rng(0)
        edges = np.cumsum(self.shares) / self.shares.sum()
        evenly = (np.arange(N_STAND_INS) + 0.5) / N_STAND_INS
        k = np.minimum(np.searchsorted(edges, evenly), self.n_rules - 1)
        rows = self.centers[k] + self.widths[k] / width_scale * rng.standard_normal(
            (N_STAND_INS, self.centers.shape[1])
        )
        ranges = self.members[0][1].ranges
        return np.clip(rows, ranges.low, ranges.high)


def _in_data_units(share: float, predictor: Predictor) -> tuple[Array, ...]:
    rules = _rules(predictor)
    middle, half = predictor.ranges.midpoints, predictor.ranges.half_widths
    consequents = predictor.target_scale * predictor.weights.reshape(len(rules.centers), -1)
    slopes = consequents[:, 1:] / half
    intercepts = predictor.target_mean + consequents[:, 0] - slopes @ middle
    return share * predictor.shares, middle + half * rules.centers, half * rules.widths, intercepts, slopes


def _rules(predictor: Predictor) -> Rules:
    if not isinstance(predictor.basis, Rules):
        raise ValueError("this model has wavelets, not rules: only models of SFRRegressor can be explained")
    return predictor.basis
