"""Arrays that several tasks are sent or contribute: their shapes and ranges."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.core.features.membership import MEMBERSHIPS
from dsfr.storage.bundles import Bundle
from dsfr.training.tasks.declaration import (
    Field,
    Fields,
    Rule,
    above,
    array,
    at_least,
    not_below,
    number,
    optional,
    whole,
    within,
)
from dsfr.training.tasks.semidefinite import gram_triangle
from dsfr.training.tasks.symbols import MAX_WEIGHTS, MOST_MODELS, Sizes

FAR = 1e110
"""Largest center or weight: scaled features end at 1e100, and squares of this are still finite."""
NARROW = 1e-6
"""Smallest width of a fuzzy set; training makes none below 0.01."""
MAX_ROUNDS = 2**53
"""Largest number of a round."""
MAX_STEPS = 300
"""Steps of a local clustering at most."""


def _ascends(values: npt.NDArray[Any], *_: Any) -> bool:
    steps = np.diff(values / 2.0)  # halves cannot overflow
    return bool((steps >= -1e-9 * np.abs(values / 2.0).max(initial=0.0)).all())


ASCENDING = Rule("ascending", _ascends)
"""To rounding, along the last axis."""
COUNT = number(at_least(0.0))
TRUTH = Rule("0 or 1", lambda values, *_: bool(np.isin(values, (0.0, 1.0)).all()))
FLAG = number(within(1.0, 1.0))
"""An array whose presence is the message."""
SEED = whole(0, 2**63 - 1)
POSITIVE = number(above(0.0))
SCORE = number(at_least(0.0))
SMALL_OR_LARGE = (at_least(1e-6), Rule("<= 1e+06", lambda values, *_: bool((values <= 1e6).all())))

RANGES: Fields = {"low": array("d"), "high": array("d", rules=(not_below("low"),))}
RANGES_OR_KEPT: Fields = {"low": optional(RANGES["low"]), "high": replace(RANGES["high"], beside="low")}
"""Ranges of scaling that take the place of those in memory."""
TARGET: Fields = {"target_mean": number(), "target_scale": POSITIVE}
TARGET_RANGE: Fields = {"target_origin": number(), "target_unit": POSITIVE}

CENTERS = array("k", "d", rules=(within(-FAR, FAR),))
WIDTHS = array("k", "d", rules=(at_least(NARROW),))
WEIGHT_VECTOR = array("p", rules=(within(-FAR, FAR),))
_KNOWN = Rule(
    "the name of a membership function", lambda values, *_: bytes(values).decode(errors="replace") in MEMBERSHIPS
)
MEMBERSHIP = Field(("w",), (_KNOWN,), "uint8", is_optional=True)
"""Name of the membership function in UTF-8; without it, sets are Gaussian."""
RULES: Fields = {"centers": CENTERS, "widths": WIDTHS, "membership": MEMBERSHIP}
_FEATURES_EXIST = Rule(
    "numbers of features and curves that exist",
    lambda values, _, sizes: bool(
        (values >= 0).all() and (values[:, 0::2] < sizes["d"]).all() and (values[:, 1::2] <= sizes["curves"]).all()
    ),
)
_LEVELS_EXIST = Rule(
    "numbers of features and knots that exist",
    lambda values, _, sizes: bool(
        (values >= 0).all() and (values[:, 0] < sizes["d"]).all() and (values[:, 1:] < sizes["knots"]).all()
    ),
)
EFFECTS: Fields = {
    "knots": optional(array("knots", "d", rules=(within(-FAR, FAR),))),
    "curves": replace(array("knots", "d", "curves", rules=(within(-FAR, FAR),)), beside="knots"),
    "singles": replace(Field(("singles", 2), (_FEATURES_EXIST,), "int64"), beside="knots"),
    "pairs": replace(Field(("pairs", 4), (_FEATURES_EXIST,), "int64"), beside="knots"),
    "triples": optional(Field(("triples", 6), (_FEATURES_EXIST,), "int64"), beside="knots"),
    "levels": optional(Field(("levels", 3), (_LEVELS_EXIST,), "int64"), beside="knots"),
}
"""Effects of single features, of pairs, of triples and of levels."""
BASIS: Fields = {
    "dilations": optional(array("h", "d", rules=(above(0.0), within(0.0, 1.0)))),
    "translations": replace(array("h", "d", rules=(within(0.0, 1.0),)), beside="dilations"),
    "centers": replace(CENTERS, unless=("dilations",)),
    "widths": replace(WIDTHS, unless=("dilations",)),
    "membership": replace(MEMBERSHIP, beside="centers"),
}
"""Rules, or wavelets instead."""
BASIS_OR_EFFECTS: Fields = {
    **BASIS,
    **EFFECTS,
    "centers": replace(CENTERS, unless=("dilations", "knots")),
    "widths": replace(WIDTHS, unless=("dilations", "knots")),
}
"""Rules, or wavelets or effects instead."""
VARIATION: Fields = {"variation": optional(whole(0, MOST_MODELS))}

CLUSTER_SUMS: Fields = {
    "mass": array("k", rules=(at_least(0.0),)),
    "total": array("k", "d"),
    "objective": SCORE,
}
CLUSTER_VARIANCES: Fields = {
    "mass": array("k", rules=(at_least(0.0),)),
    "square": array("k", "d", rules=(at_least(0.0),)),
}
COUNTS: Fields = {
    "n_samples": COUNT,
    "n_labeled": COUNT,
    "label_weight": optional(COUNT),
    "target_total": number(),
    "target_square": SCORE,
}


def statistics_fields(symbol: str) -> Fields:
    """Statistics of features of which there are ``symbol``."""
    triangle = array(f"{symbol}({symbol}+1)/2", rules=(gram_triangle(symbol),))
    return {
        "moment": array(symbol),
        "feature_sum": array(symbol),
        "n_labeled": COUNT,
        "target_sum": number(),
        "target_square": SCORE,
        "gram": triangle,
    }


STATISTICS: Fields = {**statistics_fields("p"), "unlabeled_gram": optional(statistics_fields("p")["gram"])}


PENALTY: dict[str, Field] = {}
"""Arrays of all penalties on unlabelled rows: a penalty adds its own when its class is made, see `UnlabeledPenalty`."""
STRETCH: Fields = {"stretch": optional(array("d", rules=(above(0.0), within(0.0, 1e6))))}
"""Factors on the features by which near rows are found."""
UNLABELED_WEIGHT = number(within(0.0, 1e100))
"""Weight of the penalty on unlabelled rows."""
PROBLEM: Fields = {**BASIS, **TARGET, **STRETCH, **VARIATION, **RANGES_OR_KEPT}
"""What determines an agent's statistics, beside the penalty on unlabelled rows."""


