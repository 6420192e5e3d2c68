"""Slopes of a model and what they say of features."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.relevance.slopes import MIN_RELEVANCE, effective_features, relevance, slopes


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5))
def test_slopes_are_the_derivatives(seed, n_rules, n_features):
    rng = np.random.default_rng(seed)
    rules = Rules(rng.uniform(-1, 1, (n_rules, n_features)), rng.uniform(0.3, 1.5, (n_rules, n_features)))
    weights, X, step = rng.normal(size=rules.n_outputs), rng.uniform(-1, 1, (7, n_features)), 1e-5
    for j in range(n_features):
        shift = step * np.eye(n_features)[j]
        expected = (rules.features(X + shift) @ weights - rules.features(X - shift) @ weights) / (2 * step)
        np.testing.assert_allclose(slopes(X, rules, weights)[:, j], expected, atol=1e-6, rtol=1e-6)


def test_relevance_is_relative_to_the_steepest_feature_and_leaves_none_out():
    found = relevance(np.array([4.0, 1.0, 0.0]))
    np.testing.assert_allclose(found, [1.0, 0.5, MIN_RELEVANCE])


def test_a_flat_model_finds_all_features_equally_relevant():
    np.testing.assert_array_equal(relevance(np.zeros(3)), np.ones(3))
    np.testing.assert_array_equal(relevance(np.full(3, np.inf)), np.ones(3))


def test_effective_features_count_the_relevant_ones():
    assert effective_features(np.ones(7)) == 7.0
    assert effective_features(np.array([1.0, 1.0, 1e-9])) < 2.0 + 1e-12
    assert effective_features(np.array([3.0])) == 1.0
