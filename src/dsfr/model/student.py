"""Rules over shared terms as a model: their card, and one prediction taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.card import Card, term_names
from dsfr.core.explain.contributions import Contributions, parts_of_rules
from dsfr.core.explain.student_notes import notes_of, unused_thresholds
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.model.target_notes import few_valued

if TYPE_CHECKING:
    from dsfr.model.model import Model


def student_card(model: Model) -> Card:
    """The rules of a model over shared terms, in words."""
    rules, record = model.predictor.basis, model.training.get("student", {})
    assert isinstance(rules, LinguisticRules)
    words = {int(feature): names for feature, names in record.get("words", {}).items()}
    terms = term_names(rules, words, record.get("binary", ()))
    by_rule = None if model.mixture.scores is None else model.mixture.scores.rule_deviations
    return Card(
        predictor=model.predictor,
        feature_names=model.feature_names,
        target_name=model.target_name,
        terms=tuple(map(tuple, terms)),
        outputs=tuple(map(float, record.get("outputs", np.zeros(rules.n_rules)))),
        notes=(
            *notes_of(record, rules.n_rules),
            *unused_thresholds([model.feature_names[j] for j in record.get("fixed", ()) if not rules.ramps_of(j)]),
            *few_valued(model.target_name, model.training),
        ),
        link=model.mixture.link,
        indicators=model.columns.indicators,
        deviations=None if by_rule is None else tuple(by_rule.tolist()),
    )


def prescriptions(model: Model) -> dict[str, dict[str, Any]]:
    """Thresholds and words of the features with conditions, as `RuleRegressor` takes them in ``edits``."""
    card = student_card(model)
    return {
        card.feature_names[j]: {"thresholds": [list(ramp) for ramp in ramps], "words": list(card.terms[j])}
        for j in range(len(card.feature_names))
        if j not in card.indicators and (ramps := card.rules.ramps_of(j))
    }


def student_contributions(model: Model, x: Array, deviations: Array | None = None) -> Contributions:
    """Decompose the prediction of one row ``x``, shape (d,), about the mean of the training rows.

    With deviations of its values it is the expected prediction.
    """
    predictor, record = model.predictor, model.training["student"]
    reference = predictor.within_limits(np.array(record["typical_row"], dtype=np.float64)[None])[0]
    start = float(predictor.shares @ np.array(record["outputs"]) / predictor.shares.sum())
    lines = predictor.weights.reshape(predictor.basis.n_rules, -1).copy()
    lines[:, 0] -= start
    strengths, parts = parts_of_rules(predictor, lines, x, deviations, reference)
    return Contributions(start, reference, strengths, parts, 0.0, np.zeros(len(x)), (), np.empty(0))
