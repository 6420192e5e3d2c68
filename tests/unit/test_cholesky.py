import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.solve.cholesky import SingularSystemError, cholesky, solve_factored


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
