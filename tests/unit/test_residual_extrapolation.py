import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.solve.residual_extrapolation import Span

seeds = st.integers(0, 10_000)


def quadratic(seed, size):
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((size, size))
    return B @ B.T + 0.1 * np.eye(size), rng.standard_normal(size), rng


@given(seeds, st.integers(1, 6))
def test_one_point_more_than_there_are_weights_tells_the_solution(seed, size):
    A, b, rng = quadratic(seed, size)
    span = Span(50)
    for point in rng.standard_normal((size + 1, size)):
        span.add(point, A @ point - b)
    point, gradient = span.extrapolated()
    np.testing.assert_allclose(A @ point - b, 0.0, atol=1e-5 * np.linalg.norm(A))
    np.testing.assert_allclose(gradient, A @ point - b, atol=1e-5 * np.linalg.norm(A))


@given(seeds, st.integers(2, 6), st.integers(1, 5))
def test_no_combination_has_a_smaller_gradient(seed, size, count):
    A, b, rng = quadratic(seed, size)
    span = Span(50)
    points = rng.standard_normal((min(count, size), size))
    for point in points:
        span.add(point, A @ point - b)
    point, gradient = span.extrapolated()
    np.testing.assert_allclose(gradient, A @ point - b, atol=1e-6 * np.linalg.norm(A))
    shares = rng.dirichlet(np.ones(len(points)), 20)
    smallest = min(np.linalg.norm(A @ (share @ points) - b) for share in shares)
    assert np.linalg.norm(gradient) <= smallest * (1 + 1e-9)


def test_points_that_say_nothing_new_do_no_harm():
    A, b, rng = quadratic(0, 3)
    span = Span(50)
    for point in np.repeat(rng.standard_normal((4, 3)), 3, axis=0):
        span.add(point, A @ point - b)
    np.testing.assert_allclose(A @ span.extrapolated()[0], b, atol=1e-9)


@pytest.mark.parametrize(
    ("norms", "kept"), [([1, 2, 3, 4], [1, 3, 4]), ([4, 3, 2, 1], [3, 2, 1]), ([3, 1, 2, 4], [1, 2, 4])]
)
def test_the_best_point_is_kept_beyond_the_capacity(norms, kept):
    span = Span(3)
    for norm in norms:
        span.add(np.array([float(norm)]), np.array([float(norm)]))
    assert [point[0] for point in span.points] == kept
    assert span.best()[0][0] == 1.0
