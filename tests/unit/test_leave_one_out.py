"""Leave-one-out in closed form against refits without each label."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.arrays import BLOCK_ROWS
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.penalties.graph_laplacian import laplacian_gram
from dsfr.core.penalties.interpolation_consistency import consistency_gram
from dsfr.core.solve.leave_one_out import leave_one_out_residuals, left_out_residuals, leverages
from dsfr.core.solve.statistics import Statistics, solve_weights


def problem(seed, penalty, basis_kind="rules"):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, (12, 2)), rng.standard_normal(12)
    basis = Rules(rng.uniform(-1, 1, (3, 2)), rng.uniform(0.3, 1, (3, 2)))
    if basis_kind == "wavelets":
        basis = Wavelets.draw(7, 2, rng)
    others = rng.uniform(-1, 1, (30, 2))
    grams = {
        "none": None,
        "icr": consistency_gram(others, basis, n_pairs=None, concentration=0.75, rng=rng),
        "graph": laplacian_gram(others, basis, n_neighbors=3),
    }
    return X, y, basis, grams[penalty]


@given(
    seed=st.integers(0, 10_000),
    penalty=st.sampled_from(["none", "icr", "graph"]),
    basis_kind=st.sampled_from(["rules", "wavelets"]),
    ridge=st.sampled_from([1e-5, 1e-3, 0.1, 1.0]),
    weight=st.sampled_from([0.0, 1e-4, 0.1, 1.0]),
)
def test_it_equals_refits_without_each_label(seed, penalty, basis_kind, ridge, weight):
    X, y, basis, gram = problem(seed, penalty, basis_kind)
    quadratic = Statistics.of(X, y, basis, gram).quadratic(weight)
    fast = leave_one_out_residuals(X, y, basis, quadratic, ridge)
    for i in range(len(y)):
        kept = np.arange(len(y)) != i
        refit = solve_weights(Statistics.of(X[kept], y[kept], basis, gram).quadratic(weight), ridge)
        left_out = y[i] - float(basis.features(X[i : i + 1])[0] @ refit)
        assert fast[i] == pytest.approx(left_out, rel=1e-4, abs=1e-6)


def test_long_tables_go_in_blocks(rng):
    n = BLOCK_ROWS + 7
    X, y = rng.uniform(-1, 1, (n, 2)), rng.standard_normal(n)
    basis = Rules(np.array([[0.5, 0.5], [-0.5, -0.5]]), np.full((2, 2), 0.5))
    quadratic = Statistics.of(X, y, basis).quadratic(0.0)
    whole = leave_one_out_residuals(X, y, basis, quadratic, 0.1)
    H = basis.features(X)
    leverage = np.einsum("np,pq,nq->n", H, np.linalg.inv(H.T @ H + 0.1 * np.eye(H.shape[1])), H)
    expected = (y - H @ solve_weights(quadratic, 0.1)) / (1.0 - leverage)
    np.testing.assert_allclose(whole, expected, rtol=1e-8)


def test_a_label_that_alone_decides_its_prediction_has_a_finite_residual():
    H = 1e8 * np.eye(3)
    residuals = left_out_residuals(np.ones(3) - H @ np.full(3, 1e-8), leverages(H, 1e8 * np.eye(3)))
    assert np.isfinite(residuals).all()
