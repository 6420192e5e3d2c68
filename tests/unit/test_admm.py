import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.clustering.fuzzy_c_means import ClusterSums
from dsfr.core.consensus.admm import (
    RidgeConsensus,
    balanced_penalty,
    curvature_penalty,
    dual_residual,
    local_centers,
    local_weights,
    relative_error_bound,
    rescaled,
    spectral_penalty,
    stalled,
)
from dsfr.core.solve.cholesky import cholesky

seeds = st.integers(0, 10_000)
penalties = st.floats(0.05, 50.0)


@given(seeds, penalties)
def test_local_weights_zero_the_derivative_of_the_augmented_lagrangian(seed, penalty):
    rng = np.random.default_rng(seed)
    B, b, z, dual = rng.standard_normal((4, 4)), *rng.standard_normal((3, 4))
    A = B @ B.T
    w = local_weights(cholesky(A + penalty * np.eye(4)), b, penalty * (2 * z - (z + dual / penalty)))
    np.testing.assert_allclose(A @ w - b + dual + penalty * (w - z), 0.0, atol=1e-8)


@given(seeds, penalties)
def test_local_centers_zero_the_derivative_of_the_augmented_lagrangian(seed, penalty):
    rng = np.random.default_rng(seed)
    sums = ClusterSums(rng.uniform(0, 9, 3), rng.standard_normal((3, 2)), 0.0)
    r, dual = rng.standard_normal((2, 3, 2))
    m = local_centers(sums, r, r + dual / penalty, penalty)
    np.testing.assert_allclose(sums.mass[:, None] * m - sums.total + dual + penalty * (m - r), 0.0, atol=1e-9)


@given(seeds, penalties, st.floats(0.0, 10.0), st.integers(1, 6))
def test_the_consensus_zeroes_the_derivative_of_the_augmented_lagrangian(seed, penalty, ridge, n_agents):
    rng = np.random.default_rng(seed)
    w, dual = rng.standard_normal((2, n_agents, 4))
    B = rng.standard_normal((4, 4))
    agreement = RidgeConsensus(ridge * B @ B.T)
    for factor in (1.0, 2.0, 2.0):  # made anew, and kept
        held = factor * penalty
        z = agreement.of((w + dual / held).sum(axis=0), n_agents, held)
        np.testing.assert_allclose(ridge * B @ B.T @ z - (dual + held * (w - z)).sum(axis=0), 0.0, atol=1e-7)


@given(seeds, penalties, penalties, st.floats(0.0, 10.0), st.integers(1, 6))
def test_another_penalty_keeps_consensus_and_duals(seed, old, new, ridge, n_agents):
    states = np.random.default_rng(seed).standard_normal((n_agents, 4))
    agreement = RidgeConsensus(ridge * np.eye(4))
    z = agreement.of(states.sum(axis=0), n_agents, old)
    changed = rescaled(states, z, old / new)
    np.testing.assert_allclose(agreement.of(changed.sum(axis=0), n_agents, new), z, atol=1e-9)
    np.testing.assert_allclose(new * (changed - z), old * (states - z), atol=1e-9)


@given(seeds, st.floats(1e-3, 10.0))
def test_the_error_bound_bounds_the_error(seed, ridge):
    rng = np.random.default_rng(seed)
    B, b, w = rng.standard_normal((5, 5)), *rng.standard_normal((2, 5))
    A = B @ B.T
    solution = np.linalg.solve(A + ridge * np.eye(5), b)
    bound = relative_error_bound(A @ w - b + ridge * w, w, ridge)
    assert np.linalg.norm(w - solution) / np.linalg.norm(w) <= bound * (1 + 1e-9)


def test_the_error_bound_at_zero():
    assert relative_error_bound(np.zeros(2), np.zeros(2), 0.1) == 0.0
    assert relative_error_bound(np.ones(2), np.zeros(2), 0.1) > 1e6
    assert relative_error_bound(np.full(2, 1e-16), np.zeros(2), 0.1) < 1e-8  # rounding about zero weights


@pytest.mark.parametrize(
    ("residuals", "expected"),
    [
        ([1.0] * 39, False),
        ([1.0] * 40, True),
        ([1.0] * 41, False),  # asked once a window
        ((0.99 ** np.arange(40)).tolist(), False),
        ((1.0 + 0.5 * np.sin(np.arange(40))).tolist(), True),
        ([1.0] * 20 + [1.0] * 10 + [0.5] + [1.0] * 9, False),  # the best counts, and it is better,
        ([1.0] * 10 + [0.5] + [2.0] * 9 + [1.0] * 20, True),  # and here it is not, though the last is
        ([0.1] * 20 + [1.0] * 20 + [0.9] * 20, False),  # what came before the two windows does not count
    ],
)
def test_circling_is_told_from_slow_convergence(residuals, expected):
    assert stalled(residuals) is expected


def test_the_dual_residual_has_the_root_of_the_number_of_agents():
    one, zero = np.ones(4), np.zeros(4)
    assert dual_residual(one, zero, n_agents=9, penalty=0.5) == pytest.approx(0.5 * 3.0 * 2.0)


def test_balancing_follows_the_larger_residual():
    assert balanced_penalty(1.0, primal=1.0, dual=0.05) == 2.0
    assert balanced_penalty(1.0, primal=0.05, dual=1.0) == 0.5
    assert balanced_penalty(1.0, primal=1.0, dual=0.5) == 1.0


def test_the_spectral_penalty_lies_between_the_curvatures():
    assert spectral_penalty(100.0, 0.9, ridge=0.5, n_agents=5) == pytest.approx(10.0)


def test_the_penalty_grows_with_the_curvature_as_it_should():
    assert curvature_penalty(4.0, 9.0) == pytest.approx(2.0)
    assert curvature_penalty(40.0, 90.0) == pytest.approx(20.0)
