"""Along which features the target bends: a polynomial whose prior the labels choose."""

from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.polynomial import HermiteE
from scipy.optimize import check_grad
from scipy.stats import multivariate_normal

from dsfr.core.relevance.polynomial import (
    MOST_TERMS,
    USUAL_LOG_CURVATURE,
    Polynomial,
    _CurvatureEvidence,
    curvature_relevance,
)
from dsfr.core.relevance.slopes import MIN_RELEVANCE
from dsfr.core.solve.statistics import Statistics

seeds = st.integers(0, 10_000)


def table(seed, n=80, d=4, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] ** 2 + 3.0 * X[:, 1] + noise * rng.normal(size=n)
    return X, (y - y.mean()) / y.std()


@settings(max_examples=20)
@given(seeds)
def test_a_bent_feature_is_relevant_and_a_linear_one_is_not(seed):
    X, y = table(seed)
    polynomial = Polynomial.of(4)
    found = curvature_relevance(polynomial, Statistics.of(X, y, polynomial))
    assert found[0] == 1.0
    assert (found[1:] < 0.5).all()
    assert (found >= MIN_RELEVANCE).all()


@settings(max_examples=10)
@given(seeds, st.sampled_from([10, 200]))
def test_the_evidence_is_the_density_of_the_labels(seed, n):
    X, y = table(seed, n, d=3)
    polynomial, rng = Polynomial.of(3), np.random.default_rng(seed)
    evidence = _CurvatureEvidence(polynomial, Statistics.of(X, y, polynomial))
    Phi, values = polynomial.features(X), []
    for logs in rng.uniform(-3.0, 0.0, (2, 5)):
        bend, variance, linear = np.exp(logs[:3]), *np.exp(logs[3:])
        prior = np.where(polynomial.is_curved, variance * np.prod(bend**polynomial.powers, axis=1), linear)
        covariance = (Phi * prior) @ Phi.T + np.eye(n)
        noise = y @ np.linalg.solve(covariance, y) / n
        off = (logs[:3] - USUAL_LOG_CURVATURE) / 1.8
        log_density = multivariate_normal.logpdf(y, cov=noise * covariance) - off @ off / 2.0
        values.append((log_density, -evidence.loss(logs)[0]))
    (first, own_first), (second, own_second) = values
    assert own_first - own_second == pytest.approx(first - second, rel=1e-6, abs=1e-6)


@settings(max_examples=10)
@given(seeds)
def test_the_gradient_is_that_of_the_evidence(seed):
    X, y = table(seed, 30, d=3)
    polynomial = Polynomial.of(3)
    evidence = _CurvatureEvidence(polynomial, Statistics.of(X, y, polynomial))
    logs = np.random.default_rng(seed).uniform(-3.0, 0.0, 5)
    gap = check_grad(lambda at: evidence.loss(at)[0], lambda at: evidence.loss(at)[1], logs)
    assert gap < 1e-4 * (1.0 + np.linalg.norm(evidence.loss(logs)[1]))


def test_terms_are_products_of_normalised_hermite_polynomials():
    X = np.random.default_rng(0).uniform(-2.5, 2.5, (20, 3))
    polynomial = Polynomial.of(3)
    expected = np.ones((20, polynomial.n_outputs))
    for term, powers in enumerate(polynomial.powers):
        for j, power in enumerate(powers):
            expected[:, term] *= HermiteE.basis(power)(X[:, j]) / np.sqrt(factorial(power))
    np.testing.assert_allclose(polynomial.features(X), expected, atol=1e-12)
    assert polynomial.n_outputs == 1 + 4 * 3 + 3


def test_bent_terms_do_not_follow_rows_far_off():
    polynomial = Polynomial.of(2)
    far, near = polynomial.features(np.array([[1e3, -1e3], [2.5, -2.5]]))
    np.testing.assert_array_equal(far[polynomial.is_curved], near[polynomial.is_curved])


@pytest.mark.parametrize(("n_features", "n_terms"), [(1, 5), (31, 590), (32, 129), (149, 597)])
def test_many_features_have_no_products(n_features, n_terms):
    polynomial = Polynomial.of(n_features)
    assert polynomial.n_outputs == n_terms <= MOST_TERMS
    assert polynomial.features(np.zeros((2, n_features))).shape == (2, n_terms)


def test_too_many_features_have_no_polynomial():
    assert Polynomial.of(150) is None


def test_labels_that_do_not_vary_tell_nothing():
    polynomial = Polynomial.of(2)
    assert curvature_relevance(polynomial, Statistics.of(np.ones((5, 2)), np.zeros(5), polynomial)) is None
