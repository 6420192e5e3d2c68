"""Preconditioned conjugate residuals: the theorems that hold for them, over random problems and preconditioners."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.consensus.conjugate_residuals import ConjugateResiduals
from dsfr.core.consensus.preconditioner import Preconditioner

seeds = st.integers(0, 10_000)
sizes = st.integers(1, 12)


def orthogonal(rng, size):
    return np.linalg.qr(rng.standard_normal((size, size)))[0]


def definite(rng, eigenvalues):
    Q = orthogonal(rng, len(eigenvalues))
    return (Q * eigenvalues) @ Q.T


def problem(seed, spectrum, preconditioner_condition=100.0):
    """``A``, ``b`` and a preconditioner ``M`` such that ``M^-1 A`` has the eigenvalues ``spectrum``."""
    rng, size = np.random.default_rng(seed), len(spectrum)
    M = definite(rng, preconditioner_condition ** rng.uniform(0.0, 1.0, size))
    method = ConjugateResiduals(Preconditioner.of(M))
    R = method.preconditioner.root
    return R.T @ definite(rng, np.asarray(spectrum)) @ R, rng.standard_normal(size), method


def random_spectrum(seed, size, condition):
    return condition ** np.random.default_rng(seed + 1).uniform(0.0, 1.0, size)


def run(A, b, method, steps):
    """Norms ``sqrt(g' M^-1 g)`` of the start and of the iterate after each step."""
    method.add(np.zeros(len(b)), -b)
    norms = [residual_norm(method, -b)]
    for _ in range(steps):
        point = method.next_point()
        method.add(point, A @ point - b)
        norms.append(residual_norm(method, A @ method.iterate()[0] - b))
    return np.array(norms)


def residual_norm(method, gradient):
    return float(np.sqrt(gradient @ method.preconditioner.solve(gradient)))


def test_no_stagnation_where_minimising_the_norm_along_the_preconditioned_gradient_stagnates():
    """Here ``g' A M^-1 g = 0`` at the start: no step along ``M^-1 g`` makes ``|g|`` smaller."""
    A, b = np.array([[1.0, 2.0], [2.0, 5.0]]), np.array([1.0, 0.0])
    inverse = np.array([[2.0, -1.0], [-1.0, 1.0]])
    assert b @ A @ inverse @ b == 0.0
    norms = run(A, b, ConjugateResiduals(Preconditioner.of(np.linalg.inv(inverse))), 2)
    assert norms[1] < 0.9 * norms[0]
    assert norms[2] < 1e-12 * norms[0]


@given(seeds, sizes, st.floats(1.0, 1e4), st.floats(1.0, 1e4))
def test_as_many_steps_as_weights_give_the_solution(seed, size, condition, preconditioner_condition):
    A, b, method = problem(seed, random_spectrum(seed, size, condition), preconditioner_condition)
    norms = run(A, b, method, size)
    assert norms[-1] <= 1e-7 * norms[0]
    assert residual_norm(method, method.iterate()[1]) <= 1e-7 * norms[0]  # the expected gradient is zero as well


@given(seeds, st.integers(1, 4), st.integers(1, 5), st.floats(1.0, 1e4))
def test_as_many_steps_as_distinct_eigenvalues_give_the_solution(seed, distinct, copies, condition):
    spectrum = np.repeat(random_spectrum(seed, distinct, condition), copies)
    A, b, method = problem(seed, spectrum)
    norms = run(A, b, method, distinct)
    assert norms[-1] <= 1e-7 * norms[0]


@given(seeds, st.integers(2, 30), st.floats(1.5, 1e4), st.floats(1.0, 1e4))
def test_every_step_lowers_the_residual_at_least_at_the_rate_of_the_condition_number(
    seed, size, condition, preconditioner_condition
):
    spectrum = random_spectrum(seed, size, condition)
    A, b, method = problem(seed, spectrum, preconditioner_condition)
    norms = run(A, b, method, min(size - 1, 10))
    root = np.sqrt(spectrum.max() / spectrum.min())
    rate = (root - 1) / (root + 1)
    above_rounding = norms > 1e-9 * norms[0]
    assert np.all(norms <= 2 * rate ** np.arange(len(norms)) * norms[0] + 1e-9 * norms[0])
    assert np.all(np.diff(norms)[above_rounding[1:]] < 0.0)


@given(seeds, st.integers(2, 10), st.integers(1, 4), st.floats(1.0, 100.0))
def test_iterates_are_those_of_preconditioned_minres(seed, size, steps, condition):
    """The smallest residual over the Krylov space of ``R^-T A R^-1``, whose basis is built here by Arnoldi's method."""
    A, b, method = problem(seed, random_spectrum(seed, size, condition))
    steps = min(steps, size - 1)
    inside, start = method.preconditioner.curvature(A), method.preconditioner.residual(b)
    basis = (start / np.linalg.norm(start))[:, None]
    for _ in range(steps - 1):
        new = inside @ basis[:, -1]
        for _ in range(2):
            new -= basis @ (basis.T @ new)
        basis = np.column_stack([basis, new / np.linalg.norm(new)])
    found = np.linalg.lstsq(inside @ basis, start, rcond=None)[0]
    smallest = np.linalg.norm(start - inside @ basis @ found)
    assert run(A, b, method, steps)[-1] == pytest.approx(smallest, abs=1e-7 * np.linalg.norm(start))


@given(seeds, st.integers(2, 6), st.integers(1, 5), st.floats(1.0, 1e3))
def test_no_point_of_the_hull_has_a_smaller_gradient(seed, size, count, condition):
    """Each minimiser in its own norm, and the gradient that is expected there is the one that is there."""
    A, b, method = problem(seed, random_spectrum(seed, size, condition))
    rng = np.random.default_rng(seed + 2)
    points = rng.standard_normal((min(count, size), size))
    for point in points:
        method.add(point, A @ point - b)
    others = [A @ (share @ points) - b for share in rng.dirichlet(np.ones(len(points)), 20)]
    for (point, gradient), norm in (
        (method.iterate(), lambda g: residual_norm(method, g)),
        (method.smallest_gradient(), np.linalg.norm),
    ):
        np.testing.assert_allclose(gradient, A @ point - b, atol=1e-8 * np.linalg.norm(A) * (1 + np.linalg.norm(point)))
        assert norm(gradient) <= min(map(norm, others)) * (1 + 1e-9)


def test_repeated_points_do_no_harm():
    A, b, method = problem(0, [1.0, 2.0, 3.0, 4.0, 5.0])
    for point in np.repeat(np.random.default_rng(0).standard_normal((3, 5)), 2, axis=0):
        method.add(point, A @ point - b)
    distinct = ConjugateResiduals(method.preconditioner)
    for point, gradient in zip(method.points[::2], method.gradients[::2], strict=True):
        distinct.add(point, gradient)
    np.testing.assert_allclose(method.iterate()[0], distinct.iterate()[0], atol=1e-9)


@pytest.mark.parametrize(
    ("norms", "kept"), [([1, 2, 3, 4], [1, 3, 4]), ([4, 3, 2, 1], [3, 2, 1]), ([3, 1, 2, 4], [1, 2, 4])]
)
def test_the_best_point_is_kept_beyond_the_capacity(norms, kept):
    """Two weights: three points are stored."""
    method = ConjugateResiduals(Preconditioner.identity(2))
    for norm in norms:
        method.add(np.array([float(norm), 0.0]), np.array([float(norm), 0.0]))
    assert [point[0] for point in method.points] == kept
    assert method.best_measured()[0][0] == 1.0


def test_cleared_it_begins_anew():
    A, b, method = problem(0, [1.0, 2.0, 3.0])
    run(A, b, method, 2)
    method.clear()
    method.add(np.ones(3), A @ np.ones(3) - b)
    np.testing.assert_array_equal(method.iterate()[0], np.ones(3))
