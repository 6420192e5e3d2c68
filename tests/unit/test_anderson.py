import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.consensus.anderson import Mixing, anderson_weights

seeds = st.integers(0, 10_000)


def contraction(seed, n=12, rate=0.97):
    """A linear map with a known fixed point and eigenvalues up to ``rate``."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((n, n)))
    M = Q @ np.diag(rng.uniform(0.0, rate, n)) @ Q.T
    fixed = rng.standard_normal(n)
    return lambda x: M @ (x - fixed) + fixed, fixed


def iterate(T, x, memory, rounds, merit=lambda x: None):
    """The iteration as agents and coordinator carry it out; yields the gap of every round."""
    mixing, images, gaps = Mixing.start(memory), [], []
    for _ in range(rounds):
        images, gaps = [*images, T(x)], [*gaps, T(x) - x]
        yield float(np.linalg.norm(gaps[-1])), x
        mixing, mix = mixing.advance(np.array(gaps) @ gaps[-1], merit(x))
        x = mix @ np.array(images[-len(mix) :])


@given(seeds, st.integers(1, 6))
def test_weights_sum_to_one_and_minimise_the_combined_gap(seed, count):
    rng = np.random.default_rng(seed)
    gaps = rng.standard_normal((count, 8))
    weights = anderson_weights(gaps @ gaps.T)
    assert weights.sum() == pytest.approx(1.0)
    best = np.linalg.norm(weights @ gaps)
    for _ in range(5):
        other = weights + (step := 0.1 * rng.standard_normal(count)) - step.mean()
        assert best <= np.linalg.norm(other @ gaps) + 1e-6


def test_a_gap_of_zero_or_two_equal_gaps_are_no_trouble():
    np.testing.assert_array_equal(anderson_weights(np.zeros((3, 3))), [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(anderson_weights(np.full((3, 3), 1e-300)), [0.0, 0.0, 1.0])
    assert np.isfinite(anderson_weights(np.ones((3, 3)))).all()
    assert anderson_weights(np.ones((3, 3))).sum() == pytest.approx(1.0)


@given(seeds)
def test_memory_zero_is_the_plain_iteration(seed):
    T, _ = contraction(seed)
    x = np.zeros(12)
    for _, state in iterate(T, np.zeros(12), memory=0, rounds=10):
        np.testing.assert_array_equal(state, x)
        x = T(x)


@given(seeds)
def test_acceleration_needs_fewer_rounds_than_the_plain_iteration(seed):
    T, fixed = contraction(seed)
    rounds = [
        next(k for k, (gap, _) in enumerate(iterate(T, np.zeros(12), memory, 2000)) if gap < 1e-6) for memory in (0, 20)
    ]
    assert rounds[1] <= min(rounds[0], 25)
    *_, (_, x) = iterate(T, np.zeros(12), 20, 40)
    np.testing.assert_allclose(x, fixed, atol=1e-5)


def test_a_step_that_raises_the_gap_is_rejected_and_waited_after():
    mixing = Mixing(5, np.eye(2), gap=1.0, accelerated=True)
    rejected, weights = mixing.advance(np.array([0.0, 0.0, 4.0]))
    np.testing.assert_array_equal(weights, [1.0, 0.0])  # go on plainly from the image before
    assert (rejected.wait, rejected.patience, rejected.gap, rejected.accelerated) == (5, 10, 1.0, False)
    after, weights = rejected.advance(np.array([9.0, 9.0, 0.25]))
    np.testing.assert_array_equal(weights, [1.0])
    assert (after.wait, len(after.products)) == (4, 1)


def test_a_step_that_raises_the_merit_is_rejected():
    mixing = Mixing(5, np.eye(2), gap=1.0, merit=10.0, accelerated=True)
    assert not mixing.advance(np.array([0.0, 0.0, 0.25]), merit=10.1)[0].accelerated
    assert mixing.advance(np.array([0.0, 0.0, 0.25]), merit=10.0)[0].accelerated


def test_patience_shrinks_again_after_accepted_steps():
    mixing = Mixing(5, np.eye(2), gap=1.0, accelerated=True, patience=40)
    assert mixing.advance(np.array([0.0, 0.0, 0.25]))[0].patience == 20


def double_well(x):
    """A function with a saddle at 0 and minima at (0, 1) and (0, -1)."""
    return x[0] ** 2 / 2 + (x[1] ** 2 - 1) ** 2 / 4


def descent(x):
    return x - 0.1 * np.array([x[0], (x[1] ** 2 - 1) * x[1]])


@given(st.floats(0.5, 2.0), st.floats(1e-3, 1e-1))
def test_a_saddle_is_left_sooner_than_by_the_plain_iteration(x, y):
    start = np.array([x, y])

    def rounds(memory):
        states = iterate(descent, start, memory, 2000, double_well)
        return next(k for k, (gap, state) in enumerate(states) if gap < 1e-5 and double_well(state) < 1e-6)

    assert rounds(5) < 0.8 * rounds(0)


def waiting(**told):
    return Mixing(5, np.eye(2), gap=1.0, merit=10.0, wait=5, **told)


def test_momentum_grows_while_the_merit_falls_and_ends_when_it_rises():
    falling, weights = waiting(momentum=1).advance(np.array([0.0, 0.0, 4.0]), merit=9.0)
    assert falling.momentum == 2
    np.testing.assert_allclose(weights, [0.0, -0.4, 1.4])
    rising, weights = waiting(momentum=1).advance(np.array([0.0, 0.0, 4.0]), merit=11.0)
    assert rising.momentum == 0
    np.testing.assert_array_equal(weights, [0.0, 0.0, 1.0])


def test_without_a_merit_there_is_no_momentum():
    after, weights = waiting().advance(np.array([0.0, 0.0, 0.25]))
    assert after.momentum == 0
    np.testing.assert_array_equal(weights, [0.0, 0.0, 1.0])


def test_it_does_not_combine_while_it_leaves_a_saddle():
    leaving = Mixing(5, np.eye(2), gap=1.0, merit=10.0, momentum=3)
    assert not leaving.advance(np.array([0.0, 0.0, 4.0]), merit=9.0)[0].accelerated
    assert leaving.advance(np.array([0.0, 0.0, 0.25]), merit=9.0)[0].accelerated
