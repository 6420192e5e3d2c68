"""Duplicate rows, told from equal rows that are independent observations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.duplicates import (
    Coincidences,
    Neighborhood,
    column_hashes,
    equal_pairs,
    first_of_equal,
    row_hashes,
    without_repetition,
)

seeds = st.integers(0, 10_000)


def coincidences(X, y=None):
    columns = [column_hashes(X[:, j], j) for j in range(X.shape[1])]
    if y is not None:
        columns.append(column_hashes(y, X.shape[1]))
    return Coincidences.of(row_hashes(X, y), columns)


def repeated(X, y, times=2):
    return np.concatenate([X] * times), np.concatenate([y] * times)


def honest_tables(seed, n):
    """Tables in which equal rows are independent observations."""
    rng = np.random.default_rng(seed)
    binary = rng.integers(0, 2, (n, 3)).astype(float)
    ability = rng.normal(size=(n, 1))
    ratings = np.clip(np.round(3.0 + ability + 0.7 * rng.normal(size=(n, 5))), 1, 5)
    codes = np.eye(8)[rng.integers(0, 8, n)]
    products = rng.normal(size=(20, 3))[rng.integers(0, 20, n)]
    return {
        "cells and a frequency": (binary, (rng.random(n) < 0.2 + 0.6 * binary[:, 0]).astype(float)),
        "cells and a rare event": (binary, (rng.random(n) < 0.03).astype(float)),
        "cells without noise": (binary, binary @ [1.0, 2.0, 4.0]),
        "ratings": (ratings, np.clip(np.round(3.0 + ability[:, 0] + 0.5 * rng.normal(size=n)), 1, 5)),
        "codes": (codes, (rng.random(n) < 0.3).astype(float)),
        "products and a frequency": (products, (rng.random(n) < 0.3).astype(float)),
        "counts": (rng.integers(0, 6, (n, 1)).astype(float), rng.poisson(4.0, n).astype(float)),
        "cells and a number": (binary, rng.normal(size=n)),
        "repeated columns": (np.tile(binary, 2), (rng.random(n) < 0.5).astype(float)),
    }


def tables_of_duplicates(seed, n):
    """Tables in which equal rows are duplicates."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    drawn = rng.integers(0, n, n)
    cells = rng.integers(0, 2, (n, 3)).astype(float)
    return {
        "joined with itself": repeated(X, y),
        "three times": repeated(X, y, 3),
        "with a frequency": repeated(X, (y > 0.0).astype(float)),
        "drawn with repetition": (X[drawn], y[drawn]),
        "one row a thousand times": (np.r_[X, np.repeat(X[:1], 1000, axis=0)], np.r_[y, np.repeat(y[:1], 1000)]),
        "all rows equal": (np.repeat(X[:1], n, axis=0), np.repeat(y[:1], n)),
        "cells and a number, joined": repeated(cells, y),
        "one of many": (np.r_[X, X[:1]], np.r_[y, y[:1]]),
    }


@given(seeds, st.integers(100, 400), st.sampled_from(sorted(honest_tables(0, 100))))
def test_equal_rows_by_chance_are_no_duplicates(seed, n, name):
    X, y = honest_tables(seed, n)[name]
    frequencies = np.unique(row_hashes(X, y), return_counts=True)[1]
    assert not coincidences(X, y).are_duplicates or len(set(frequencies)) == 1


@given(seeds, st.integers(20, 200), st.sampled_from(sorted(tables_of_duplicates(0, 20))))
def test_duplicates_are_found_whatever_their_number(seed, n, name):
    X, y = tables_of_duplicates(seed, n)[name]
    found = coincidences(X, y)
    assert found.are_duplicates
    kept = first_of_equal(row_hashes(X, y))
    assert equal_pairs(row_hashes(X[kept], y[kept])) == 0.0
    assert len(np.unique(np.column_stack([X, y]), axis=0)) == kept.sum()


@given(seeds, st.integers(1, 4), st.integers(2, 60))
def test_coincidences_count_pairs_and_add_over_agents(seed, n_columns, n):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, n_columns)).astype(float)
    agree = X[:, None, :] == X[None, :, :]
    pair = np.triu(np.ones((n, n), dtype=bool), 1)
    found = coincidences(X)
    assert found.equal == np.count_nonzero(pair & agree.all(axis=2))
    for j in range(n_columns):
        others = np.delete(agree, j, axis=2).all(axis=2)
        assert found.all_but[j] == np.count_nonzero(pair & others & ~agree[:, :, j])
        assert found.alike[j] == np.count_nonzero(pair & agree[:, :, j])
    twice = found + found
    assert (twice.equal, twice.pairs, twice.agents) == (2 * found.equal, n * (n - 1), 2)


@given(seeds, st.integers(2, 4), st.integers(100, 300))
def test_of_a_table_that_was_repeated_one_repetition_is_left(seed, times, n):
    X, y = honest_tables(seed, n)["ratings"]
    rows, targets = repeated(X, y, times)
    np.testing.assert_array_equal(np.flatnonzero(without_repetition(row_hashes(rows, targets))), np.arange(n))
    rows, targets = np.r_[rows, X[:1]], np.r_[targets, y[:1]]
    assert without_repetition(row_hashes(rows, targets)).all()


def test_few_rows_with_even_frequencies_are_no_repetition():
    X = np.repeat(np.arange(15.0), 2)[:, None]
    assert without_repetition(row_hashes(X)).all()


@given(seeds, st.floats(-9.0, -4.0), st.integers(1, 6), st.integers(30, 200))
def test_rows_with_tiny_noise_are_near_duplicates_and_their_groups_are_found(seed, power, n_columns, n):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, n_columns + 2)) * 10.0 ** rng.integers(-3, 4, n_columns + 2)
    Z[:, 0] = Z[:, 0] > 0.0  # a column of two values
    rows = np.r_[Z, Z + 10.0**power * Z.std(axis=0) * rng.uniform(-1, 1, Z.shape)]
    found = Neighborhood(rows)
    assert found.pairs().are_duplicates
    groups = found.groups()
    np.testing.assert_array_equal(groups[:n], groups[n:])
    assert len(np.unique(groups)) == n


@given(seeds, st.integers(1, 4), st.integers(50, 2000))
def test_rows_that_are_near_by_chance_are_no_duplicates(seed, n_columns, n):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, n_columns))
    Z[: n // 2] = 1e6 + Z[: n // 2]  # two dense parts far from each other
    assert not Neighborhood(Z).pairs().are_duplicates


@pytest.mark.parametrize("value", [1e-320, 1e308, -1.7e308])
def test_values_far_off_are_compared_too(value):
    Z = np.random.default_rng(0).normal(size=(50, 2))
    Z[0] = value
    assert not Neighborhood(Z).pairs().are_duplicates


def test_minus_zero_is_zero():
    assert row_hashes(np.array([[0.0, -0.0]]))[0] == row_hashes(np.array([[-0.0, 0.0]]))[0]
    assert row_hashes(np.array([[1.0, 2.0]]))[0] != row_hashes(np.array([[2.0, 1.0]]))[0]
