"""Additive decomposition of one prediction by rules and features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.rule_base import RuleBase, scaled_rows


@dataclass(frozen=True, slots=True)
class Contributions:
    """``prediction = start + parts.sum()``: one row per rule, one column for its firing and one per feature.

    With ``r`` the model's typical row, ``b`` a rule's slopes and ``s`` its strength, a rule's parts are
    ``s (line(r) - start)`` for its firing and ``s b_j (x_j - r_j)`` for every feature. Row sums are the contributions
    of rules, column sums those of features.
    """

    start: float
    """The model's mean output, to which contributions are added."""
    reference: Array
    """The typical row ``r``."""
    strengths: Array
    """Firing strength of each rule, (k,), sums to 1."""
    parts: Array
    """Shape (k, 1 + d)."""

    @property
    def prediction(self) -> float:
        """Start plus all parts."""
        return self.start + float(self.parts.sum())

    @property
    def by_rule(self) -> Array:
        """Contribution of every rule; (k,)."""
        total: Array = self.parts.sum(axis=1)
        return total

    @property
    def firing(self) -> float:
        """Contribution of the firing: these rules fired instead of the average rule."""
        return float(self.parts[:, 0].sum())

    @property
    def by_feature(self) -> Array:
        """Contribution of every feature within the rules that fired; (d,)."""
        total: Array = self.parts[:, 1:].sum(axis=0)
        return total


def contributions(base: RuleBase, x: Array) -> Contributions:
    """Decompose the prediction of one row ``x``, shape (d,)."""
    start, reference = base.mean_output, base.typical_row
    strengths, parts = [], []
    for member in base.members:
        predictor = member.predictor
        z, r = scaled_rows(np.stack([x, reference]), predictor)
        fired = member.share * predictor.basis.rules.strengths(z[None])[0]
        consequents = predictor.target_scale * predictor.weights.reshape(len(fired), -1)
        at_reference = predictor.target_mean + consequents[:, 0] + consequents[:, 1:] @ r
        moved = consequents[:, 1:] * (z - r)
        parts.append(fired[:, None] * np.column_stack([at_reference - start, moved]))
        strengths.append(fired)
    return Contributions(start, reference, np.concatenate(strengths), np.concatenate(parts))
