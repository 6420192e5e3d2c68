"""One prediction taken apart: which rules fired, and what each feature added in each of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.rule_base import RuleBase, scaled_rows


@dataclass(frozen=True, slots=True)
class Contributions:
    """``prediction = start + parts.sum()``: one row per rule, one column for its firing and one per feature.

    With ``r`` the model's typical row, ``b`` a rule's slopes and ``s`` its strength, a rule's parts are
    ``s (line(r) - start)`` for having fired at all, and ``s b_j (x_j - r_j)`` for every feature. Row sums tell what
    rules contribute, column sums what features do.
    """

    start: float
    """The model's mean output, from which contributions are counted."""
    reference: Array
    """The typical row ``r``."""
    strengths: Array
    """How much each rule counts, (k,), sums to 1."""
    parts: Array
    """Shape (k, 1 + d)."""

    @property
    def prediction(self) -> float:
        """Start and all parts together."""
        return self.start + float(self.parts.sum())

    @property
    def by_rule(self) -> Array:
        """What every rule adds; (k,)."""
        total: Array = self.parts.sum(axis=1)
        return total

    @property
    def firing(self) -> float:
        """What it adds that these rules fired and not the average of all."""
        return float(self.parts[:, 0].sum())

    @property
    def by_feature(self) -> Array:
        """What every feature adds, within the rules that fired; (d,)."""
        total: Array = self.parts[:, 1:].sum(axis=0)
        return total


def contributions(base: RuleBase, x: Array) -> Contributions:
    """Take the prediction of one row ``x``, shape (d,), apart."""
    start, reference = base.mean_output, base.typical_row
    strengths, parts = [], []
    for share, predictor in base.members:
        z, r = scaled_rows(np.stack([x, reference]), predictor)
        fired = share * predictor.basis.rules.strengths(z[None])[0]
        consequents = predictor.target_scale * predictor.weights.reshape(len(fired), -1)
        at_reference = predictor.target_mean + consequents[:, 0] + consequents[:, 1:] @ r
        moved = consequents[:, 1:] * (z - r)
        parts.append(fired[:, None] * np.column_stack([at_reference - start, moved]))
        strengths.append(fired)
    return Contributions(start, reference, np.concatenate(strengths), np.concatenate(parts))
