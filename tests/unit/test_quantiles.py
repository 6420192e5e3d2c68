"""Quantiles by counting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.quantiles import N_THRESHOLDS, ROUNDS, Brackets, counts_below


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9))
def test_counts_are_of_values_at_or_below_each_threshold(values, thresholds):
    thresholds = np.sort(thresholds)
    expected = [sum(value <= threshold for value in values) for threshold in thresholds]
    np.testing.assert_array_equal(counts_below(np.array(values), thresholds), expected)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60), st.floats(0.0, 1.0))
def test_counting_ends_at_the_quantile_or_a_millionth_of_the_range_above(values, level):
    values = np.sort(values)
    wanted = np.ceil(np.array([level]) * len(values))
    brackets = Brackets(values[:1], values[-1:])
    for _ in range(ROUNDS):
        counts = counts_below(values, brackets.thresholds()[0])[None, :]
        brackets = brackets.narrowed(counts, wanted)
    found = brackets.high[0]
    exact = values[max(int(wanted[0]) - 1, 0)]
    reach = (values[-1] - values[0]) / (N_THRESHOLDS - 1) ** ROUNDS
    rounding = 1e-9 * max(abs(values[0]), abs(values[-1]))
    assert exact - rounding <= found <= exact + reach + rounding


def test_an_end_that_many_values_share_is_found_exactly():
    values = np.array([0.0] * 990 + [1.0] * 10)
    brackets = Brackets(np.zeros(2), np.ones(2))
    for _ in range(ROUNDS):
        counts = np.stack([counts_below(values, row) for row in brackets.thresholds()])
        brackets = brackets.narrowed(counts, np.array([20.0, 980.0]))
    np.testing.assert_array_equal(brackets.high, [0.0, 0.0])


def test_values_beyond_a_declared_range_count_as_its_end():
    brackets = Brackets(np.zeros(1), np.ones(1)).narrowed(np.zeros((1, N_THRESHOLDS)), np.array([5.0]))
    assert brackets.high[0] == 1.0
