"""Rules over linguistic terms: every feature has one ordered list of terms, a strong partition shared by all rules.

A ramp of a feature rises linearly from 0 at its start to 1 at its end. The ramps of a feature do not overlap, so ``r``
of them in ascending order part it into ``r + 1`` terms: term ``i`` has the membership ``ramp_i(x) - ramp_{i+1}(x)``
with ``ramp_0 = 1`` and ``ramp_{r+1} = 0``. Memberships of the terms of a feature sum to 1. The condition of a rule on a
feature is a run of adjacent terms, and its membership is their sum. The rules are the leaves of a tree of such
conditions, so that their strengths, products of memberships, sum to 1 without a division.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, IntArray
from dsfr.core.features.basis import Kernel
from dsfr.core.features.gram import FeatureSums
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.scaling.affine import Ranges


@dataclass(frozen=True, slots=True)
class LinguisticRules:
    """Conditions of rules as runs of adjacent terms, in the units of the data."""

    first_terms: Array
    """First term of every rule's condition on every feature; whole numbers, shape (k, d)."""
    last_terms: Array
    """Last term of it; a condition on all terms of a feature is none."""
    ramp_features: Array
    """Feature of every ramp, counted from 0, ascending; whole numbers, shape (r,)."""
    ramp_starts: Array
    """Where every ramp leaves 0; ascending within a feature."""
    ramp_ends: Array
    """Where it reaches 1: above its start, and not above the start of the next ramp of its feature."""

    unit_arrays: ClassVar[tuple[str, ...]] = ("first_terms", "last_terms")

    @classmethod
    def always(cls, n_features: int) -> LinguisticRules:
        """One rule without conditions."""
        none, zeros = np.empty(0), np.zeros((1, n_features))
        return cls(zeros, zeros, none, none, none)

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> LinguisticRules:
        """The rules that `arrays` describes.

        Raises
        ------
        ValueError
            If the arrays are no rules over shared terms.
        """
        found = cls(**{name: arrays[name] for name in ARRAYS})
        found.check()
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that define the rules, by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    def check(self) -> None:
        """Refuse ramps that overlap or are out of order, and terms that do not exist.

        Raises
        ------
        ValueError
            Naming what is wrong.
        """
        features, starts, ends = self.ramp_features, self.ramp_starts, self.ramp_ends
        if self.first_terms.ndim != 2 or self.first_terms.shape != self.last_terms.shape or 0 in self.first_terms.shape:
            raise ValueError("its conditions have the wrong shape")
        if not (features.ndim == 1 and features.shape == starts.shape == ends.shape):
            raise ValueError("its ramps have the wrong shape")
        counted = np.concatenate([features, self.first_terms.ravel(), self.last_terms.ravel()])
        if not (np.isfinite(counted).all() and (counted == np.floor(counted)).all()):
            raise ValueError("its terms and features are not whole numbers")
        if len(features) and not (features.min() >= 0 and features.max() < self.first_terms.shape[1]):
            raise ValueError("its ramps are of features that do not exist")
        if not (np.isfinite(starts).all() and np.isfinite(ends).all()):
            raise ValueError("its ramps are not finite")
        same = features[1:] == features[:-1]
        if not ((np.diff(features) >= 0).all() and (starts < ends).all() and (ends[:-1] <= starts[1:])[same].all()):
            raise ValueError("its ramps overlap or are out of order")
        if not (
            (self.first_terms >= 0) & (self.first_terms <= self.last_terms) & (self.last_terms < self.n_terms)
        ).all():
            raise ValueError("its rules use terms that do not exist")

    @property
    def locations(self) -> Array:
        """First terms of the conditions."""
        return self.first_terms

    @property
    def scales(self) -> Array:
        """Number of terms of every condition."""
        spans: Array = self.last_terms - self.first_terms + 1.0
        return spans

    @property
    def n_rules(self) -> int:
        """Number of rules, k."""
        return len(self.first_terms)

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return int(self.first_terms.shape[1])

    @property
    def n_outputs(self) -> int:
        """Number of columns of ``H``: k(d + 1)."""
        return self.first_terms.size + len(self.first_terms)

    @property
    def rules(self) -> Rules:
        """There are no sets around centers.

        Raises
        ------
        ValueError
            Always.
        """
        raise ValueError("rules over shared terms have no centers and widths")

    @property
    def n_terms(self) -> IntArray:
        """Number of terms of every feature: one more than its ramps; shape (d,)."""
        counts: IntArray = 1 + np.bincount(self.ramp_features.astype(np.int64), minlength=self.n_features)
        return counts

    def ramps_of(self, feature: int) -> list[tuple[float, float]]:
        """Start and end of the ramps of a feature, ascending."""
        mine = self.ramp_features == feature
        return list(zip(self.ramp_starts[mine].tolist(), self.ramp_ends[mine].tolist(), strict=True))

    def conditions(self, rule: int) -> dict[int, tuple[int, int]]:
        """First and last term by feature, of the features that a rule has a condition on."""
        spans = np.stack([self.first_terms[rule], self.last_terms[rule]], axis=1).astype(int).tolist()
        counts = self.n_terms.tolist()
        return {j: (first, last) for j, (first, last) in enumerate(spans) if last - first + 1 < counts[j]}

    def strengths(self, X: Array) -> Array:
        """Products of the memberships of the conditions; shape (n, k), rows sum to 1."""
        strengths = np.ones((len(X), self.n_rules))
        for k in range(self.n_rules):
            for j, (first, last) in self.conditions(k).items():
                ramps = self.ramps_of(j)
                low = ramp(X[:, j], *ramps[first - 1]) if first > 0 else 1.0
                high = ramp(X[:, j], *ramps[last]) if last < len(ramps) else 0.0
                strengths[:, k] *= low - high
        return strengths

    def features(self, X: Array) -> Array:
        """``H(X)``: per rule its strength, then its strength times each feature; shape (n, k(d + 1))."""
        return line_features(self.strengths(X), X)

    def sums(
        self, X: Array, y: Array, ranges: Ranges | None, weights: Array | None = None, *, fast: bool
    ) -> FeatureSums:
        """``H'H``, ``H'y`` and ``H'1``."""
        return FeatureSums.of(X, y, self, ranges, weights)

    def kernel(self, ranges: Ranges, weights: Array) -> Kernel | None:
        """There is none."""
        return None

    def typical_rows(self, n_rows: int, shares: Array | None, rng: np.random.Generator) -> Array:
        """Rows drawn evenly from where the ramps lie; 0 for features without conditions."""
        rows = np.zeros((n_rows, self.n_features))
        for j in set(self.ramp_features.astype(int).tolist()):
            ramps = self.ramps_of(j)
            low, high = ramps[0][0], ramps[-1][1]
            rows[:, j] = rng.uniform(low - (high - low) / 2.0, high + (high - low) / 2.0, n_rows)
        return rows


ARRAYS = ("first_terms", "last_terms", "ramp_features", "ramp_starts", "ramp_ends")
"""Names of the arrays that define the rules."""


def ramp(x: Array, start: float, end: float) -> Array:
    """0 up to ``start``, 1 from ``end`` on, linear in between."""
    with np.errstate(over="ignore"):
        rises: Array = np.clip((x - start) / (end - start), 0.0, 1.0)
    return rises


def line_features(strengths: Array, X: Array) -> Array:
    """Per rule its strength, then its strength times each feature; shape (n, k(d + 1))."""
    H = np.empty((len(X), strengths.shape[1], X.shape[1] + 1))
    H[:, :, 0] = strengths
    np.multiply(strengths[:, :, None], X[:, None, :], out=H[:, :, 1:])
    return H.reshape(len(X), -1)
