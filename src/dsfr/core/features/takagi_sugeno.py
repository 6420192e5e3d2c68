"""Takagi-Sugeno rules: fuzzy sets around cluster centers, firing strengths, and the features they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, column_sums
from dsfr.core.clustering.memberships import MAX_SQUARED_DISTANCE
from dsfr.core.compiled import rule_predictions
from dsfr.core.features.basis import Kernel
from dsfr.core.features.gram import FeatureSums, RuleProducts
from dsfr.core.features.membership import Gaussian, membership_of
from dsfr.core.scaling.affine import Ranges

MIN_WIDTH = 0.01
"""Narrowest fuzzy set, in units of half a feature's range: a column constant within a cluster has variance 0."""
MANY_ROWS = 512
"""From this number of rows on, the Gram matrix is computed from products of strengths and inputs."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One fuzzy set per rule and feature, in scaled units; Gaussian sets ``exp(-((x - m) / s)^2)`` are the paper's."""

    centers: Array
    widths: Array
    membership: str = Gaussian.name
    """Name of the membership function, see `dsfr.core.features.membership`."""

    unit_arrays: ClassVar[tuple[str, ...]] = ("centers", "widths")

    @property
    def locations(self) -> Array:
        """The centers."""
        return self.centers

    @property
    def scales(self) -> Array:
        """The widths."""
        return self.widths

    @property
    def n_rules(self) -> int:
        """Number of rules, k."""
        return len(self.centers)

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Rules:
        """The rules that `arrays` describes."""
        name = bytes(arrays["membership"]).decode() if "membership" in arrays else Gaussian.name
        return cls(arrays["centers"], arrays["widths"], membership_of(name).name)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Centers and widths, by name, and the name of the membership function unless it is Gaussian."""
        arrays: dict[str, npt.NDArray[Any]] = {"centers": self.centers, "widths": self.widths}
        if self.membership == Gaussian.name:
            return arrays
        return arrays | {"membership": np.frombuffer(self.membership.encode(), dtype=np.uint8)}

    @property
    def rules(self) -> Rules:
        """These rules."""
        return self

    @property
    def compiled(self) -> bool:
        """Whether compiled kernels implement the membership function."""
        return membership_of(self.membership).compiled

    def kernel(self, ranges: Ranges, weights: Array) -> Kernel | None:
        """Compiled predictions, where kernels implement the membership function."""
        if not self.compiled:
            return None
        shift, unit, lines = ranges.midpoints, ranges.half_widths, weights.reshape(self.n_rules, -1)
        return lambda X: rule_predictions(X, shift, unit, self.centers, self.widths, lines)

    @property
    def n_outputs(self) -> int:
        """Number of columns of ``H``: k(d + 1)."""
        return self.centers.size + len(self.centers)

    def features(self, X: Array) -> Array:
        """The features ``H(X)`` of these rules, see `rule_features`."""
        return rule_features(X, self)

    def strengths(self, X: Array) -> Array:
        """Normalised firing strengths, see `firing_strengths`."""
        return firing_strengths(X, self)

    def sums(
        self, X: Array, y: Array, ranges: Ranges | None, weights: Array | None = None, *, fast: bool
    ) -> FeatureSums:
        """``H'H``, ``H'y`` and ``H'1``; for many rows without forming ``H``."""
        if len(X) < MANY_ROWS:
            return FeatureSums.of(X, y, self, ranges, weights)
        return RuleProducts.of(X, y, self, ranges, weights, fast=fast and self.compiled).sums_of_features

    def typical_rows(self, n_rows: int, shares: Array | None, rng: np.random.Generator) -> Array:
        """Rows drawn around the centers, within [-1, 1]; ``shares`` of the rules need not sum to 1, None: equal."""
        n_rules, n_features = self.centers.shape
        rule = rng.choice(n_rules, n_rows, p=None if shares is None else shares / shares.sum())
        rows = self.centers[rule] + self.widths[rule] * rng.standard_normal((n_rows, n_features))
        return np.clip(rows, -1.0, 1.0)


