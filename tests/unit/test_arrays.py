import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.arrays import column_sums


@given(st.integers(0, 10_000), st.integers(0, 300), st.integers(0, 140))
def test_sums_of_columns_are_those_of_numpy_to_the_last_bit(seed, n, k):
    table = np.random.default_rng(seed).standard_normal((n, k))
    np.testing.assert_array_equal(column_sums(np.ascontiguousarray(table.T)), table.sum(axis=1))


@pytest.mark.parametrize("k", [1, 7, 8, 20, 200])
def test_sum_of_a_row_does_not_depend_on_the_rows_beside_it(k):
    columns = np.random.default_rng(k).standard_normal((k, 50))
    alone = [column_sums(np.ascontiguousarray(columns[:, i : i + 1]))[0] for i in range(50)]
    np.testing.assert_array_equal(column_sums(columns), alone)
