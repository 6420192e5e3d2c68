"""Effects in words: curves of single features as rules of one condition, and sizes of pairs and triples."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.effects import EffectBase
from dsfr.core.explain.html import shortened
from dsfr.core.explain.rules import MAX_ROWS
from dsfr.core.explain.words import counted, listed, one_line, readable, signed

MOST_KNOTS = 7
CURVE_ERROR = 0.05
"""Knots are shown until the line through them is as near to the curve as this part of the curve's range."""
CROOKED = 0.15
"""A curve that is farther from the line through the most knots, in parts of its range, jumps: points do not tell it."""
LEVEL = 0.02
"""Of its range: a curve that varies less is level there."""
LEAST_VARIATION = 0.002
"""Effects with a smaller part of the variation are named without their curves."""
MOST_GROUPS = 10


@dataclass(frozen=True, slots=True, repr=False)
class FeatureEffect:
    """What one feature adds to the prediction: ``values`` at ``knots``, and in proportion between them."""

    feature: int
    """Number of the feature, counted from 0."""
    feature_name: str
    knots: Array
    """In the feature's units, ascending."""
    values: Array
    """In the target's units, weighted by the share of the effects; with mean 0 over the rows."""
    size: float
    """Standard deviation over the rows, in the target's units."""
    variation: float
    """Square of the size, as a part of the sum over all effects."""
    is_indicator: bool = False
    """Whether the feature indicates a level of a category."""

    def __repr__(self) -> str:
        return f"<Effect of {shortened(str(self), 200)}>"

    def __str__(self) -> str:
        if self.is_indicator:
            other, held = (signed(float(np.interp(value, self.knots, self.values))) for value in (0.0, 1.0))
            return f"{one_line(self.feature_name)} ({self.variation:.0%} of the variation): {held}, else {other}"
        chosen = self.shown_knots()
        if self._error(chosen).max() > CROOKED * np.ptp(self.values):
            return f"{one_line(self.feature_name)} ({self.variation:.0%} of the variation): {self._extremes()}"
        points = (f"about {readable(self.knots[i])}: {signed(self.values[i])}" for i in chosen)
        between = " (between these, in proportion)" if len(chosen) > 1 else ""
        return f"{one_line(self.feature_name)} ({self.variation:.0%} of the variation): {', '.join(points)}{between}"

    def shown_knots(self) -> list[int]:
        """Numbers of at most `MOST_KNOTS` knots that describe the curve, both ends among them; see `CURVE_ERROR`."""
        chosen = sorted({0, len(self.knots) - 1})
        while len(chosen) < min(MOST_KNOTS, len(self.knots)):
            error = self._error(chosen)
            if error.max() <= CURVE_ERROR * np.ptp(self.values):
                break
            chosen = sorted({*chosen, int(error.argmax())})
        return chosen

    def _error(self, chosen: list[int]) -> Array:
        """Distance of the curve from the line through some of its knots."""
        distance: Array = np.abs(np.interp(self.knots, self.knots[chosen], self.values[chosen]) - self.values)
        return distance

    def _extremes(self) -> str:
        ends = (int(self.values.argmin()), int(self.values.argmax()))
        low, high = (f"{signed(self.values[i])} about {readable(self._place(i))}" for i in ends)
        return f"jumps from value to value, between {low} and {high}"

    def _place(self, number: int) -> float:
        """The middle of the knots about one where the curve is as high, those at the ends of the domain left out."""
        alike = np.abs(self.values - self.values[number]) <= LEVEL * np.ptp(self.values)
        apart = np.flatnonzero(~alike)
        first, last = apart[apart < number].max(initial=-1) + 1, apart[apart > number].min(initial=len(alike)) - 1
        inner = slice(max(first, 1), min(last, len(alike) - 2) + 1)
        knots = self.knots[inner]
        return float(knots.mean()) if len(knots) else float(self.knots[number])


@dataclass(frozen=True, slots=True)
class GroupEffect:
    """What two or three features do together, beyond what fewer of them do."""

    feature_names: tuple[str, ...]
    largest: float
    """Largest absolute value over the rows, in the target's units."""
    size: float
    variation: float

    def __str__(self) -> str:
        return f"{listed(list(map(one_line, self.feature_names)))} together: up to ±{readable(self.largest)}"


