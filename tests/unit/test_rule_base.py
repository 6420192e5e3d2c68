"""Rules of a model side by side: what they say on average, where features lie, and how often each counts."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.explain.rule_base import RuleBase
from dsfr.core.explain.rules import SET_THRESHOLD, SILENT, discrimination, needed_features
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.mixture import Member
from dsfr.core.scaling.affine import Ranges
from dsfr.model.explanation import width_scales
from tests.test_explain import average_of, model_of, predictor_of, rows_of

seeds = st.integers(0, 10_000)


@given(seed=seeds)
def test_a_rule_s_mean_output_is_that_of_the_rows_by_how_much_it_counts_there(seed):
    model = average_of(seed)
    base, X = model.rule_base, rows_of(seed, model.predictor)
    strengths, lines = base.strengths(X), base.lines(X)
    for k, rule in enumerate(model.explain(X, all_models=True)):
        if strengths[:, k].sum() > SILENT:
            said = np.average(lines[:, k], weights=strengths[:, k])
            assert rule.mean_output == pytest.approx(said, rel=1e-9, abs=1e-9)


def test_a_rule_that_fires_nowhere_says_what_it_says_at_its_center():
    predictor = predictor_of(0, n_rules=2)
    centers = np.array([[0.0, 0.0, 0.0], [0.9, 0.9, 0.9]])
    predictor = replace(predictor, basis=Rules(centers, np.full((2, 3), 0.02)))
    base = RuleBase.of([Member(predictor, 1.0)])
    X = np.repeat(base.centers[:1], 5, axis=0)
    assert base.strengths(X)[:, 1].max() < 1e-300
    said = model_of(predictor).explain(X)[1].mean_output
    assert said == pytest.approx(base.intercepts[1] + base.slopes[1] @ base.centers[1])


@given(seed=seeds)
def test_where_features_lie_is_within_the_limits_if_there_are_any(seed):
    predictor = predictor_of(seed, width=3.0)
    low, high = predictor.ranges.low, predictor.ranges.high
    limits = Ranges(low + 0.4 * (high - low), high - 0.4 * (high - low))
    for known, domain in ((None, predictor.ranges), (limits, limits)):
        base = RuleBase.of([Member(replace(predictor, limits=known), 1.0)])
        assert base.domain is domain
        rows = base.synthetic_rows()
        assert (rows >= domain.low).all()
        assert (rows <= domain.high).all()
        assert (rows == domain.low).any()  # sets as wide as these reach beyond, and are cut off


@given(seed=seeds)
def test_what_a_rule_needs_does_not_depend_on_its_member_s_share(seed):
    model = average_of(seed, n_members=2)
    X = rows_of(seed, model.predictor)
    found = []
    for share in (0.5, 0.05):
        members = [
            replace(member, share=part) for part, member in zip((1.0 - share, share), model.members, strict=True)
        ]
        base = RuleBase.of(members)
        strengths = base.strengths(X)
        importance = discrimination(base, X, strengths)
        found.append((importance, needed_features(base, X, strengths, importance)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-7, atol=1e-12)
    borderline = np.abs(found[0][0] - SET_THRESHOLD) < 1e-9
    assert ((found[0][1] == found[1][1]) | borderline).all()


@given(seed=seeds, n_rules=st.integers(6, 12))
def test_shares_of_rules_in_the_text_of_a_prediction_are_all_there(seed, n_rules):
    predictor = predictor_of(seed, n_rules, width=3.0)
    text = str(model_of(predictor).explain_prediction(rows_of(seed, predictor)[0]))
    told = [int(part) for part in re.findall(r"(?:rule \d+|others): (\d+)%", text)]
    assert sum(told) == pytest.approx(100, abs=len(told))


def test_rules_that_fire_by_the_mean_over_features_have_wider_sets_than_clusters():
    members = average_of(0).members
    d = members[0].predictor.n_features
    assert width_scales({"rules": {"width_scale": 2.0}}, {}, members) == [2.0] * len(members)
    assert width_scales({"rules": {"width_scale": 2.0, "firing": "mean"}}, {}, members) == pytest.approx(
        [2.0 * d**0.5] * 3
    )
    described = [{"width_scale": scale} for scale in (1.0, 1.5, 3.0)]
    assert width_scales({}, {"models": described}, members) == [1.0, 1.5, 3.0]
