"""Expected features of noisy rows against the mean over many draws of the noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.core.features.effects import Effects
from dsfr.core.features.expectation import expected_features, expected_ramp
from dsfr.core.features.linguistic import LinguisticRules, ramp
from dsfr.core.features.takagi_sugeno import Rules, log_strengths
from dsfr.core.features.wavelets import Wavelets

seeds = st.integers(0, 2**31)
N_DRAWS = 40_000


def some_rules(rng, d, membership="gaussian"):
    return Rules(rng.normal(size=(4, d)), rng.uniform(0.3, 2.0, (4, d)), membership)


def some_effects(rng, d):
    knots = np.sort(rng.normal(size=(5, d)), axis=0)
    knots[-1, 0] = knots[-2, 0]  # as in a column with few values
    curves = rng.normal(size=(5, d, 2))
    curves[-1, 0] = curves[-2, 0]
    singles = np.array([[j, term] for j in range(d) for term in range(3)], dtype=np.int64)
    pairs = np.array([[0, term, 1, 2] for term in range(3)], dtype=np.int64)
    triples = np.array([[1, 1, 0, term, 2, 2] for term in range(3) if d > 2], dtype=np.int64).reshape(-1, 6)
    levels = np.array([[0, 0, 0], [0, 2, 4], [1, 1, 2], [1, 3, 3]], dtype=np.int64)
    return Effects(knots, curves, singles, pairs, triples, levels)


def some_terms(rng, d):
    """Four rules: the leaves of a tree with two ramps of the first feature and one of the second."""
    a, b, c, e = np.sort(rng.normal(size=4))
    start, end = np.sort(rng.normal(size=2))
    first, last = np.zeros((4, d)), np.zeros((4, d))
    last[:, 1] = 1.0
    first[1:, 0], last[1:, 0] = (1, 1, 2), (1, 1, 2)
    last[1, 1], first[2, 1] = 0.0, 1.0
    rules = LinguisticRules(first, last, np.array([0.0, 0.0, 1.0]), np.array([a, c, start]), np.array([b, e, end]))
    rules.check()
    return rules


def noise_of(rng, d):
    return rng.uniform(0.1, 1.5, d) * (rng.random(d) < 0.7)


def assert_means(expected, values, weights=None):
    """Means over draws, weighted or not, within five standard errors."""
    w = np.ones(len(values)) if weights is None else weights / weights.mean()
    error = np.sqrt(np.mean((w[:, None] * (values - expected)) ** 2, axis=0) / len(values))
    assert (np.abs((w[:, None] * (values - expected)).mean(axis=0)) <= 5.0 * error + 1e-9).all()


@settings(max_examples=10, deadline=None)
@given(seed=seeds, d=st.integers(1, 4))
def test_gaussian_rules_have_the_expectation_under_the_density_that_they_imply(seed, d):
    rng = np.random.default_rng(seed)
    rules, x, noise = some_rules(rng, d), rng.normal(size=(1, d)), noise_of(rng, d)
    draws = x + noise * rng.standard_normal((N_DRAWS, d))
    implied = np.exp(log_strengths(draws, rules)).sum(axis=1)
    assert_means(expected_features(rules, x, noise[None])[0], rules.features(draws), implied)


@settings(max_examples=10, deadline=None)
@given(seed=seeds, d=st.integers(2, 4), kind=st.sampled_from([some_effects, some_terms]))
def test_effects_and_rules_over_terms_have_the_plain_expectation(seed, d, kind):
    rng = np.random.default_rng(seed)
    basis, x, noise = kind(rng, d), rng.normal(size=(1, d)), noise_of(rng, d)
    draws = x + noise * rng.standard_normal((N_DRAWS, d))
    assert_means(expected_features(basis, x, noise[None])[0], basis.features(draws))


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_other_bases_have_it_to_second_order(seed):
    """With noise of a third of the widths, the error is a twentieth of the features' own variation at most."""
    rng = np.random.default_rng(seed)
    rules = some_rules(rng, 2, "bell")
    x, noise = rng.normal(size=(1, 2)), np.full(2, rules.widths.min() / 3.0)
    values = rules.features(x + noise * rng.standard_normal((N_DRAWS, 2)))
    found = expected_features(rules, x, noise[None])[0]
    assert (np.abs(found - values.mean(axis=0)) <= 0.05 * values.std(axis=0) + 5 * values.std(axis=0) / 200).all()


@settings(max_examples=10, deadline=None)
@given(seed=seeds, d=st.integers(1, 3))
def test_wavelets_have_it_to_second_order(seed, d):
    """With noise of a third of the smallest dilation, within a hundredth of the largest value of each wavelet."""
    rng = np.random.default_rng(seed)
    wavelets = Wavelets.draw(6, d, rng)
    x, noise = rng.uniform(-1.0, 1.0, (1, d)), np.full(d, wavelets.scales.min() / 3.0)
    values = wavelets.features(x + noise * rng.standard_normal((N_DRAWS, d)))
    found = expected_features(wavelets, x, noise[None])[0]
    largest = np.prod(np.exp(-0.5) / np.sqrt(wavelets.scales), axis=1)
    assert (np.abs(found - values.mean(axis=0)) <= 0.01 * largest + 5 * values.std(axis=0) / 200).all()


@pytest.mark.parametrize("make", [some_rules, some_effects, some_terms, lambda rng, d: Wavelets.draw(6, d, rng)])
def test_without_noise_expected_features_are_the_features(make):
    rng = np.random.default_rng(0)
    basis, X = make(rng, 3), rng.normal(size=(40, 3))
    np.testing.assert_allclose(expected_features(basis, X, np.zeros_like(X)), basis.features(X), atol=1e-12)
    tiny = expected_features(basis, X, np.full_like(X, 1e-9))
    np.testing.assert_allclose(tiny, basis.features(X), atol=1e-6)


def test_infinite_noise_is_the_limit_of_large_noise():
    rng = np.random.default_rng(0)
    rules, X = some_rules(rng, 3), rng.normal(size=(20, 3))
    noise = np.where(rng.random(X.shape) < 0.5, 1e7, 0.0)
    unknown = np.where(noise > 0.0, np.inf, 0.0)
    found = expected_features(rules, np.where(noise > 0.0, 0.0, X), unknown)
    np.testing.assert_allclose(found, expected_features(rules, X, noise), atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, length=st.sampled_from([1e-280, 1e-12, 1e-3, 1.0, 1e12]), noise=st.sampled_from([1e-9, 1.0, 1e9]))
def test_an_expected_ramp_rises_from_0_to_1_whatever_its_length(seed, length, noise):
    rng = np.random.default_rng(seed)
    x = np.sort(np.append(rng.normal(size=30) * max(length, noise), [-1e100, 1e100]))
    found = expected_ramp(x, np.full(len(x), noise), 0.0, length)
    assert (np.diff(found) >= -1e-9).all()
    assert (found[0], found[-1]) == (0.0, 1.0)
    np.testing.assert_allclose(expected_ramp(x, np.zeros(len(x)), 0.0, length), ramp(x, 0.0, length))
