"""Laws of polynomials of features as a member of the automatic mode."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import AutoSFRRegressor, Ensemble
from dsfr.core.features.effects import Effects
from dsfr.core.features.polynomial_curves import polynomial_curves
from dsfr.core.features.quantile_curves import shares_of_rows
from dsfr.core.solve.effect_priors import (
    POLYNOMIALS,
    RANK_CURVES,
    begun_again,
    effect_prior,
    likely_products,
    polynomial_sizes,
    product_effects,
    single_effects,
)
from dsfr.core.solve.prior_variances import PriorVariances
from tests.laws.test_effects import distribution_of


def column(seed: int, kind: str) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return {
        "even": rng.uniform(-1.0, 1.0, 400),
        "normal": rng.normal(size=400),
        "skewed": np.exp(2.0 * rng.normal(size=400)),
        "heavy": rng.standard_t(1.5, size=400),
        "few": rng.integers(0, 4, 400).astype(float),
        "two": rng.integers(0, 2, 400).astype(float),
    }[kind][:, None]


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["even", "normal", "skewed", "heavy", "few", "two"]),
    st.integers(1, 12),
    st.integers(3, 70),
)
@settings(max_examples=60, deadline=None)
def test_polynomials_are_orthonormal_over_the_rows(seed, kind, n_curves, n_knots):
    knots, ranks = distribution_of(column(seed, kind)).knots(n_knots)
    curves = polynomial_curves(knots, ranks, n_curves)[:, 0]
    distinct = np.append(True, np.diff(knots[:, 0]) > 0.0)
    line, own, shares = knots[distinct, 0], curves[distinct], shares_of_rows(ranks[distinct, 0])
    n_own = int(np.count_nonzero(np.abs(own).max(axis=0)))
    assert n_own <= max(min(n_curves, len(line) - 2), 0)
    assert n_own >= min(n_curves, len(line) - 2, 2)
    np.testing.assert_array_equal(own[:, n_own:], 0.0)
    own = own[:, :n_own]
    np.testing.assert_allclose(shares @ own, 0.0, atol=1e-7)
    np.testing.assert_allclose((shares[:, None] * own).T @ own, np.eye(n_own), atol=1e-7)
    np.testing.assert_allclose((shares * (line - line.mean())) @ own / np.abs(line).max(), 0.0, atol=1e-7)


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100.0), st.floats(-50.0, 50.0))
@settings(max_examples=30, deadline=None)
def test_units_of_a_feature_do_not_matter(seed, scale, shift):
    knots, ranks = distribution_of(column(seed, "normal")).knots(40)
    expected = polynomial_curves(knots, ranks, 6)
    np.testing.assert_allclose(polynomial_curves(scale * knots + shift, ranks, 6), expected, atol=1e-6)


@given(st.integers(1, 4), st.integers(1, 6), st.integers(0, 2**32 - 1), st.sampled_from([20.0, 500.0]))
@settings(max_examples=30, deadline=None)
def test_log_variances_fall_by_the_curvature_from_degree_to_degree(d, n_curves, seed, n_labeled):
    rng = np.random.default_rng(seed)
    knots, ranks = distribution_of(rng.normal(size=(80, d))).knots(21)
    n_terms = min(n_curves + 1, 3)
    products = (product_effects(np.arange(d), n_terms, n_factors) for n_factors in (2, 3))
    effects = Effects(knots, polynomial_curves(knots, ranks, n_curves), single_effects(d, n_curves), *products)
    prior = effect_prior(effects, n_labeled, kind=POLYNOMIALS)
    logs = rng.normal(size=len(prior.mean))
    relevance, curvature, by_factors = logs[:d], logs[d : 2 * d], logs[2 * d :]
    expected = [0.0]
    for number, group in enumerate(effects.by_factors if len(effects.triples) else effects.by_factors[:2]):
        for effect in group.reshape(-1, number + 1, 2).tolist():
            expected.append(by_factors[number] + sum(relevance[j] + term * curvature[j] for j, term in effect))
    np.testing.assert_allclose(np.log(prior.variances(logs)), expected, atol=1e-10)


@given(st.integers(2, 12), st.integers(0, 600), st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_products_of_lines_come_first_whatever_features_do_alone(d, most, seed):
    rng = np.random.default_rng(seed)
    knots, ranks = distribution_of(rng.normal(size=(60, d))).knots(21)
    none = np.empty((0, 4), dtype=np.int64)
    effects = Effects(knots, polynomial_curves(knots, ranks, 3), single_effects(d, 3), none)
    prior = effect_prior(effects, 60.0, kind=POLYNOMIALS)
    logs = 4.0 * rng.normal(size=len(prior.mean))
    found = PriorVariances(logs, prior.variances(logs), 1.0, 0.0)
    pairs, triples = likely_products(effects, found, np.full(effects.n_outputs, 60.0), most, POLYNOMIALS)
    of_lines = sum(int((own[:, 1::2] == 0).all(axis=1).sum()) for own in (pairs, triples))
    assert len(pairs) + len(triples) <= most
    assert of_lines == min(most, d * (d - 1) // 2 + d * (d - 1) * (d - 2) // 6)


def test_the_search_begins_where_products_have_a_slope():
    found = PriorVariances(np.array([-6.0, 1.0, -3.0, 0.5, 2.0, 0.1]), np.ones(1), 1.0, 0.0)
    begin = POLYNOMIALS.log_begin
    np.testing.assert_array_equal(begun_again(found, 2, POLYNOMIALS).logs, [begin, 1.0, -3.0, 0.5, 2.0, 0.1])
    np.testing.assert_array_equal(begun_again(found, 2, RANK_CURVES).logs, found.logs)
    assert found.logs[0] == -6.0
    X = np.random.default_rng(0).normal(size=(50, 3))
    knots, ranks = distribution_of(X).knots(9)
    products = product_effects(np.arange(3), 2)
    effects = Effects(knots, polynomial_curves(knots, ranks, 3), single_effects(3, 3), products)
    prior = effect_prior(effects, 200.0, kind=POLYNOMIALS)
    np.testing.assert_array_equal(prior.begin[:3], begin)
    assert prior.begin[-1] == begin
    np.testing.assert_array_equal(prior.begin[3:6], prior.mean[3:6])
    prior = effect_prior(effects, 200.0)
    np.testing.assert_array_equal(prior.begin, prior.mean)


@given(st.integers(1, 599), st.integers(1, 600))
def test_polynomials_stay_within_their_number(n_features, most):
    sizes, most = polynomial_sizes(n_features, n_features + most), n_features + most
    pairs = n_features * (n_features - 1) // 2
    assert 1 + n_features * (1 + sizes.n_curves) + pairs * sizes.product_terms**2 <= most
    assert sizes.product_terms <= sizes.n_curves + 1


def test_lines_alone_are_not_there_twice():
    X = np.random.default_rng(0).normal(size=(80, 300))
    y = np.where(np.arange(80) < 40, X[:, 0], np.nan)
    model = AutoSFRRegressor(ensemble=Ensemble(n_models=0), random_state=0).fit(X, y)
    assert [member.predictor.basis.n_outputs for member in model.model_.mixture.members].count(301) <= 1


def test_labels_far_off_that_polynomials_alone_predict_are_no_mistakes():
    X = np.random.default_rng(4).normal(size=(700, 4))
    truth = X[:, 0] ** 3 * X[:, 1] + X[:, 2]
    y = np.where(np.arange(700) < 100, truth, np.nan)
    assert error_of("polynomials", (X, truth, y)) < 0.15


def smooth_table(seed: int, n_labels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Flow of a fluid through a valve: a smooth function of four of six features, without noise."""
    X = np.random.default_rng(seed).uniform(1.0, 3.0, (1500, 6))
    truth = X[:, 0] ** 1.5 * np.sqrt(X[:, 1] * X[:, 2]) / (1.0 + X[:, 3])
    y = truth.copy()
    y[n_labels:] = np.nan
    return X, truth, y


