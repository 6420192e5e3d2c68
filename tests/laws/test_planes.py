"""Laws of the plane as a member of the automatic mode, and of features that are the same for all labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsfr import AutoSFRRegressor, Ensemble
from dsfr.core.features.effects import Effects
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.mixture import Member
from dsfr.core.relevance.slope_shrinkage import Shrinkage, constant_features, unshrunk_factor
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.statistics import Statistics


def error(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)) / np.std(y))


def effects_in(model: AutoSFRRegressor, *, planes: bool) -> list[Member]:
    """Members that are sums of effects: lines alone, or others; the mean of the labels is neither."""
    found = [member for member in model.model_.mixture.members if isinstance(member.predictor.basis, Effects)]
    found = [member for member in found if member.predictor.basis.n_outputs > 1]
    return [member for member in found if (member.predictor.basis.curves.shape[2] == 0) == planes]


def noisy_plane(seed: int, n_labels: int = 20, d: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Correlated features that all matter, and labels of the first rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 1)) + 0.7 * rng.normal(size=(500, d))
    truth = X @ rng.uniform(0.5, 1.5, d)
    truth += 0.5 * np.std(truth) * rng.normal(size=500)
    return X, np.where(np.arange(500) < n_labels, truth, np.nan)


@given(st.integers(0, 2**32 - 1), st.integers(12, 60), st.integers(1, 4))
@settings(max_examples=10, deadline=None)
def test_the_plane_is_ridge_regression_on_the_scaled_labels(seed, n_labels, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, d))
    truth = X @ rng.normal(size=d) + rng.normal(size=200)
    y = np.where(np.arange(200) < n_labels, truth, np.nan)
    model = AutoSFRRegressor(ensemble=Ensemble(effects="single"), target=None, random_state=0).fit(X, y)
    planes = [member.predictor for member in effects_in(model, planes=True)]
    assume(planes)  # a plane of little share is left out
    (plane,) = planes
    A = np.column_stack([np.ones(n_labels), scale_features(np.clip(X, *ends(plane)), plane.ranges)[:n_labels]])
    z = (y[:n_labels] - plane.target_mean) / plane.target_scale
    residual = A.T @ (z - A @ plane.weights)
    slopes = plane.weights[1:]
    ridge = float(residual[1:] @ slopes / (slopes @ slopes))
    assert ridge > 0.0
    np.testing.assert_allclose(residual[1:], ridge * slopes, atol=1e-6 * np.abs(A.T @ z).max())


def ends(predictor) -> tuple[np.ndarray, np.ndarray]:
    return predictor.limits.low, predictor.limits.high


def test_with_few_labels_a_noisy_plane_has_the_largest_share_of_all_effects():
    of_planes, of_others = [], []
    for seed in range(5):
        model = AutoSFRRegressor(random_state=seed).fit(*noisy_plane(seed))
        of_planes.append(sum(member.share for member in effects_in(model, planes=True)))
        of_others.append(max(member.share for member in effects_in(model, planes=False)))
    assert np.mean(of_planes) > np.mean(of_others)


def test_a_plane_has_no_share_where_the_target_levels_off():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    truth = 3.0 * np.clip(X[:, 0], -0.5, 0.7) + X[:, 1] + rng.normal(0, 0.5, 800)
    model = AutoSFRRegressor(random_state=0).fit(X, np.where(np.arange(800) < 150, truth, np.nan))
    assert not effects_in(model, planes=True)
    assert all(member.share > 0.0 for member in model.model_.mixture.members)


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
    found = constant_features(total, n_rules)
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


@pytest.mark.parametrize(("effects", "most"), [("auto", 0.73), (None, 0.5)])
def test_new_labels_free_a_feature_that_was_the_same_for_all_before(effects, most):
    """Effects of the feature take a new fit, slopes of rules do not: were they held, 0.78 and 0.67 would be left."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(600, 4)), rng.random(600) < 0.4]).astype(float)
    X[:25, 4] = 0.0
    truth = X @ [1.0, -1.0, 0.5, 0.5, 3.0] + 0.1 * rng.normal(size=600)
    y = np.where(np.arange(600) < 25, truth, np.nan)
    model = AutoSFRRegressor(ensemble=Ensemble(effects=effects), random_state=0).fit(X, y)
    before = error(model.predict(X[300:]), truth[300:])
    model.update(X[25:300], truth[25:300])
    assert error(model.predict(X[300:]), truth[300:]) < most * before
