"""Effects in words: curves of single features as rules of one condition, and sizes of pairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.effects import EffectBase
from dsfr.core.explain.html import shortened
from dsfr.core.explain.rules import MAX_ROWS
from dsfr.core.explain.words import one_line, readable, signed

MOST_KNOTS = 7
CURVE_ERROR = 0.05
"""Knots are shown until the line through them is as near to the curve as this part of the curve's range."""
LEAST_VARIATION = 0.002
"""Effects with a smaller part of the variation are named without their curves."""
MOST_PAIRS = 10


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
    """Square of the size, as a part of the sum over all effects and pairs."""
    is_indicator: bool = False
    """Whether the feature indicates a level of a category."""

    def __repr__(self) -> str:
        return f"<Effect of {shortened(str(self), 200)}>"

    def __str__(self) -> str:
        if self.is_indicator:
            other, held = (signed(float(np.interp(value, self.knots, self.values))) for value in (0.0, 1.0))
            return f"{one_line(self.feature_name)} ({self.variation:.0%} of the variation): {held}, else {other}"
        chosen = self.shown_knots()
        points = (f"about {readable(self.knots[i])}: {signed(self.values[i])}" for i in chosen)
        between = " (between these, in proportion)" if len(chosen) > 1 else ""
        return f"{one_line(self.feature_name)} ({self.variation:.0%} of the variation): {', '.join(points)}{between}"

    def shown_knots(self) -> list[int]:
        """Numbers of at most `MOST_KNOTS` knots that describe the curve, both ends among them; see `CURVE_ERROR`."""
        chosen = sorted({0, len(self.knots) - 1})
        while len(chosen) < min(MOST_KNOTS, len(self.knots)):
            error = np.abs(np.interp(self.knots, self.knots[chosen], self.values[chosen]) - self.values)
            if error.max() <= CURVE_ERROR * (self.values.max() - self.values.min()):
                break
            chosen = sorted({*chosen, int(error.argmax())})
        return chosen


@dataclass(frozen=True, slots=True)
class PairEffect:
    """What two features do together, beyond what each does alone."""

    feature_names: tuple[str, str]
    largest: float
    """Largest absolute value over the rows, in the target's units."""
    size: float
    variation: float

    def __str__(self) -> str:
        return f"{one_line(self.feature_names[0])} and {one_line(self.feature_names[1])} together: up to ±" + readable(
            self.largest
        )


@dataclass(frozen=True, slots=True, repr=False)
class EffectsExplanation:
    """All effects of a model, the largest first."""

    share: float
    """Share of the effects in the prediction; by it their values are weighted already."""
    start: float
    """What they add up from: their weighted mean output over the rows."""
    features: tuple[FeatureEffect, ...]
    pairs: tuple[PairEffect, ...]

    def __repr__(self) -> str:
        return f"<Effects of {len(self.features)} features and {len(self.pairs)} pairs; print them to read them>"

    def __str__(self) -> str:
        lines = [
            f"Effects of single features and pairs have {self.share:.0%} of the prediction. They start at "
            f"{readable(self.start)} and add:"
        ]
        shown = [effect for effect in self.features if effect.variation >= LEAST_VARIATION]
        lines += [f"  {effect}" for effect in shown]
        pairs = [pair for pair in self.pairs if pair.variation >= LEAST_VARIATION][:MOST_PAIRS]
        lines += [f"  {pair}" for pair in pairs]
        return "\n".join([*lines, *self._little(len(shown), len(pairs))])

    def _little(self, n_features: int, n_pairs: int) -> list[str]:
        """A sentence about the features and pairs behind the first ones."""
        features, pairs = self.features[n_features:], self.pairs[n_pairs:]
        named = [one_line(effect.feature_name) for effect in features]
        if pairs:
            named.append(f"{len(pairs)} {'other ' if n_pairs else ''}pair{'s' if len(pairs) > 1 else ''}")
        variation = sum(effect.variation for effect in features) + sum(pair.variation for pair in pairs)
        return [f"  Less comes from {', '.join(named)} ({variation:.1%} of the variation)."] if named else []

    def to_records(self) -> list[dict[str, Any]]:
        """A flat dictionary for every knot of every feature, then one for every pair."""
        knots = [
            {**_sizes(effect.feature_name, effect), "about": knot, "adds": value}
            for effect in self.features
            for knot, value in zip(effect.knots.tolist(), effect.values.tolist(), strict=True)
        ]
        pairs = [{**_sizes(" and ".join(pair.feature_names), pair), "up to": pair.largest} for pair in self.pairs]
        return [*knots, *pairs]


def explain_effects(
    base: EffectBase, feature_names: Sequence[str], rows: Array, indicators: Collection[int] = ()
) -> EffectsExplanation:
    """The effects about their means over rows, and their sizes there; ``indicators``: features of categories."""
    numbers = np.unique(np.linspace(0, len(rows) - 1, MAX_ROWS).round().astype(np.int64))
    X = rows[numbers]
    origins = base.mean_terms(X)
    singles, together = base.parts(X, origins)
    sizes, pair_sizes = _deviations(singles), _deviations(together)
    largest = max(sizes.max(), pair_sizes.max(initial=0.0), np.finfo(np.float64).tiny)
    total = ((sizes / largest) ** 2).sum() + ((pair_sizes / largest) ** 2).sum()
    parts = [(float(size), float((size / largest) ** 2 / max(total, 1.0))) for size in (*sizes, *pair_sizes)]
    features = [
        FeatureEffect(j, feature_names[j], *curve, *parts[j], j in indicators)
        for j, curve in enumerate(base.curves(origins))
    ]
    pairs = [
        PairEffect((feature_names[j], feature_names[k]), float(most), *part)
        for (j, k), most, part in zip(base.pairs, np.abs(together).max(axis=0), parts[len(features) :], strict=True)
    ]
    ordered = tuple(sorted(features, key=lambda effect: -effect.size))
    return EffectsExplanation(
        base.share, base.constant(origins), ordered, tuple(sorted(pairs, key=lambda pair: -pair.size))
    )


def _deviations(values: Array) -> Array:
    """Standard deviations of columns, in units in which squares do not overflow."""
    unit = np.maximum(np.abs(values).max(axis=0), np.finfo(np.float64).tiny)
    deviations: Array = unit * (values / unit).std(axis=0)
    return deviations


def _sizes(name: str, effect: FeatureEffect | PairEffect) -> dict[str, Any]:
    return {"effect": name, "size": effect.size, "variation": effect.variation}