def error_of(effects: str, table: tuple[np.ndarray, np.ndarray, np.ndarray]) -> float:
    X, truth, y = table
    model = AutoSFRRegressor(ensemble=Ensemble(n_models=0, effects=effects), random_state=0).fit(X, y)
    unknown = np.isnan(y)
    return float(np.std(model.predict(X[unknown]) - truth[unknown]) / np.std(truth[unknown]))


@pytest.mark.parametrize("n_labels", [50, 120])
def test_smooth_functions_need_polynomials(n_labels):
    table = smooth_table(3, n_labels)
    assert error_of("polynomials", table) < 0.6 * error_of("levels", table)


def test_a_product_of_three_that_do_nothing_alone_is_found_beside_others():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (1200, 8))
    truth = X[:, 0] * X[:, 1] * X[:, 2] + 0.5 * X[:, 3] * X[:, 4] + 0.3 * X[:, 5]
    y = np.where(np.arange(1200) < 200, truth, np.nan)
    assert error_of("polynomials", (X, truth, y)) < 0.05


def test_the_member_is_there_only_where_it_is_asked_for():
    X, _, y = smooth_table(0, 60)
    counts = {}
    for effects in ("single", "pairs", "triples", "levels", "polynomials"):
        model = AutoSFRRegressor(ensemble=Ensemble(n_models=0, effects=effects), random_state=0).fit(X, y)
        counts[effects] = [member.predictor.basis.knots.shape[0] for member in model.model_.mixture.members]
    assert len(counts["single"]) == 1
    assert counts["pairs"] == counts["triples"] == counts["levels"]
    assert set(counts["polynomials"]) - set(counts["levels"]) == {61}
