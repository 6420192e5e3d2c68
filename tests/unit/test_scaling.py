import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dsfr.core.scaling.affine import Moments, Ranges, scale_features

finite = st.floats(-1e6, 1e6)
tables = arrays(np.float64, st.tuples(st.integers(1, 20), st.integers(1, 4)), elements=finite)


@given(tables, st.data())
def test_ranges_of_a_split_merge_to_those_of_the_whole(X, data):
    cut = data.draw(st.integers(0, len(X)))
    merged = Ranges.of(X[:cut]) | Ranges.of(X[cut:])
    whole = Ranges.of(X)
    np.testing.assert_array_equal(merged.low, whole.low)
    np.testing.assert_array_equal(merged.high, whole.high)


@given(tables)
def test_scaled_columns_fill_minus_one_to_one_and_constant_columns_are_zero(X):
    scaled = scale_features(X, Ranges.of(X))
    assert np.abs(scaled).max() <= 1.0 + 1e-12
    constant = np.ptp(X, axis=0) == 0.0
    assert (scaled[:, constant] == 0.0).all()
    wide = np.ptp(X, axis=0) > 1e-3
    np.testing.assert_allclose(np.ptp(scaled[:, wide], axis=0), 2.0, atol=1e-9)


def test_the_widest_possible_range_does_not_overflow():
    largest = np.finfo(np.float64).max
    scaled = scale_features(np.array([[-largest], [0.0], [largest]]), Ranges.of(np.array([[-largest], [largest]])))
    np.testing.assert_allclose(scaled[:, 0], [-1.0, 0.0, 1.0])


def test_absurdly_far_rows_and_short_ranges_stay_finite():
    ranges = Ranges(np.zeros(2), np.array([1e-11, 1e-320]))
    scaled = scale_features(np.array([[1e300, 5e-321]]), ranges)
    assert np.isfinite(scaled).all()
    assert (np.abs(scaled) <= 1e100).all()


def about_their_range(values):
    ranges = Ranges.of(values[:, None])
    half = float(ranges.high[0] / 2 - ranges.low[0] / 2)
    return Moments.of(values, float(ranges.midpoints[0]), half or 1.0)


@given(arrays(np.float64, st.integers(1, 30), elements=finite), st.data(), finite)
def test_moments_of_a_split_add_to_those_of_the_whole(values, data, origin):
    cut = data.draw(st.integers(0, len(values)))
    total = Moments.of(values[:cut], origin, 1e6) + Moments.of(values[cut:], origin, 1e6)
    assert total.n == len(values)
    assert total.mean == pytest.approx(values.mean(), abs=1e-8)


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e3), st.integers(2, 50), st.integers(0, 99))
def test_deviation_survives_a_large_offset(offset, spread, n, seed):
    values = offset + spread * np.random.default_rng(seed).standard_normal(n)
    assert about_their_range(values).deviation == pytest.approx(values.std(), rel=1e-6)


@given(st.sampled_from([1e-300, 1e-200, 1e160, 1e300]), st.integers(2, 50), st.integers(0, 99))
def test_deviation_survives_extreme_units(unit, n, seed):
    values = np.random.default_rng(seed).standard_normal(n)
    assert about_their_range(unit * values).deviation == pytest.approx(unit * values.std(), rel=1e-9)


@given(finite, st.integers(1, 9))
def test_constant_values_have_deviation_one_so_that_dividing_is_safe(value, n):
    assert about_their_range(np.full(n, value)).deviation == 1.0


def test_moments_about_different_origins_do_not_add():
    with pytest.raises(ValueError, match="origins"):
        Moments.of(np.ones(2), 0.0, 1.0) + Moments.of(np.ones(2), 1.0, 1.0)
