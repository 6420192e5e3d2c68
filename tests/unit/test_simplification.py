"""Simpler models: what is dropped, what is shared, and that weights then make up for it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.explain import simplification
from dsfr.core.explain.rule_base import RuleBase
from dsfr.core.explain.simplification import simplify_predictor
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.mixture import Member
from tests.test_explain import predictor_of, rows_of

seeds = st.integers(0, 10_000)


def test_a_rule_that_counts_on_a_single_row_stays_and_one_that_never_does_goes():
    predictor = predictor_of(0, n_rules=3)
    centers = np.array([[0.0, 0.0, 0.0], [0.9, 0.9, 0.9], [-0.9, -0.9, -0.9]])
    predictor = replace(predictor, basis=Rules(centers, np.full((3, 3), 0.05)))
    places = RuleBase.of([Member(predictor, 1.0)]).centers
    X = np.vstack([np.repeat(places[:1], 999, axis=0), places[1:2]])
    simpler = simplify_predictor(predictor, X, similarity=1.0, min_strength=0.01)
    np.testing.assert_array_equal(simpler.basis.centers, centers[:2])
    assert simpler.shares.sum() == pytest.approx(1.0)


@given(seed=seeds, share=st.floats(0.05, 0.95))
def test_a_shared_set_is_the_mean_of_its_members_by_their_rules_shares(seed, share):
    predictor = predictor_of(seed, n_rules=2)
    centers, widths = predictor.basis.centers, predictor.basis.widths
    centers[:, 0], widths[:, 0] = (0.1, 0.12), (0.5, 0.6)
    centers[:, 1:], widths[:, 1:] = np.array([[-0.9], [0.9]]), 0.05
    predictor = replace(predictor, shares=np.array([share, 1.0 - share]))
    simpler = simplify_predictor(predictor, rows_of(seed, predictor), similarity=0.8, min_strength=0.0)
    parts = predictor.shares
    np.testing.assert_allclose(simpler.basis.centers[:, 0], parts @ [0.1, 0.12])
    np.testing.assert_allclose(simpler.basis.widths[:, 0], parts @ [0.5, 0.6])
    np.testing.assert_array_equal(simpler.basis.centers[:, 1:], centers[:, 1:])


@given(seed=seeds)
def test_moved_weights_bring_predictions_as_near_as_least_squares_can(seed):
    predictor = predictor_of(seed, n_rules=4, width=1.0)
    X = rows_of(seed, predictor)
    wanted = predictor.predict(X)
    simpler = simplify_predictor(predictor, X, similarity=0.5, min_strength=0.2)
    if simpler is predictor:
        return
    H = simpler.basis.features(simplification.scaled_rows(X, simpler))
    target = (wanted - simpler.target_mean) / simpler.target_scale
    best = H @ np.linalg.lstsq(H, target, rcond=simplification.LEAST_SINGULAR_VALUE)[0]
    least, found = (np.sqrt(np.mean((values - target) ** 2)) for values in (best, H @ simpler.weights))
    assert found <= 1.01 * least + 1e-3 * target.std()