@dataclass(frozen=True, slots=True, repr=False)
class EffectsExplanation:
    """All effects of a model, the largest first."""

    share: float
    """Share of the effects in the prediction; by it their values are weighted already."""
    start: float
    """What they add up from: their weighted mean output over the rows."""
    features: tuple[FeatureEffect, ...]
    groups: tuple[GroupEffect, ...]
    """Of pairs and triples."""

    def __repr__(self) -> str:
        return f"<Effects of {self.summary()}; print them to read them>"

    @property
    def pairs(self) -> tuple[GroupEffect, ...]:
        """Groups of two features."""
        return tuple(group for group in self.groups if len(group.feature_names) == 2)

    @property
    def triples(self) -> tuple[GroupEffect, ...]:
        """Groups of three features."""
        return tuple(group for group in self.groups if len(group.feature_names) == 3)

    def summary(self) -> str:
        """What has an effect."""
        return listed([f"{len(self.features)} features", counted([group.feature_names for group in self.groups])])

    def __str__(self) -> str:
        kinds = "single features, pairs and triples" if self.triples else "single features and pairs"
        lines = [
            f"Effects of {kinds} have {self.share:.0%} of the prediction. They start at {readable(self.start)} and add:"
        ]
        shown = [effect for effect in self.features if effect.variation >= LEAST_VARIATION]
        lines += [f"  {effect}" for effect in shown]
        groups = [group for group in self.groups if group.variation >= LEAST_VARIATION][:MOST_GROUPS]
        lines += [f"  {group}" for group in groups]
        return "\n".join([*lines, *self._little(len(shown), len(groups))])

    def _little(self, n_features: int, n_groups: int) -> list[str]:
        """A sentence about the features and groups behind the first ones."""
        features, groups = self.features[n_features:], self.groups[n_groups:]
        named = [one_line(effect.feature_name) for effect in features]
        if groups:
            named.append(counted([group.feature_names for group in groups], "other " if n_groups else ""))
        variation = sum(effect.variation for effect in features) + sum(group.variation for group in groups)
        return [f"  Less comes from {', '.join(named)} ({variation:.1%} of the variation)."] if named else []

    def to_records(self) -> list[dict[str, Any]]:
        """A flat dictionary for every knot of every feature, then one for every group."""
        knots = [
            {**_sizes(effect.feature_name, effect), "about": knot, "adds": value}
            for effect in self.features
            for knot, value in zip(effect.knots.tolist(), effect.values.tolist(), strict=True)
        ]
        groups = [{**_sizes(listed(group.feature_names), group), "up to": group.largest} for group in self.groups]
        return [*knots, *groups]


_Effect = TypeVar("_Effect", FeatureEffect, GroupEffect)


def explain_effects(
    base: EffectBase, feature_names: Sequence[str], rows: Array, indicators: Collection[int] = ()
) -> EffectsExplanation:
    """The effects about their means over rows, and their sizes there; ``indicators``: features of categories."""
    numbers = np.unique(np.linspace(0, len(rows) - 1, MAX_ROWS).round().astype(np.int64))
    X = rows[numbers]
    origins = base.mean_terms(X)
    singles, together = base.parts(X, origins)
    sizes, group_sizes = _deviations(singles), _deviations(together)
    largest = max(sizes.max(), group_sizes.max(initial=0.0), np.finfo(np.float64).tiny)
    total = ((sizes / largest) ** 2).sum() + ((group_sizes / largest) ** 2).sum()
    parts = [(float(size), float((size / largest) ** 2 / max(total, 1.0))) for size in (*sizes, *group_sizes)]
    features = [
        FeatureEffect(j, feature_names[j], *curve, *parts[j], j in indicators)
        for j, curve in enumerate(base.curves(origins))
    ]
    named = (tuple(feature_names[j] for j in group) for group in base.groups)
    together_parts = zip(named, np.abs(together).max(axis=0), parts[len(features) :], strict=True)
    groups = [GroupEffect(names, float(most), *part) for names, most, part in together_parts]
    return EffectsExplanation(base.share, base.constant(origins), _largest_first(features), _largest_first(groups))


def _largest_first(effects: Sequence[_Effect]) -> tuple[_Effect, ...]:
    return tuple(sorted(effects, key=lambda effect: -effect.size))


def _deviations(values: Array) -> Array:
    """Standard deviations of columns, in units in which squares do not overflow."""
    unit = np.maximum(np.abs(values).max(axis=0), np.finfo(np.float64).tiny)
    deviations: Array = unit * (values / unit).std(axis=0)
    return deviations


def _sizes(name: str, effect: FeatureEffect | GroupEffect) -> dict[str, Any]:
    return {"effect": name, "size": effect.size, "variation": effect.variation}
