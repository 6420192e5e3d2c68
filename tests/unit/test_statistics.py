import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.solve.statistics import Statistics, solve_weights

seeds = st.integers(0, 10_000)


def make_problem(seed, n=40, d=2, k=3):
    rng = np.random.default_rng(seed)
    basis = Rules(rng.uniform(-1, 1, (k, d)), rng.uniform(0.2, 1.0, (k, d)))
    gap = rng.standard_normal((15, basis.n_outputs))
    return basis, rng.uniform(-1, 1, (n, d)), rng.standard_normal(n), gap.T @ gap


@given(seeds, st.integers(0, 40))
def test_statistics_of_a_split_add_to_those_of_the_whole(seed, cut):
    basis, X, y, penalty = make_problem(seed)
    parts = Statistics.of(X[:cut], y[:cut], basis, penalty / 3) + Statistics.of(
        X[cut:], y[cut:], basis, 2 * penalty / 3
    )
    whole = Statistics.of(X, y, basis, penalty)
    for name in Statistics.__slots__:
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-10, atol=1e-10)


def test_statistics_over_many_blocks_equal_one_product(rng):
    basis, *_ = make_problem(0)
    X, y = rng.uniform(-1, 1, (5000, 2)), rng.standard_normal(5000)
    H = basis.features(X)
    found = Statistics.of(X, y, basis)
    np.testing.assert_allclose(found.gram, H.T @ H, rtol=1e-10)
    np.testing.assert_allclose(found.moment, H.T @ y, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.feature_sum, H.sum(axis=0), rtol=1e-10)


@given(seeds, st.floats(1e-5, 10.0))
def test_without_a_penalty_the_solution_is_ridge_regression(seed, ridge):
    basis, X, y, _ = make_problem(seed)
    H = basis.features(X)
    weights = solve_weights(Statistics.of(X, y, basis).quadratic(0.0), ridge)
    reference = Ridge(alpha=ridge, fit_intercept=False, solver="svd").fit(H, y)
    np.testing.assert_allclose(H @ weights, reference.predict(H), atol=1e-8)


@given(seeds, st.floats(1e-4, 10.0), st.floats(0.0, 10.0))
def test_the_solution_is_least_squares_of_stacked_rows(seed, ridge, weight):
    rng = np.random.default_rng(seed)
    basis, X, y, _ = make_problem(seed)
    B = rng.standard_normal((15, basis.n_outputs))
    H, p = basis.features(X), basis.n_outputs
    stacked = np.vstack([H, np.sqrt(weight) * B, np.sqrt(ridge) * np.eye(p)])
    expected = np.linalg.lstsq(stacked, np.concatenate([y, np.zeros(15 + p)]), rcond=None)[0]
    found = solve_weights(Statistics.of(X, y, basis, B.T @ B).quadratic(weight), ridge)
    np.testing.assert_allclose(H @ found, H @ expected, atol=1e-8)


@given(seeds, st.floats(0.0, 10.0))
def test_the_quadratic_is_the_objective_and_its_gradient(seed, weight):
    basis, X, y, penalty = make_problem(seed)
    quadratic = Statistics.of(X, y, basis, penalty).quadratic(weight)
    w, step = np.random.default_rng(seed).standard_normal((2, basis.n_outputs))
    residual = y - basis.features(X) @ w
    assert quadratic.value(w) == pytest.approx(residual @ residual / 2 + weight / 2 * w @ penalty @ w, rel=1e-9)
    slope = (quadratic.value(w + 1e-6 * step) - quadratic.value(w - 1e-6 * step)) / 2e-6
    assert slope == pytest.approx(quadratic.gradient(w) @ step, rel=1e-5, abs=1e-4)
