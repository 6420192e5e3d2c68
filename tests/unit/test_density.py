"""Distribution of rows: sums add, completions are regressions, and noise interpolates between known and missing."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.core.density import RowDensity, complete_sums, density_of

seeds = st.integers(0, 2**31)


def some_density(rng, d, *, independent=False):
    A = rng.normal(size=(3 * d, d)) @ rng.normal(size=(d, d))
    correlation = None if independent else np.corrcoef(A, rowvar=False).reshape(d, d)
    mean = rng.normal(size=d) * 10.0
    deviation = rng.uniform(0.1, 5.0, d)
    return RowDensity(
        mean, deviation, correlation, mean - 9.0 * deviation, mean + 9.0 * deviation, np.ones(d), np.zeros(d)
    )


def rows_of(density, rng, n, share):
    X = density.mean + density.deviation * rng.normal(size=(n, density.n_features))
    X[rng.random(X.shape) < share] = np.nan
    return X


def one(density, X, noise):
    ((_, found),) = density.conditionals(X, np.broadcast_to(noise, X.shape).copy())
    return found


@settings(max_examples=15, deadline=None)
@given(seed=seeds, d=st.integers(1, 5), share=st.floats(0.1, 0.9))
def test_a_missing_value_is_the_regression_on_the_known_ones(seed, d, share):
    rng = np.random.default_rng(seed)
    density = some_density(rng, d)
    X = rows_of(density, rng, 12, share)
    found = one(density, X, 0.0)
    covariance = density.correlation * np.outer(density.deviation, density.deviation)
    for row, means, deviations in zip(X, found.means, found.deviations, strict=True):
        gap = np.isnan(row)
        known = covariance[np.ix_(~gap, ~gap)]
        gain = np.linalg.solve(known, covariance[np.ix_(~gap, gap)]).T
        wanted = density.mean[gap] + gain @ (row - density.mean)[~gap]
        left = covariance[np.ix_(gap, gap)] - gain @ covariance[np.ix_(~gap, gap)]
        np.testing.assert_allclose(means[gap], np.clip(wanted, density.low[gap], density.high[gap]), rtol=1e-6)
        np.testing.assert_allclose(deviations[gap] ** 2, np.diag(left), rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(means[~gap], row[~gap])
        assert (deviations[~gap] == 0.0).all()


@settings(max_examples=15, deadline=None)
@given(seed=seeds, d=st.integers(1, 5), independent=st.booleans())
def test_noise_goes_from_known_to_missing(seed, d, independent):
    rng = np.random.default_rng(seed)
    density = some_density(rng, d, independent=independent)
    X = rows_of(density, rng, 12, 0.3)
    noisy = rng.random(d) < 0.6
    missing = one(density, np.where(noisy, np.nan, X), 0.0)
    beyond = one(density, X, np.where(noisy, 1e200, 0.0))
    np.testing.assert_array_equal(beyond.means, missing.means)
    np.testing.assert_array_equal(beyond.deviations, missing.deviations)
    np.testing.assert_allclose(one(density, X, np.where(noisy, 1e-4, 0.0)).means, one(density, X, 0.0).means, rtol=1e-4)
    sizes = [one(density, X, np.where(noisy, size, 0.0)).deviations for size in (0.01, 0.1, 1.0, 10.0)]
    assert all((more >= less - 1e-9).all() for less, more in itertools.pairwise(sizes))


@settings(max_examples=15, deadline=None)
@given(seed=seeds, d=st.integers(1, 5), share=st.floats(0.0, 0.9), split=st.integers(0, 40))
def test_sums_add_and_do_not_depend_on_the_order_of_rows(seed, d, share, split):
    rng = np.random.default_rng(seed)
    density = some_density(rng, d)
    X = rows_of(density, rng, 40, share)
    whole, parts = density.sums(X), density.sums(X[:split]) + density.sums(X[split:])
    np.testing.assert_allclose(parts.products, whole.products, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(density.sums(X[rng.permutation(40)]).total, whole.total, rtol=1e-9, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(seed=seeds, d=st.integers(1, 4))
def test_complete_rows_have_their_own_mean_and_deviation(seed, d):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, d)) @ rng.normal(size=(d, d)) + 1e6
    origin, unit = X.mean(axis=0) + 1.0, np.full(d, 3.0)
    found = density_of(complete_sums((X - origin) / unit), origin, unit, X.min(axis=0), X.max(axis=0))
    np.testing.assert_allclose(found.mean, X.mean(axis=0))
    np.testing.assert_allclose(found.deviation, X.std(axis=0), rtol=1e-6)
    held = 60.0 / (60.0 + d + 1.0)
    off = ~np.eye(d, dtype=bool)
    np.testing.assert_allclose(
        found.correlation[off], held * np.corrcoef(X, rowvar=False).reshape(d, d)[off], atol=1e-6
    )


def test_directions_are_a_root_of_the_covariance():
    rng = np.random.default_rng(0)
    density = some_density(rng, 4)
    found = one(density, rows_of(density, rng, 6, 0.6), 0.0)
    steps = np.stack(list(found.directions()), axis=2)
    products = np.einsum("nik,njk->nij", steps, steps)
    wanted = found.covariances[found.pattern] * np.outer(density.deviation, density.deviation)
    np.testing.assert_allclose(products, wanted, atol=1e-8)


def test_a_step_of_expectation_maximisation_keeps_the_density_that_rows_are_drawn_from():
    rng = np.random.default_rng(0)
    density = some_density(rng, 3)
    X = density.mean + density.deviation * rng.multivariate_normal(np.zeros(3), density.correlation, 4000)
    X[rng.random(X.shape) < 0.5] = np.nan
    assert density.distance(density.updated(density.sums(X))) <= 0.05
