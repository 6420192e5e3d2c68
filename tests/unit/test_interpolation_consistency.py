import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.penalties.interpolation_consistency import (
    MAX_DEFAULT_PAIRS,
    Pairs,
    consistency_gram,
    gap_gram,
    interpolation_gap,
    near_pairs,
)

seeds = st.integers(0, 10_000)


def make_basis(rng, k=3, d=2):
    return Rules(rng.uniform(-1, 1, (k, d)), rng.uniform(0.2, 1.0, (k, d)))


@given(seeds)
def test_a_plane_has_no_gap(seed):
    rng = np.random.default_rng(seed)
    basis = make_basis(rng)
    first, second, mix = rng.uniform(-1, 1, (9, 2)), rng.uniform(-1, 1, (9, 2)), rng.random(9)
    plane = np.tile(rng.standard_normal(3), 3)
    np.testing.assert_allclose(interpolation_gap(first, second, mix, basis) @ plane, 0.0, atol=1e-12)


@given(seeds)
def test_the_gap_is_the_bend_of_the_function(seed):
    rng = np.random.default_rng(seed)
    basis = make_basis(rng)
    first, second, mix = rng.uniform(-1, 1, (9, 2)), rng.uniform(-1, 1, (9, 2)), rng.random(9)
    w = rng.standard_normal(basis.n_outputs)

    def f(X):
        return basis.features(X) @ w

    middle = mix[:, None] * first + (1 - mix[:, None]) * second
    bend = f(middle) - mix * f(first) - (1 - mix) * f(second)
    np.testing.assert_allclose(interpolation_gap(first, second, mix, basis) @ w, bend, atol=1e-12)


@given(seeds, st.sampled_from([0.0, 1.0]))
def test_a_pair_mixed_to_one_end_has_no_gap(seed, mix):
    rng = np.random.default_rng(seed)
    basis = make_basis(rng)
    gap = interpolation_gap(rng.uniform(-1, 1, (5, 2)), rng.uniform(-1, 1, (5, 2)), np.full(5, mix), basis)
    np.testing.assert_allclose(gap, 0.0, atol=1e-15)


def test_the_gram_over_blocks_equals_one_product(rng):
    basis, X = make_basis(rng), rng.uniform(-1, 1, (50, 2))
    pairs = Pairs.draw(50, 5000, 0.75, rng)
    gap = interpolation_gap(X[pairs.first], X[pairs.second], pairs.mix, basis)
    np.testing.assert_allclose(gap_gram(X, pairs, basis), gap.T @ gap, atol=1e-10)


def test_no_rows_give_no_penalty(rng):
    basis = make_basis(rng)
    for n_pairs in (None, 7):
        gram = consistency_gram(np.empty((0, 2)), basis, n_pairs=n_pairs, concentration=0.75, rng=rng)
        np.testing.assert_array_equal(gram, np.zeros((9, 9)))


def test_an_explicit_number_of_pairs_is_used_raw_and_grows_the_penalty(rng):
    basis, X = make_basis(rng), rng.uniform(-1, 1, (200, 2))
    few = consistency_gram(X, basis, n_pairs=500, concentration=0.75, rng=np.random.default_rng(1))
    many = consistency_gram(X, basis, n_pairs=5000, concentration=0.75, rng=np.random.default_rng(1))
    assert np.trace(many) / np.trace(few) == pytest.approx(10.0, rel=0.15)


def test_beyond_the_cap_the_default_penalty_still_grows_with_the_rows(rng):
    basis = make_basis(rng)
    n = 3 * MAX_DEFAULT_PAIRS
    X = rng.uniform(-1, 1, (n, 2))
    capped = consistency_gram(X, basis, n_pairs=None, concentration=0.75, rng=np.random.default_rng(1))
    uncapped = consistency_gram(X, basis, n_pairs=n, concentration=0.75, rng=np.random.default_rng(2))
    assert np.trace(capped) == pytest.approx(np.trace(uncapped), rel=0.05)


def test_mixing_shares_follow_the_beta_distribution(rng):
    mix = Pairs.draw(10, 20_000, 0.75, rng).mix
    assert mix.mean() == pytest.approx(0.5, abs=0.01)
    assert mix.var() == pytest.approx(1 / (4 * (2 * 0.75 + 1)), rel=0.05)


@given(seeds, st.booleans())
def test_near_partners_are_the_nearest_of_the_pool_that_are_elsewhere(seed, stretched):
    rng = np.random.default_rng(seed)
    X, pool = rng.integers(0, 6, (30, 2)).astype(float), rng.integers(30, size=12)
    stretch = rng.uniform(0.1, 1.0, 2) if stretched else None
    pairs = Pairs.draw(30, 25, 0.75, rng)
    found, factor = near_pairs(X, pairs, pool, stretch)
    Z = X if stretch is None else X * stretch
    near = 0.0
    for first, second in zip(found.first, found.second, strict=True):
        distances = ((Z[first] - Z[pool]) ** 2).sum(axis=1)
        expected = distances[distances > 0.0].min(initial=np.inf)
        assert second in pool
        near += ((Z[first] - Z[second]) ** 2).sum()
        np.testing.assert_allclose(((Z[first] - Z[second]) ** 2).sum(), expected if np.isfinite(expected) else 0.0)
    far = ((Z[pairs.first] - Z[pairs.second]) ** 2).sum()
    np.testing.assert_allclose(factor, (far / near) ** 2)
    np.testing.assert_array_equal(found.mix, pairs.mix)


@given(seeds)
def test_constant_curvature_pays_about_as_much_for_near_pairs(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, 400)
    pairs = Pairs.draw(400, 400, 0.75, rng)
    near, factor = near_pairs(x[:, None], pairs, rng.integers(400, size=50))

    def paid(drawn):
        middle = drawn.mix * x[drawn.first] + (1 - drawn.mix) * x[drawn.second]
        return np.sum((middle**2 - drawn.mix * x[drawn.first] ** 2 - (1 - drawn.mix) * x[drawn.second] ** 2) ** 2)

    assert 0.2 < factor * paid(near) / paid(pairs) < 20.0


def test_near_pairs_too_close_to_bend_do_not_turn_rounding_into_a_penalty():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(-1, 1, (4, 2)), 25, axis=0) + 1e-14 * rng.standard_normal((100, 2))
    basis, pairs = make_basis(rng), Pairs.draw(100, 100, 0.75, rng)
    near, factor = near_pairs(X, pairs, np.arange(100))
    assert (factor * gap_gram(X, near, basis)).max() < 1e-3 * gap_gram(X, pairs, basis).max()