def problem_fields(more: Fields) -> Fields:
    """Arrays of a broadcast that determines an agent's statistics, the penalty included, and more."""
    return ChainMap({**PROBLEM, **more}, PENALTY)


TYPICAL_AGENT: Fields = {
    "ridge_share": replace(optional(POSITIVE), unless=("dilations",)),
    "labeled_each": replace(COUNT, beside="ridge_share"),
    "pairs_each": replace(COUNT, beside="ridge_share"),
}
"""What the common preconditioner of rules is made of."""
CURVATURES: Fields = {
    "size": optional(SCORE),
    "mean": replace(number(), beside="size"),
    "smallest": replace(SCORE, unless=("size",)),
    "largest": replace(SCORE, unless=("size",)),
}
"""How strongly an agent's problem is curved, in the common preconditioned coordinates or without them."""
ITERATION: Fields = {"mix": array("r", rules=(within(-1e100, 1e100),)), "round": whole(1, MAX_ROUNDS)}
"""What agents must know of a fixed-point iteration."""

SAMPLE = number(above(0.0), within(0.0, 1.0))
"""Share of the rows that a mean over rows is taken of."""
_SHARES = Rule("shares that sum to 1", lambda values, *_: abs(float(values.sum()) - 1.0) <= 1e-6)
MIXTURE: Fields = {
    **RANGES,
    **TARGET,
    "shares": array("m", rules=(at_least(0.0), _SHARES)),
    **{name: replace(field, repeats="m") for name, field in EFFECTS.items()},
    "centers": replace(CENTERS, unless=("knots",), repeats="m"),
    "widths": replace(WIDTHS, unless=("knots",), repeats="m"),
    "membership": replace(MEMBERSHIP, beside="centers", repeats="m"),
    "weights": replace(WEIGHT_VECTOR, repeats="m"),
}
"""All rule bases of an ensemble."""
MIXTURE_WITH_FACTORS: Fields = {
    **MIXTURE,
    "factor": replace(array("p", "p"), repeats="m"),
    "noise": replace(SCORE, repeats="m"),
}
"""Rule bases with the factors of their systems, and the noise that each finds, for targets of deviation 1."""


def _rules_are_affordable(values: npt.NDArray[Any], _: Bundle, sizes: Sizes) -> bool:
    return 1 <= int(values) <= max(MAX_WEIGHTS // (sizes.get("d", 0) + 1), 1)


WEIGHTING: Fields = {
    "membership_exponent": optional(number(above(0.0), within(0.0, 1e6))),
    "nearest_only": optional(FLAG),
}
"""How rows count in the sums of a cluster where that is not the textbook's way, see `Weighting`."""
START: Fields = {
    "ticket": COUNT,
    "n_rules": Field((), (Rule(f"1 to {MAX_WEIGHTS} / (d + 1)", _rules_are_affordable),), "int64"),
    "fuzzifier": number(above(1.0), within(1.0, 1e6)),
    "tol": POSITIVE,
    "max_steps": whole(0, MAX_STEPS),
    **WEIGHTING,
}
"""What an agent must know to cluster its own rows."""
