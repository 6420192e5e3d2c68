"""Shifts of missing values are found where there are some, and are 0 where there are none."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.core.missing_shifts import FARTHEST, missing_shifts


def products_of(z, missing, y):
    columns = np.column_stack([np.ones(len(y)), z, missing, y])
    return columns.T @ columns


def labeled_rows(seed, shift, n=400, d=3):
    """Rows whose missing values lie a shift above what they are completed with, and their targets."""
    rng = np.random.default_rng(seed)
    z, missing = rng.normal(size=(n, d)), rng.random((n, d)) < 0.3
    y = (z + shift * missing) @ np.array([1.0, -2.0, 0.5]) + 0.1 * rng.normal(size=n)
    return z, missing, 3.0 * y + 100.0


@settings(max_examples=15)
@given(seed=st.integers(0, 2**31), shift=st.sampled_from([-1.0, 0.5, 1.5]))
def test_a_shift_is_found_from_its_effect_on_the_target(seed, shift):
    np.testing.assert_allclose(missing_shifts(products_of(*labeled_rows(seed, shift))), shift, atol=0.6 * abs(shift))


@settings(max_examples=15)
@given(seed=st.integers(0, 2**31))
def test_values_that_are_missing_at_random_are_hardly_shifted(seed):
    assert np.abs(missing_shifts(products_of(*labeled_rows(seed, 0.0)))).max() <= 0.2


@pytest.mark.parametrize("n", [0, 1, 5])
def test_few_labels_say_nothing(n):
    z, missing, y = labeled_rows(0, 1.0, n)
    assert (missing_shifts(products_of(z, missing, y)) == 0.0).all()


def test_equal_targets_and_useless_features_say_nothing():
    z, missing, y = labeled_rows(0, 1.0)
    assert (missing_shifts(products_of(z, missing, np.full(len(y), 1e9))) == 0.0).all()
    assert (missing_shifts(products_of(0.0 * z, missing, y)) == 0.0).all()
    assert (np.abs(missing_shifts(products_of(1e-9 * z, missing, y))) <= FARTHEST).all()