def rule_widths(variances: Array, width_scale: float) -> Array:
    """Widths from cluster variances, never under `MIN_WIDTH`; shape (k, d)."""
    return np.maximum(width_scale * np.sqrt(variances), MIN_WIDTH)


def log_strengths(X: Array, rules: Rules) -> Array:
    """Sum over features of log-memberships, not normalised; shape (n, k)."""
    logs = np.empty((len(rules.centers), len(X)))  # rule by rule in memory, for long inner loops
    if rules.membership == Gaussian.name:
        columns = np.ascontiguousarray(X.T)
        for own, center, width in zip(logs, rules.centers, rules.widths, strict=True):
            _log_gaussian(columns, center[:, None], width[:, None], out=own)
        return logs.T
    membership = membership_of(rules.membership)
    with np.errstate(over="ignore"):
        for own, center, width in zip(logs, rules.centers, rules.widths, strict=True):
            np.maximum(membership.log((X - center) / width).sum(axis=1), -MAX_SQUARED_DISTANCE, out=own)
    return logs.T


def _log_gaussian(columns: Array, center: Array, width: Array, *, out: Array) -> None:
    """Sum over features of ``-((x - m) / s)^2``, in their order whatever the number of rows, for every row."""
    with np.errstate(over="ignore"):
        distances = columns / width
        distances -= center / width
        distances *= distances
        total = distances.sum(axis=0) if columns.shape[1] > 1 else np.add.accumulate(distances)[-1]
    np.negative(np.minimum(total, MAX_SQUARED_DISTANCE, out=total), out=out)


def firing_strengths(X: Array, rules: Rules) -> Array:
    """Normalised firing strength of every rule on every row, paper eq. (2); shape (n, k), rows sum to 1.

    Computed as a softmax of log-memberships: the plain product underflows to 0/0 far from all centers.
    """
    strength = log_strengths(X, rules)
    strength -= strength.max(axis=1, keepdims=True)
    np.exp(strength, out=strength)
    strength /= column_sums(strength.T)[:, None]
    return strength


def rule_features(X: Array, rules: Rules) -> Array:
    """``H(X)``, paper eq. (8): per rule its strength, then its strength times each feature; shape (n, k(d+1))."""
    n_rows, n_features = X.shape
    strengths = firing_strengths(X, rules)
    H = np.empty((n_rows, len(rules.centers), n_features + 1))
    H[:, :, 0] = strengths
    np.multiply(strengths[:, :, None], X[:, None, :], out=H[:, :, 1:])
    return H.reshape(n_rows, rules.n_outputs)


def line_predictions(X: Array, rules: Rules, weights: Array) -> Array:
    """``H(X) w`` without forming ``H``: strengths times the values of the rules' lines; shape (n,)."""
    lines = weights.reshape(rules.n_rules, -1)
    values = X @ lines[:, 1:].T
    values += lines[:, 0]
    predictions: Array = np.einsum("nk,nk->n", rules.strengths(X), values)
    return predictions


def rule_gaps(first: Array, second: Array, mix: Array, rules: Rules) -> Array:
    """What `rule_features` of mixed rows have over the mix of their features; shape (n, k(d+1)).

    Computed rule by rule, for which temporaries stay in the processor's cache.
    """
    share, rest = mix, 1.0 - mix
    mixed = share[:, None] * first + rest[:, None] * second
    strengths, of_first, of_second = (rules.strengths(rows).T for rows in (mixed, first, second))
    inputs, firsts, seconds = (np.vstack([np.ones(len(mix)), rows.T]) for rows in (mixed, first, second))
    gaps = np.empty((rules.n_rules, *inputs.shape))
    part = np.empty_like(inputs)
    for k, gap in enumerate(gaps):
        np.multiply(strengths[k], inputs, out=gap)
        np.multiply(of_first[k], firsts, out=part)
        gap -= np.multiply(share, part, out=part)
        np.multiply(of_second[k], seconds, out=part)
        gap -= np.multiply(rest, part, out=part)
    return gaps.reshape(rules.n_outputs, len(mix)).T
