import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from dsfr.core.solve.cholesky import (
    SingularSystemError,
    cholesky,
    inverse_diagonal,
    quick_factor,
    quick_half_solve,
    quick_solve,
    solve_factored,
)


@given(st.integers(0, 10_000), st.integers(1, 8), st.floats(1e-3, 10))
def test_the_factor_solves_the_system(seed, p, ridge):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p, p))
    matrix, right = A @ A.T + ridge * np.eye(p), rng.standard_normal(p)
    np.testing.assert_allclose(matrix @ solve_factored(cholesky(matrix), right), right, atol=1e-8)


@pytest.mark.parametrize(
    "matrix",
    [np.zeros((3, 3)), np.ones((2, 2)), np.diag([1.0, -1.0]), np.diag([1.0, 1e-17]), np.diag([1e20, 1.0])],
)
def test_a_singular_system_is_an_error_that_lists_causes(matrix):
    with pytest.raises(SingularSystemError, match=r"singular.*\(a\) ridge.*\(b\).*n_rules.*\(c\)"):
        cholesky(matrix)


@given(st.integers(0, 10_000), st.integers(1, 8))
def test_quick_solutions_are_those_of_scipy_to_the_last_bit(seed, p):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p, p))
    matrix, right = A @ A.T + np.eye(p), rng.standard_normal((p, 3))
    np.testing.assert_array_equal(quick_factor(matrix), cho_factor(matrix)[0])
    np.testing.assert_array_equal(quick_solve(quick_factor(matrix), right), cho_solve(cho_factor(matrix), right))


@given(st.integers(0, 10_000), st.integers(1, 8))
def test_half_a_solution_squared_and_the_diagonal_are_those_of_the_inverse(seed, p):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p, p))
    matrix, right = A @ A.T + np.eye(p), rng.standard_normal((p, 3))
    factor, kept = quick_factor(matrix), right.copy()
    half = quick_half_solve(factor, right)
    np.testing.assert_allclose(half.T @ half, right.T @ np.linalg.solve(matrix, right), atol=1e-12)
    np.testing.assert_allclose(inverse_diagonal(factor), np.diag(np.linalg.inv(matrix)), rtol=1e-9)
    np.testing.assert_array_equal(right, kept)


def test_no_equations_have_no_solution():
    nothing = quick_factor(np.empty((0, 0)))
    assert quick_solve(nothing, np.empty((0, 3))).shape == (0, 3)
    assert quick_half_solve(nothing, np.empty((0, 3))).shape == (0, 3)
    assert inverse_diagonal(nothing).shape == (0,)


@pytest.mark.parametrize(("i", "j"), [(0, 0), (0, 2), (2, 2)])
def test_quick_factors_are_finite_and_definite(i, j):
    for wrong in (np.nan, np.inf):
        matrix = 3.0 * np.eye(3)
        matrix[i, j] = matrix[j, i] = wrong
        with pytest.raises(ValueError, match="array must not contain infs or NaNs"):
            quick_factor(matrix)
    with pytest.raises(LinAlgError, match="not positive definite"):
        quick_factor(np.diag([1.0, -1.0]))
