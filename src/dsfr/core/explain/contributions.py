"""Additive decomposition of one prediction by rules, features, pairs and triples of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.rule_base import RuleBase, scaled_rows
from dsfr.core.explain.structure import Structure
from dsfr.core.prediction.predictor import Predictor


@dataclass(frozen=True, slots=True)
class Contributions:
    """``prediction = start + parts.sum() + effects.sum() + together.sum()``.

    ``parts`` has one row per rule, one column for its firing and one per feature. With ``r`` the model's typical row,
    ``b`` a rule's slopes, ``s`` its strength and ``m`` the rules' mean output, a rule's parts are ``s (line(r) - m)``
    for its firing and ``s b_j (x_j - r_j)`` for every feature. Row sums are the contributions of rules. ``effects`` and
    ``together`` are those of members that are sums of effects, relative to the typical row. Where values of the row are
    missing or noisy, all of these are their expectations: ``E s`` and ``b_j (E[s x_j] - r_j E s)``.
    """

    start: float
    """The rules' mean output and the effects' output at the typical row, to which contributions are added."""
    reference: Array
    """The typical row ``r``."""
    strengths: Array
    """Firing strength of each rule, or its expectation, (k,), sums to the share of the rules in the prediction."""
    parts: Array
    """Shape (k, 1 + d)."""
    effect_share: float
    """Share of the members that are sums of effects in the prediction; 0 if there are none."""
    effects: Array
    """Effect of each feature alone, (d,); zeros without effects."""
    groups: tuple[tuple[int, ...], ...]
    """Features of each pair and of each triple that has an effect together."""
    together: Array
    """Effect of each group beyond those of fewer of its features, (g,)."""

    @property
    def prediction(self) -> float:
        """Start plus all parts."""
        return self.start + float(self.parts.sum() + self.effects.sum() + self.together.sum())

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
        """Contribution of every feature, within the rules that fired and by its own effect; (d,)."""
        total: Array = self.parts[:, 1:].sum(axis=0) + self.effects
        return total


def average(found: Sequence[Contributions], weights: Array) -> Contributions:
    """Contributions to an average of predictions, of weights that sum to 1."""
    if len(found) == 1:
        return found[0]
    arrays = ([own.strengths, own.parts, own.effects, own.together] for own in found)
    strengths, parts, effects, together = (np.tensordot(weights, own, 1) for own in zip(*arrays, strict=True))
    return replace(found[0], strengths=strengths, parts=parts, effects=effects, together=together)


def contributions(structure: Structure, x: Array, deviations: Array | None = None) -> Contributions:
    """Decompose the prediction of one row ``x``, shape (d,), or the expected one with deviations of its values."""
    reference, effects = structure.typical_row, structure.effects
    strengths, parts = _parts_of_base(structure.rules, x, deviations, reference)
    if effects is None:
        return Contributions(structure.start, reference, strengths, parts, 0.0, np.zeros(len(x)), (), np.empty(0))
    noise = None if deviations is None else deviations[None]
    singles, together = (found[0] for found in effects.parts(x[None], structure.origins, noise))
    return Contributions(structure.start, reference, strengths, parts, effects.share, singles, effects.groups, together)


def _parts_of_base(base: RuleBase | None, x: Array, deviations: Array | None, reference: Array) -> tuple[Array, Array]:
    """Strengths and parts of all rules."""
    if base is None:
        return np.empty(0), np.empty((0, len(x) + 1))
    mean, strengths, parts = base.mean_output, [], []
    for member in base.members:
        predictor = member.predictor
        r = scaled_rows(reference[None], predictor)[0]
        lines = predictor.target_scale * predictor.weights.reshape(predictor.basis.n_rules, -1)
        lines[:, 0] += predictor.target_mean - mean
        fired, own = parts_of_rules(predictor, lines, x, deviations, r)
        strengths.append(member.share * fired)
        parts.append(member.share * own)
    return np.concatenate(strengths), np.concatenate(parts)


def parts_of_rules(
    predictor: Predictor, lines: Array, x: Array, deviations: Array | None, reference: Array
) -> tuple[Array, Array]:
    """Strengths, (k,), and parts, (k, 1 + d), of the rules of a predictor for one row, about a scaled reference.

    ``lines`` are constants and slopes of the rules, less what the parts start from; shape (k, 1 + d).
    """
    H = predictor.features(x[None], None if deviations is None else deviations[None]).reshape(lines.shape)
    fired, moved = H[:, 0], H[:, 1:] - H[:, :1] * reference
    at_reference = lines[:, 0] + lines[:, 1:] @ reference
    return fired, np.column_stack([fired * at_reference, lines[:, 1:] * moved])
