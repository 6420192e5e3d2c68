"""LBFGS with a memory: what it accepts, what it learns, and that it falls back to plain steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.clustering.fuzzy_c_means import ClusterSums
from dsfr.core.solve.lbfgs import LBFGS, MAX_BACKTRACKS, Evaluation
from tests.tables import make_table

seeds = st.integers(0, 10_000)


def quadratic(seed, size=6):
    """A quadratic, and a metric that is above its curvature, so that plain steps fall."""
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((size, size))
    A, b = B @ B.T + 0.1 * np.eye(size), rng.standard_normal(size)
    above = np.full(size, np.linalg.eigvalsh(A)[-1])
    return lambda x: Evaluation(x, float(x @ (A @ x / 2 - b)), A @ x - b, above), np.linalg.solve(A, b)


def search(function, descent, point, rounds):
    """Evaluations one after the other."""
    for _ in range(rounds):
        seen = function(point)
        yield seen
        point = descent.advance(seen)


@given(seeds)
def test_the_first_step_is_the_plain_one(seed):
    function, _ = quadratic(seed)
    first, second = search(function, LBFGS(10), np.ones(6), 2)
    np.testing.assert_allclose(second.point, first.point - first.gradient / first.curvature)


@given(seeds)
def test_a_quadratic_is_solved_in_far_fewer_rounds_than_by_plain_steps(seed):
    function, solution = quadratic(seed)
    far = np.linalg.norm(solution - 1.0)
    found = [np.linalg.norm(seen.point - solution) for seen in search(function, LBFGS(10), np.ones(6), 60)]
    assert min(found) < 1e-6 * far
    plain = np.ones(6)
    for _ in range(60):
        seen = function(plain)
        plain = plain - seen.gradient / seen.curvature
    assert min(found) < np.linalg.norm(plain - solution)


@given(seeds, st.floats(1.05, 3.0), st.integers(2, 5))
def test_clusters_end_where_no_step_of_fuzzy_c_means_moves_them(seed, fuzzifier, n_rules):
    X = 2.0 * make_table(seed)[0] - 1.0
    descent, centers = LBFGS(10), X[:n_rules].copy()
    for _ in range(400):
        sums = ClusterSums.of(X, centers, fuzzifier)
        if settled := np.abs(sums.centers(centers) - centers).max() < 1e-8:
            break
        centers = descent.advance(sums.evaluation(centers)).reshape(centers.shape)
    assert settled


@given(seeds)
def test_accepted_values_never_rise(seed):
    X = 2.0 * make_table(seed)[0] - 1.0
    descent, centers, accepted = LBFGS(10), X[:4].copy(), []
    for _ in range(30):
        centers = descent.advance(ClusterSums.of(X, centers, 1.1).evaluation(centers)).reshape(centers.shape)
        accepted.append(descent._accepted.value)
    assert np.all(np.diff(accepted) <= 1e-9 * accepted[0])


def test_the_gradient_of_the_clusters_is_that_of_their_objective(rng):
    X, centers = rng.uniform(-1, 1, (50, 2)), rng.uniform(-1, 1, (3, 2))
    seen, step = ClusterSums.of(X, centers, 1.5).evaluation(centers), 1e-6
    for place in range(6):
        moved = centers.copy()
        moved.flat[place] += step
        slope = (ClusterSums.of(X, moved, 1.5).objective - seen.value) / step
        assert slope == pytest.approx(seen.gradient[place], rel=1e-3, abs=1e-4)


def test_an_empty_cluster_stays_where_it_is():
    X, centers = np.zeros((5, 1)), np.array([[0.5], [1e9]])
    sums = ClusterSums(np.array([5.0, 0.0]), np.array([[1.0], [0.0]]), 1.0)
    assert ClusterSums.of(X, centers, 1.1).mass[1] < 1e-100
    moved = LBFGS(10).advance(sums.evaluation(centers))
    np.testing.assert_allclose(moved, [0.2, 1e9])
    none = ClusterSums(np.zeros(2), np.zeros((2, 1)), 0.0)
    np.testing.assert_array_equal(LBFGS(10).advance(none.evaluation(centers)), centers.ravel())


def test_steps_that_are_too_long_are_shortened_and_in_the_end_taken_plainly():
    function, _ = quadratic(0)
    descent = LBFGS(10)
    for _ in search(function, descent, np.ones(6), 4):
        pass
    accepted, lengths = descent._accepted, [descent._length]
    for _ in range(MAX_BACKTRACKS - 1):
        descent.advance(Evaluation(accepted.point, accepted.value + 1.0, accepted.gradient, accepted.curvature))
        lengths.append(descent._length)
    ratios = np.divide(lengths[1:], lengths[:-1])
    assert np.all((ratios > 0.0999) & (ratios < 0.5001))
    plain = descent.advance(Evaluation(accepted.point, accepted.value + 1.0, accepted.gradient, accepted.curvature))
    np.testing.assert_allclose(plain, accepted.point - accepted.gradient / accepted.curvature)


def test_only_what_curves_upwards_is_learnt_and_memory_is_bounded():
    descent = LBFGS(2)
    for value, gradient in ((0.0, 1.0), (-1.0, 2.0), (-2.0, 1.0), (-3.0, 0.5), (-4.0, 0.2)):
        point = np.array([-value])
        # Along +x the gradient first grows downwards (concave), then shrinks.
        descent.advance(Evaluation(point, value, np.array([-gradient]), np.ones(1)))
        assert len(descent._steps) <= 2
    assert [float(change[0]) for change in descent._changes] == [pytest.approx(0.5), pytest.approx(0.3)]


def test_no_step_but_a_plain_one_is_longer_than_allowed():
    function, _ = quadratic(3)
    free = [seen.point for seen in search(function, LBFGS(10), np.ones(6), 12)]
    held = [seen.point for seen in search(function, LBFGS(10, 0.05), np.ones(6), 12)]
    np.testing.assert_array_equal(free[:2], held[:2])
    assert np.abs(np.diff(free[1:], axis=0)).max() > 0.1
    assert np.abs(np.diff(held[1:], axis=0)).max() < 0.1 + 1e-12


def test_after_a_restart_nothing_is_known():
    function, _ = quadratic(1)
    descent = LBFGS(10)
    for _ in search(function, descent, np.ones(6), 5):
        pass
    descent.restart()
    higher = function(10.0 * np.ones(6))
    np.testing.assert_allclose(descent.advance(higher), higher.point - higher.gradient / higher.curvature)


def learnt(seed=0, rounds=5):
    """A descent that has learnt a few steps, and the last evaluation that it accepted."""
    function, _ = quadratic(seed)
    descent = LBFGS(10)
    for _ in search(function, descent, np.ones(6), rounds):
        pass
    return descent, descent._accepted


@given(seeds)
def test_the_last_step_would_have_been_foreseen(seed):
    """The secant equation, and that what is learnt is a metric: symmetric and positive."""
    descent, at = learnt(seed)
    step, change = descent._steps[-1], descent._changes[-1]

    def downhill(gradient):
        return descent._direction_at(Evaluation(at.point, at.value, gradient, at.curvature))

    np.testing.assert_allclose(downhill(change), -step, rtol=1e-6, atol=1e-9 * np.abs(step).max())
    inverse = -np.array([downhill(axis) for axis in np.eye(6)])
    np.testing.assert_allclose(inverse, inverse.T, atol=1e-9 * np.abs(inverse).max())
    assert np.linalg.eigvalsh(inverse)[0] > 0.0


def test_the_metric_is_rescaled_to_what_was_learnt():
    """One step shows a curvature of 1 where the metric says 100: it is then taken to be 1 across the step as well."""
    descent, metric = LBFGS(10), np.full(2, 100.0)
    descent.advance(Evaluation(np.array([1.0, 0.0]), 0.5, np.array([1.0, 0.0]), metric))
    descent.advance(Evaluation(np.array([0.99, 0.0]), 0.490, np.array([0.99, 0.0]), metric))
    seen = Evaluation(np.zeros(2), 0.0, np.array([0.0, 1.0]), metric)
    np.testing.assert_allclose(descent._direction_at(seen), [0.0, -1.0])


def test_a_step_must_fall_by_a_part_of_what_the_slope_promises():
    descent, at = learnt()
    asked = at.point + descent._length * descent._direction
    promised = -descent._length * float(at.gradient @ descent._direction)
    descent.advance(Evaluation(asked, at.value - 1e-5 * promised, at.gradient, at.curvature))
    assert descent._accepted is at
    descent, at = learnt()
    descent.advance(Evaluation(asked, at.value - 1e-3 * promised, at.gradient / 2, at.curvature))
    assert descent._accepted is not at


def test_a_plain_step_is_accepted_whatever_rounding_says():
    function, _ = quadratic(2)
    first = function(np.ones(6))
    descent = LBFGS(10)
    point = descent.advance(first)
    descent.advance(Evaluation(point, first.value + 1e-3, first.gradient / 2, first.curvature))
    assert descent._accepted.point is point
