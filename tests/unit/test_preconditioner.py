import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.consensus.admm import RidgeConsensus, local_weights
from dsfr.core.consensus.preconditioner import Preconditioner, expected_curvature
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.solve.cholesky import cholesky
from dsfr.core.solve.statistics import Quadratic

seeds = st.integers(0, 10_000)


def definite(rng, size):
    B = rng.standard_normal((size, size))
    return B @ B.T + 0.1 * np.eye(size)


def some(seed, size):
    rng = np.random.default_rng(seed)
    quadratic = Quadratic(definite(rng, size), rng.standard_normal(size), 1.0)
    return rng, quadratic, Preconditioner.of(definite(rng, size))


@given(seeds, st.integers(1, 5))
def test_coordinates_change_neither_values_nor_gradients(seed, size):
    rng, plain, preconditioner = some(seed, size)
    inside, w = preconditioner.curvature(plain.curvature), rng.standard_normal(size)
    u = preconditioner.root @ w
    np.testing.assert_allclose(preconditioner.weights(u), w, atol=1e-8)
    assert u @ inside @ u == pytest.approx(w @ plain.curvature @ w, abs=1e-6)
    np.testing.assert_allclose(preconditioner.pull(inside @ u), plain.curvature @ w, atol=1e-6)
    np.testing.assert_allclose(preconditioner.coordinates(w), u)


@given(seeds, st.integers(1, 5), st.floats(0.1, 10.0), st.floats(0.0, 2.0), st.integers(1, 6))
def test_a_round_in_coordinates_is_admm_with_the_preconditioner_in_its_penalty(seed, size, penalty, ridge, n_agents):
    rng, plain, preconditioner = some(seed, size)
    M = preconditioner.root.T @ preconditioner.root
    z, x = rng.standard_normal((2, size))
    factor = cholesky(plain.curvature + penalty * preconditioner.matrix)
    pull = penalty * preconditioner.pull(2 * preconditioner.coordinates(z) - preconditioner.coordinates(x))
    expected = np.linalg.solve(plain.curvature + penalty * M, plain.moment + penalty * M @ (2 * z - x))
    np.testing.assert_allclose(local_weights(factor, plain.moment, pull), expected, atol=1e-6)
    agreement = RidgeConsensus(preconditioner.curvature(ridge * np.eye(size)))
    consensus = preconditioner.weights(agreement.of(preconditioner.root @ x, n_agents, penalty))
    expected = np.linalg.solve(ridge * np.eye(size) + n_agents * penalty * M, penalty * M @ x)
    np.testing.assert_allclose(consensus, expected, atol=1e-6)


def test_plain_coordinates_are_the_weights():
    _, plain, _ = some(0, 3)
    np.testing.assert_array_equal(Preconditioner.identity(3).curvature(plain.curvature), plain.curvature)
    np.testing.assert_array_equal(Preconditioner.identity(3).weights(plain.moment), plain.moment)


def expected(basis, n_labeled, n_pairs, shares=None):
    return expected_curvature(basis, shares, n_labeled, n_pairs, 1.0, np.random.default_rng(0))


RULES = Rules(np.array([[-0.5, 0.0], [0.5, 0.2]]), np.full((2, 2), 0.1))


def test_what_is_expected_grows_with_labels_and_with_pairs():
    labels, pairs = expected(RULES, 1.0, 0.0), expected(RULES, 0.0, 1.0)
    np.testing.assert_allclose(expected(RULES, 3.0, 7.0), 3.0 * labels + 7.0 * pairs, atol=1e-12)
    assert np.trace(pairs) > 0.0


def test_rows_are_expected_about_the_centers():
    """Far apart and narrow, a rule fires alone: its block is the moments of a normal law about its center."""
    curvature = expected(RULES, 1000.0, 0.0, shares=np.array([3.0, 1.0]))
    first, second = curvature[:3, :3], curvature[3:, 3:]
    assert first[0, 0] == pytest.approx(750.0, rel=0.05)
    assert second[0, 0] == pytest.approx(250.0, rel=0.1)
    assert first[0, 1] / first[0, 0] == pytest.approx(-0.5, abs=0.02)
    assert first[1, 1] / first[0, 0] == pytest.approx(0.25 + 0.01, abs=0.02)
    equal = expected(RULES, 1000.0, 0.0)
    assert equal[0, 0] == pytest.approx(500.0, rel=0.1)


def test_wavelets_have_a_preconditioner_too():
    wavelets = Wavelets.draw(4, 2, np.random.default_rng(0))
    assert np.linalg.eigvalsh(expected(wavelets, 10.0, 0.0))[0] > 0.0
