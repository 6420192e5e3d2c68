"""Laws of the plane as a member of the automatic mode, and of features that are the same for all labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsfr import AutoSFRRegressor, Ensemble
from dsfr.core.features.effects import Effects
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.relevance.slope_shrinkage import Shrinkage, constant_features, unshrunk_factor
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.statistics import Statistics


def error(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)) / np.std(y))


def planes_in(model: AutoSFRRegressor) -> list:
    """Members that are lines alone, one for each feature that varies."""
    found = []
    for member in model.model_.mixture.members:
        basis = member.predictor.basis
        if isinstance(basis, Effects) and basis.n_outputs > 1 and not (basis.singles[:, 1].any() or len(basis.pairs)):
            found.append(member.predictor)
    return found


def table(seed: int, n_labels: int, d: int = 8) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A noisy plane of skewed counts: rows, targets, and labels of the first ones."""
    rng = np.random.default_rng(seed)
    size = np.exp(rng.normal(size=(600, 1)))
    X = rng.poisson(3.0 * size * np.exp(0.5 * rng.normal(size=(600, d)))).astype(float)
    truth = rng.poisson(0.2 * X.sum(axis=1)).astype(float)
    return X, truth, np.where(np.arange(600) < n_labels, truth, np.nan)


@given(st.integers(0, 2**32 - 1), st.integers(12, 60), st.integers(1, 4))
@settings(max_examples=10, deadline=None)
def test_the_plane_is_ridge_regression_on_the_scaled_labels(seed, n_labels, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, d))
    truth = X @ rng.normal(size=d) + rng.normal(size=200)
    y = np.where(np.arange(200) < n_labels, truth, np.nan)
    model = AutoSFRRegressor(ensemble=Ensemble(effects="single"), target=None, random_state=0).fit(X, y)
    (plane,) = planes_in(model)
    A = np.column_stack([np.ones(n_labels), scale_features(np.clip(X, *ends(plane)), plane.ranges)[:n_labels]])
    z = (y[:n_labels] - plane.target_mean) / plane.target_scale
    residual = A.T @ (z - A @ plane.weights)
    slopes = plane.weights[1:]
    ridge = float(residual[1:] @ slopes / (slopes @ slopes))
    assert ridge > 0.0
    np.testing.assert_allclose(residual[1:], ridge * slopes, atol=1e-6 * np.abs(A.T @ z).max())


def ends(predictor) -> tuple[np.ndarray, np.ndarray]:
    return predictor.limits.low, predictor.limits.high


def test_with_few_labels_a_noisy_plane_of_counts_is_predicted_like_ridge_regression():
    ours, ridge = [], []
    for seed in range(6):
        X, truth, y = table(seed, 20)
        model = AutoSFRRegressor(random_state=seed).fit(X, y)
        peer = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 25))).fit(X[:20], truth[:20])
        ours.append(error(model.predict(X[20:]), truth[20:]))
        ridge.append(error(peer.predict(X[20:]), truth[20:]))
    assert np.mean(ours) <= 1.03 * np.mean(ridge)


@pytest.mark.parametrize("seed", range(3))
def test_a_feature_that_is_the_same_for_all_labels_does_not_take_the_place_of_the_constant(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(500, 3)), rng.random((500, 3)) < 0.85]).astype(float)
    X[:25, 3:] = 1.0
    truth = 40.0 + X[:, :3] @ [3.0, -2.0, 1.0]
    y = np.where(np.arange(500) < 25, truth, np.nan)
    model = AutoSFRRegressor(random_state=seed).fit(X, y)
    assert error(model.predict(X[25:]), truth[25:]) < 2e-3


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 5), st.integers(2, 40))
@settings(max_examples=30, deadline=None)
def test_sums_over_rules_tell_which_features_are_the_same_for_all_labels(seed, n_rules, d, n):
    rng = np.random.default_rng(seed)
    is_constant = rng.random(d) < 0.5
    X = np.where(is_constant, rng.normal(size=d), rng.normal(size=(n, d)))
    rules = Rules(rng.normal(size=(n_rules, d)), rng.uniform(0.5, 2.0, (n_rules, d)))
    total = Statistics.of(X, rng.normal(size=n), rules)
    found = constant_features(total.gram, total.feature_sum, total.n_labeled, n_rules)
    np.testing.assert_array_equal(found, is_constant)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_slopes_of_constant_features_are_shrunk_and_the_factor_knows(seed, n_rules, d):
    rng = np.random.default_rng(seed)
    relevance, is_constant = rng.uniform(0.1, 1.0, d), rng.random(d) < 0.5
    tied = Shrinkage.of(relevance, n_rules, is_constant)
    size = n_rules * (d + 1)
    T = tied.times(np.eye(size))
    np.testing.assert_allclose(tied.inverse.times(T), np.eye(size), atol=1e-9)
    slopes = T.reshape(n_rules, d + 1, size)[:, 1:]
    assert np.abs(slopes[:, is_constant]).max(initial=0.0) <= 1e-3
    root = rng.normal(size=(size + 3, size))
    A = root.T @ root
    factor = unshrunk_factor(np.linalg.cholesky(T @ A @ T).T, tied)
    np.testing.assert_allclose(factor.T @ factor, A, rtol=1e-5, atol=1e-5)
