"""Compiled kernels do what their numpy counterparts do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core import compiled
from dsfr.core.clustering.fuzzy_c_means import ClusterSums, ClusterVariances
from dsfr.core.clustering.memberships import membership_powers, memberships, squared_distances
from dsfr.core.features.effects import Effects
from dsfr.core.features.takagi_sugeno import MANY_ROWS, Rules
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.relevance.slopes import slopes
from dsfr.core.scaling.affine import Ranges
from dsfr.core.solve.effect_priors import product_effects, single_effects
from dsfr.core.solve.statistics import Statistics

pytestmark = pytest.mark.skipif(not compiled.available(), reason="numba is not installed")

seeds = st.integers(0, 10_000)
sizes = {"n": st.integers(1, 300), "d": st.integers(1, 9), "k": st.integers(1, 7)}
fuzzifiers = st.one_of(st.sampled_from([1.01, 1.1, 1.2, 1.5, 2.0]), st.floats(1.05, 4.0))


def make(seed, n, d, k):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * 10.0 ** rng.integers(-3, 4, d) + rng.uniform(-5, 5, d)
    ranges = Ranges.of(X)
    return X, ranges, rng.uniform(-1, 1, (k, d))


def total(kind, X, centers, fuzzifier, ranges, *, fast):
    return sum(kind.parts(X, centers, fuzzifier, ranges, fast=fast), kind.none(centers))


@given(seed=seeds, fuzzifier=fuzzifiers, **sizes)
def test_sums_over_clusters_are_the_same(seed, fuzzifier, n, d, k):
    X, ranges, centers = make(seed, n, d, k)
    for kind in (ClusterSums, ClusterVariances):
        ours = total(kind, X, centers, fuzzifier, ranges, fast=True)
        plain = total(kind, X, centers, fuzzifier, ranges, fast=False)
        for name in kind.__slots__:
            size = 1e-12 * np.max(np.abs(getattr(plain, name)))
            np.testing.assert_allclose(getattr(ours, name), getattr(plain, name), rtol=1e-11, atol=size)


@given(seeds, st.sampled_from([1.1, 2.0, 1.7]))
def test_rows_on_centers_and_far_away_count_as_in_numpy(seed, fuzzifier):
    _, _, centers = make(seed, 1, 3, 4)
    rng = np.random.default_rng(seed)
    far = np.sign(rng.uniform(-1, 1, (5, 3))) * 10.0 ** rng.integers(10, 90, (5, 1))
    X = np.concatenate([centers, far])
    ours, plain = (total(ClusterSums, X, centers, fuzzifier, None, fast=fast) for fast in (True, False))
    assert np.isfinite(ours.total).all()
    np.testing.assert_allclose(ours.mass, plain.mass, rtol=1e-9)
    np.testing.assert_allclose(ours.objective, plain.objective, rtol=1e-9)


@given(seeds, st.sampled_from([1.01, 1.02, 1.1, 1.25, 1.5, 2.0]))
def test_powers_by_multiplication_are_those_by_logarithm(seed, fuzzifier):
    X, _, centers = make(seed, 50, 3, 4)
    X = np.vstack([X, centers])
    expected = memberships(X, centers, fuzzifier) ** fuzzifier
    found = membership_powers(squared_distances(X, centers), fuzzifier)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)


@given(st.lists(st.floats(1.0, 1e4), min_size=1, max_size=100), st.integers(2, 200))
def test_inverse_roots_are_right_to_rounding(values, order):
    values = np.array(values)
    np.testing.assert_allclose(compiled.inverse_roots(values, order), values ** (-1.0 / order), rtol=1e-14)


@given(seeds, st.integers(MANY_ROWS, MANY_ROWS + 300), st.integers(1, 5), st.integers(1, 6), st.booleans())
def test_statistics_without_features_are_those_with_them(seed, n, d, k, fast):
    X, ranges, centers = make(seed, n, d, k)
    rng = np.random.default_rng(seed)
    y, rules = rng.standard_normal(n), Rules(centers, rng.uniform(0.05, 1.5, centers.shape))
    H = rules.features(2 * (X - ranges.low) / np.where(ranges.high > ranges.low, ranges.high - ranges.low, 1.0) - 1)
    found = sum(Statistics.parts(X, y, rules, ranges, fast=fast), Statistics.none(rules.n_outputs))
    for ours, plain in ((found.gram, H.T @ H), (found.moment, H.T @ y), (found.feature_sum, H.sum(axis=0))):
        np.testing.assert_allclose(ours, plain, rtol=1e-9, atol=1e-9 * n)
    np.testing.assert_array_equal(found.gram, found.gram.T)


@given(seed=seeds, distance=st.sampled_from([1.0, 1e3, 1e100]), **sizes)
def test_predictions_are_the_same(seed, distance, n, d, k):
    X, ranges, centers = make(seed, n, d, k)
    rng = np.random.default_rng(seed)
    rules = Rules(centers, rng.uniform(0.05, 1.5, centers.shape))
    predictor = Predictor(ranges, rules, rng.standard_normal(rules.n_outputs), 3.0, 2.0, np.ones(k))
    far = X * distance
    plain = predictor.predict(far, fast=False)
    np.testing.assert_allclose(predictor.predict(far, fast=True), plain, rtol=1e-9, atol=1e-10)


@given(seed=seeds, distance=st.sampled_from([1.0, 1e3, 1e100]), n_knots=st.integers(1, 9), **sizes)
def test_predictions_of_effects_are_the_same(seed, distance, n_knots, n, d, k):
    X, ranges, _ = make(seed, n, d, k)
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.uniform(-1, 1, (n_knots, d)), axis=0)
    knots[-2:] = knots[-1:]  # the last knot of few values repeats
    curves = rng.standard_normal((n_knots, d, 3))
    curves[-2:] = curves[-1:]
    products = (product_effects(np.arange(d), int(rng.integers(1, 4)), n_factors) for n_factors in (2, 3))
    effects = Effects(knots, curves, single_effects(d, 3), *products)
    effects = effects.without(rng.random(effects.n_outputs - 1) < 0.7)
    predictor = Predictor(ranges, effects, rng.standard_normal(effects.n_outputs), 3.0, 2.0, np.empty(0))
    on_knots = ranges.midpoints + ranges.half_widths * knots
    rows = np.concatenate([X * distance, on_knots])
    plain = predictor.predict(rows, fast=False)
    np.testing.assert_allclose(predictor.predict(rows, fast=True), plain, rtol=1e-9, atol=1e-7)


@given(seed=seeds, **sizes)
def test_slopes_are_the_same(seed, n, d, k):
    rng = np.random.default_rng(seed)
    X, rules = rng.uniform(-1, 1, (n, d)), Rules(rng.uniform(-1, 1, (k, d)), rng.uniform(0.05, 1.5, (k, d)))
    weights = rng.standard_normal(rules.n_outputs)
    plain = slopes(X, rules, weights)
    np.testing.assert_allclose(slopes(X, rules, weights, fast=True), plain, rtol=1e-9, atol=1e-9 * np.abs(plain).max())


@given(seeds, st.sampled_from([1.1, 2.0]), st.integers(1, 9), st.integers(2, 7))
def test_single_precision_moves_centers_by_less_than_stated(seed, fuzzifier, d, k):
    rng = np.random.default_rng(seed)
    X, centers = rng.uniform(-1, 1, (500, d)), rng.uniform(-1, 1, (k, d))
    single = total(ClusterSums, X.astype(np.float32), centers, fuzzifier, Ranges.of(X), fast=True)
    double = total(ClusterSums, X, centers, fuzzifier, Ranges.of(X), fast=True)
    filled = double.mass > 1.0  # the center of next to nothing is next to undetermined
    moved = single.centers(centers)[filled] - double.centers(centers)[filled]
    assert np.abs(moved).max(initial=0.0) < 2e-6


def test_compiled_kernels_are_for_large_tables_only():
    assert not compiled.worthwhile(compiled.WORTHWHILE_ROWS - 1)
    assert compiled.worthwhile(compiled.WORTHWHILE_ROWS)
