"""Quantiles by counting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.scaling.quantiles import MAX_ROUNDS, N_THRESHOLDS, Brackets, counts_below


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_counts_are_of_values_at_or_below_each_threshold(values, thresholds):
    thresholds = np.sort(thresholds)
    expected = [sum(value <= threshold for value in values) for threshold in thresholds]
    np.testing.assert_array_equal(counts_below(np.array(values), thresholds), expected)


def search(values, levels):
    """Lower and upper quantile of one column."""
    wanted = np.ceil(np.array(levels) * len(values))
    brackets = Brackets(np.full(2, values.min()), np.full(2, values.max()))
    for _ in range(MAX_ROUNDS):
        counts = np.stack([counts_below(values, row) for row in brackets.thresholds()])
        brackets = brackets.narrowed(counts, wanted)
        if brackets.are_narrow():
            break
    return brackets.high


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60), st.floats(0.01, 0.4), st.floats(0.6, 1.0))
def test_counting_ends_at_the_quantiles(values, low, high):
    values = np.sort(values)
    found = search(values, [low, high])
    exact = np.array([values[int(np.ceil(level * len(values))) - 1] for level in (low, high)])
    finest = 1e-12 * np.abs(values).max()
    assert (found >= exact - finest).all()
    assert (found <= exact + 2e-6 * (exact[1] - exact[0]) + finest).all()


def test_a_far_off_value_does_not_make_it_coarse():
    values = np.append(np.linspace(3.0, 4.0, 999), 1e12)
    np.testing.assert_allclose(search(values, [0.1, 0.9]), [3.0991, 3.9008], atol=2e-3)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_no_value_is_too_far_off(values):
    values = np.sort(np.clip(values, -1.7e308, 1.7e308)) + 0.0
    found = search(values, [0.25, 0.75])
    exact = np.array([values[int(np.ceil(level * len(values))) - 1] for level in (0.25, 0.75)])
    assert (found >= exact).all()
    apart, above = exact[1] / 4 - exact[0] / 4, found / 4 - exact / 4
    assert (above <= 2e-6 * apart + 4.0 * np.spacing(np.abs(found))).all()


def test_an_end_that_many_values_share_is_found_exactly():
    np.testing.assert_array_equal(search(np.array([0.0] * 990 + [1.0] * 10), [0.02, 0.98]), [0.0, 0.0])


def test_values_beyond_a_declared_range_count_as_its_end():
    brackets = Brackets(np.zeros(1), np.ones(1)).narrowed(np.zeros((1, N_THRESHOLDS)), np.array([5.0]))
    assert brackets.high[0] == 1.0
