"""Effects of single features, pairs and triples in the data of the page."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsfr.core.explain.effect_words import EffectsExplanation
from dsfr.core.explain.effects import EffectBase
from dsfr.core.explain.words import one_line
from dsfr.core.prediction.mixture import Member

MOST_GROUPS = 20

Payload = dict[str, Any]


def member_units(member: Member) -> Payload:
    """What members of all kinds have in common: share, limits, ranges and the target's units."""
    predictor, limits = member.predictor, member.predictor.limits
    return {
        "share": member.share,
        "limits": None if limits is None else [limits.low.tolist(), limits.high.tolist()],
        "middle": predictor.ranges.midpoints.tolist(),
        "half": predictor.ranges.half_widths.tolist(),
        "mean": predictor.target_mean,
        "scale": predictor.target_scale,
    }


def effect_members(base: EffectBase) -> list[Payload]:
    """Members that are sums of effects, for computing; knots and curves are lists over features.

    An effect is a list of features and terms by turns, one to three of each.
    """
    return [
        {
            **member_units(member),
            "knots": basis.knots.T.tolist(),
            "curves": basis.curves.transpose(1, 2, 0).tolist(),
            "effects": [effect for effects in basis.by_factors for effect in effects.tolist()],
            "weights": member.predictor.weights.tolist(),
        }
        for member, basis in zip(base.members, base.bases, strict=True)
    ]


def effects_section(found: EffectsExplanation) -> Payload:
    """Curves and sentences about them, the largest first."""
    return {
        "hint": f"What each input adds to the prediction, about its mean over the rows, and already weighted by the "
        f"effects' share of {found.share:.0%}. Percentages are parts of the variation of all effects.",
        "features": [
            {
                "feature": effect.feature,
                "title": f"{one_line(effect.feature_name)} ({effect.variation:.0%} of the variation)",
                "text": str(effect),
                "points": np.column_stack([effect.knots, effect.values]).tolist(),
            }
            for effect in found.features
        ],
        "groups": list(map(str, found.groups[:MOST_GROUPS])),
    }
