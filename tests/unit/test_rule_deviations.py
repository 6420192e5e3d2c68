"""Deviations of short rules: mixtures of those of the rules, larger far from the rows, finite everywhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.prediction.rule_deviations import deviations_by_rule, rounded_deviations, row_deviations
from tests.unit.test_density import some_density

seeds = st.integers(0, 10_000)


@given(seed=seeds, d=st.integers(1, 5), independent=st.booleans())
def test_squared_distances_are_those_of_the_covariance(seed, d, independent):
    rng = np.random.default_rng(seed)
    density = some_density(rng, d, independent=independent)
    X = density.mean + 3.0 * density.deviation * rng.normal(size=(20, d))
    correlation = np.eye(d) if independent else density.correlation
    covariance = np.outer(density.deviation, density.deviation) * correlation
    away = X - density.mean
    expected = np.einsum("ni,ij,nj->n", away, np.linalg.inv(covariance), away)
    np.testing.assert_allclose(density.squared_distances(X), expected, rtol=1e-6, atol=1e-9)


@given(seed=seeds, k=st.integers(1, 5), n=st.floats(1.0, 1e4), scale=st.sampled_from([1e-150, 1.0, 1e140]))
def test_a_row_has_a_deviation_between_those_of_its_rules_and_more_farther_off(seed, k, n, scale):
    rng = np.random.default_rng(seed)
    density, by_rule = some_density(rng, 3), scale * rng.uniform(0.5, 2.0, k)
    strengths = rng.dirichlet(np.ones(k), 1).repeat(30, axis=0)
    farther = np.linspace(0.0, 50.0, 30)[:, None]
    X = density.mean + farther * density.deviation * rng.normal(size=3)
    usual, total = row_deviations(by_rule, strengths, X, density, n)
    assert np.ptp(usual) == 0.0
    assert by_rule.min() * (1.0 - 1e-9) <= usual[0] <= by_rule.max() * (1.0 + 1e-9)
    assert total[0] == usual[0]
    assert (np.diff(total) > 0.0).all()


def test_rows_and_rules_at_the_ends_of_the_range_have_finite_deviations():
    density = some_density(np.random.default_rng(0), 2)
    X = np.array([[1e100, -1e100], [0.0, 1e-300]])
    for largest in (1e149, 1.0, 0.0):
        found = row_deviations(np.array([largest, 0.0]), np.full((2, 2), 0.5), X, density, 1.0)
        assert np.isfinite(found).all()
    alone = row_deviations(np.array([2.0]), np.ones((2, 1)), X, None, 5.0)
    np.testing.assert_array_equal(alone, 2.0)


def test_a_rule_without_sampled_rows_has_the_deviation_of_all():
    np.testing.assert_allclose(deviations_by_rule(np.array([4.0, 0.0]), np.array([1.0, 0.0])), [2.0, 2.0])
    np.testing.assert_array_equal(deviations_by_rule(np.zeros(3), np.array([1.0, 2.0, 0.0])), 1.0)
    assert deviations_by_rule(np.array([1.0, 0.0]), np.ones(2)).min() > 0.0


@given(st.floats(1e-200, 1e150))
def test_deviations_have_three_digits(value):
    (found,) = rounded_deviations(np.array([value]))
    assert found == pytest.approx(value, rel=5.1e-3)
    assert len(f"{found:.17e}".split("e")[0].rstrip("0").replace(".", "")) <= 3 or float(f"{found:.2e}") == found
