import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.features.takagi_sugeno import (
    MIN_WIDTH,
    Rules,
    firing_strengths,
    line_predictions,
    rule_features,
    rule_gaps,
    rule_widths,
)

seeds = st.integers(0, 10_000)


def make_rules(seed, k=4, d=3):
    rng = np.random.default_rng(seed)
    return Rules(rng.uniform(-1, 1, (k, d)), rng.uniform(0.05, 1.0, (k, d)))


@given(seeds)
def test_strengths_equal_the_normalised_product_of_gaussians(seed):
    rules = make_rules(seed)
    X = np.random.default_rng(seed).uniform(-1, 1, (20, 3))
    sets = np.exp(-(((X[:, None, :] - rules.centers) / rules.widths) ** 2))
    product = sets.prod(axis=2)
    total = product.sum(axis=1, keepdims=True)
    there = total[:, 0] > 1e-200  # elsewhere the plain product underflows
    np.testing.assert_allclose(firing_strengths(X, rules)[there], (product / total)[there], rtol=1e-9, atol=1e-300)


def test_no_rows_have_no_features():
    assert rule_features(np.empty((0, 3)), make_rules(0)).shape == (0, 16)


@given(seeds, st.sampled_from([1.0, 1e6, 1e150, 1e308]), st.sampled_from([1e-2, 1.0, 10.0]))
def test_strengths_sum_to_one_and_are_finite_at_any_distance(seed, distance, width):
    rng = np.random.default_rng(seed)
    rules = Rules(rng.uniform(-1, 1, (4, 3)), np.full((4, 3), width))
    strengths = firing_strengths(distance * np.sign(rng.uniform(-1, 1, (10, 3))), rules)
    assert np.isfinite(strengths).all()
    np.testing.assert_allclose(strengths.sum(axis=1), 1.0, atol=1e-12)


@given(seeds)
def test_features_are_strengths_and_strengths_times_features(seed):
    rules = make_rules(seed)
    X = np.random.default_rng(seed).uniform(-1, 1, (7, 3))
    H = rule_features(X, rules).reshape(7, 4, 4)
    strengths = firing_strengths(X, rules)
    np.testing.assert_array_equal(H[:, :, 0], strengths)
    np.testing.assert_array_equal(H[:, :, 1:], strengths[:, :, None] * X[:, None, :])
    assert H.reshape(7, -1).shape[1] == rules.n_outputs


@given(seeds)
def test_one_plane_for_all_rules_is_that_plane(seed):
    rules = make_rules(seed)
    rng = np.random.default_rng(seed)
    X, plane = rng.uniform(-1, 1, (9, 3)), rng.standard_normal(4)
    np.testing.assert_allclose(rule_features(X, rules) @ np.tile(plane, 4), plane[0] + X @ plane[1:], atol=1e-12)


def test_widths_have_a_floor_and_a_scale():
    widths = rule_widths(np.array([[0.0, 0.25]]), width_scale=2.0)
    np.testing.assert_allclose(widths, [[MIN_WIDTH, 1.0]])


@given(seeds, st.integers(1, 12), st.integers(1, 10))
def test_strengths_of_a_row_do_not_depend_on_the_rows_beside_it(seed, k, d):
    rules, X = make_rules(seed, k, d), np.random.default_rng(seed).uniform(-1, 1, (5, d))
    alone = np.concatenate([firing_strengths(X[i : i + 1], rules) for i in range(5)])
    np.testing.assert_array_equal(firing_strengths(X, rules), alone)


@given(seeds, st.integers(1, 12), st.integers(1, 10))
def test_gaps_are_differences_of_features(seed, k, d):
    rng, rules = np.random.default_rng(seed), make_rules(seed, k, d)
    first, second = rng.uniform(-1, 1, (2, 6, d))
    mix = rng.uniform(0, 1, (6, 1))
    apart = rule_features(mix * first + (1 - mix) * second, rules)
    apart = apart - mix * rule_features(first, rules) - (1 - mix) * rule_features(second, rules)
    np.testing.assert_allclose(rule_gaps(first, second, mix[:, 0], rules), apart, atol=1e-15)


@given(seeds, st.integers(1, 12), st.integers(1, 10))
def test_predictions_need_no_features(seed, k, d):
    rng, rules = np.random.default_rng(seed), make_rules(seed, k, d)
    X, weights = rng.uniform(-1, 1, (6, d)), rng.standard_normal(rules.n_outputs)
    expected = rule_features(X, rules) @ weights
    np.testing.assert_allclose(line_predictions(X, rules, weights), expected, rtol=1e-9, atol=1e-12)
