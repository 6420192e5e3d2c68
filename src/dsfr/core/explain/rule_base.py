"""All rules of a model, of one rule base or of a weighted average of several, in the units of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.prediction.mixture import Member
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import Ranges, scale_features

N_SYNTHETIC = 2048
"""Rows drawn from the model where there are no data; a share of 0.1 is then known to about 0.007."""


@dataclass(frozen=True, slots=True)
class RuleBase:
    """Every rule of every member that is a rule base, in the units of the data.

    Strengths include the share of the member: they sum to the share of all rule bases, 1 if there are no others.
    """

    members: tuple[Member, ...]
    """The strongest first."""
    owners: IntArray
    """Number of the member each rule belongs to, counted from 0; (k,)."""
    shares: Array
    """Share of the training rows of each rule times the share of its member; (k,), sums to `share`."""
    centers: Array
    widths: Array
    deviations: Array
    """Standard deviations of the clusters; (k, d)."""
    intercepts: Array
    slopes: Array

    @classmethod
    def of(cls, members: Sequence[Member], width_scales: Sequence[float] | None = None) -> RuleBase:
        """Collect the rules of the members; a width is ``width_scale`` times the deviation of its cluster.

        Members that are no rule bases, or have no share, are left out. Strengths of a member sum to 1, so mean and
        scale of the target can be absorbed into the line of every rule.

        Raises
        ------
        ValueError
            If the model has wavelets or effects only.
        """
        scales = [1.0] * len(members) if width_scales is None else width_scales
        ordered = sorted(zip(members, scales, strict=True), key=lambda entry: -entry[0].share)
        # Without a rule base, the basis of the strongest member raises the error that says what it has instead.
        ordered = [entry for entry in ordered if entry[0].predictor.basis.n_rules and entry[0].share > 0] or ordered[:1]
        parts = [_in_data_units(member, scale) for member, scale in ordered]
        stacked = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        owners = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
        return cls(tuple(member for member, _ in ordered), owners, *stacked)

    @property
    def strongest(self) -> RuleBase:
        """The rules of the first member alone."""
        first, mine = self.members[0], self.owners == 0
        arrays = {name: getattr(self, name)[mine] for name in ("owners", *_ARRAYS)}
        return replace(self, members=(replace(first, share=1.0),), shares=self.shares[mine] / first.share, **arrays)

    @property
    def n_rules(self) -> int:
        """Number of rules, of all members together."""
        return len(self.shares)

    @property
    def share(self) -> float:
        """Share of the prediction."""
        return float(sum(member.share for member in self.members))

    @property
    def typical_row(self) -> Array:
        """Mean of the centers, weighted by the rules' shares: nearly the mean of the training rows; (d,)."""
        mean: Array = self.shares @ self.centers / self.shares.sum()
        return mean

    @property
    def mean_output(self) -> float:
        """Outputs of the rules at their centers, weighted by their shares: nearly the mean prediction."""
        at_centers = self.intercepts + np.einsum("kd,kd->k", self.slopes, self.centers)
        return float(self.shares @ at_centers / self.shares.sum())

    @property
    def row_shares(self) -> Array:
        """Share of the training rows of each rule, within its member; (k,)."""
        part: Array = self.shares / np.array([member.share for member in self.members])[self.owners]
        return part

    @property
    def domain(self) -> Ranges:
        """Domain of the features: the limits to which the model clips, or else the ranges of the training rows."""
        return self.members[0].predictor.domain

    def strengths(self, X: Array) -> Array:
        """Firing strengths times member shares; shape (n, k), rows sum to `share`."""
        blocks = [self._strengths(X[block]) for block in row_blocks(len(X))]
        return np.concatenate([np.empty((0, self.n_rules)), *blocks])

    def _strengths(self, X: Array) -> Array:
        parts = [
            member.share * member.predictor.basis.rules.strengths(scaled_rows(X, member.predictor))
            for member in self.members
        ]
        return np.concatenate(parts, axis=1)

    def lines(self, X: Array) -> Array:
        """Output of the line of every rule on every row; shape (n, k)."""
        outputs = [_lines(scaled_rows(X, member.predictor), member.predictor) for member in self.members]
        return np.concatenate(outputs, axis=1)

    def synthetic_rows(self) -> Array:
        """Synthetic rows drawn from Gaussian clusters around the centers, clipped to the domain.

        The same model gives the same rows.
        """
        rng = np.random.default_rng(0)
        edges = np.cumsum(self.shares) / self.shares.sum()
        evenly = (np.arange(N_SYNTHETIC) + 0.5) / N_SYNTHETIC
        k = np.minimum(np.searchsorted(edges, evenly), self.n_rules - 1)
        rows = self.centers[k] + self.deviations[k] * rng.standard_normal((N_SYNTHETIC, self.centers.shape[1]))
        return np.clip(rows, self.domain.low, self.domain.high)


_ARRAYS = ("centers", "widths", "deviations", "intercepts", "slopes")


def scaled_rows(X: Array, predictor: Predictor) -> Array:
    """Rows clipped to the limits of a predictor, and scaled."""
    return scale_features(predictor.within_limits(X), predictor.ranges)


def _in_data_units(member: Member, width_scale: float) -> tuple[Array, ...]:
    predictor = member.predictor
    rules = predictor.basis.rules
    middle, half = predictor.ranges.midpoints, predictor.ranges.half_widths
    consequents = predictor.target_scale * predictor.weights.reshape(len(rules.centers), -1)
    slopes = consequents[:, 1:] / half
    intercepts = predictor.target_mean + consequents[:, 0] - slopes @ middle
    widths = half * rules.widths
    shares = member.share * predictor.shares
    return shares, middle + half * rules.centers, widths, widths / width_scale, intercepts, slopes


def _lines(Z: Array, predictor: Predictor) -> Array:
    """Outputs of the rules of a predictor on scaled rows, which are clipped where the units of the data overflow."""
    consequents = predictor.target_scale * predictor.weights.reshape(len(predictor.shares), -1)
    outputs: Array = predictor.target_mean + consequents[:, 0] + Z @ consequents[:, 1:].T
    return outputs
