import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.penalties import graph_laplacian
from dsfr.core.penalties.graph_laplacian import laplacian_gram
from tests.plain import graph_weights
from tests.plain import laplacian_gram as plain_gram

seeds = st.integers(0, 10_000)


def make_basis(rng, k=3, d=2):
    return Rules(rng.uniform(-1, 1, (k, d)), rng.uniform(0.2, 1.0, (k, d)))


@given(seeds, st.integers(2, 30))
def test_the_full_graph_equals_the_matrix_formula(seed, n):
    rng = np.random.default_rng(seed)
    basis, X = make_basis(rng), rng.uniform(-1, 1, (n, 2))
    expected = plain_gram(basis.features(X), graph_weights(X, None))
    np.testing.assert_allclose(laplacian_gram(X, basis, n_neighbors=None), expected, atol=1e-10)


def rows_of(kind, rng, n):
    """Rows anywhere, rows with many equal distances, or rows that repeat."""
    if kind == "anywhere":
        return rng.uniform(-1, 1, (n, 2))
    if kind == "grid":
        return rng.permutation(np.stack(np.meshgrid(*[np.linspace(-1, 1, 6)] * 2), axis=-1).reshape(-1, 2))[:n]
    return rng.integers(-2, 3, (n, 2)) / 2


kinds = st.sampled_from(["anywhere", "grid", "repeated"])


@given(seeds, kinds, st.integers(2, 36), st.integers(1, 12))
def test_the_neighbor_graph_equals_the_matrix_formula(seed, kind, n, n_neighbors):
    rng = np.random.default_rng(seed)
    basis, X = make_basis(rng), rows_of(kind, rng, n)
    expected = plain_gram(basis.features(X), graph_weights(X, n_neighbors))
    np.testing.assert_allclose(laplacian_gram(X, basis, n_neighbors=n_neighbors), expected, atol=1e-10)


@given(seeds, kinds, st.integers(2, 36), st.integers(1, 12))
def test_the_order_of_rows_does_not_matter_to_the_bit(seed, kind, n, n_neighbors):
    rng = np.random.default_rng(seed)
    basis, X = make_basis(rng), rows_of(kind, rng, n)
    shuffled = laplacian_gram(rng.permutation(X), basis, n_neighbors=n_neighbors)
    np.testing.assert_array_equal(laplacian_gram(X, basis, n_neighbors=n_neighbors), shuffled)


@given(seeds, st.integers(2, 25), st.integers(1, 6))
def test_without_ties_neighbors_are_the_nearest_rows(seed, n, n_neighbors):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    near = graph_weights(X, n_neighbors) > 0
    assert (near.sum(axis=1) >= min(n_neighbors, n - 1)).all()
    order = np.argsort(cdist(X, X), axis=1)[:, 1 : min(n_neighbors, n - 1) + 1]
    assert (near == near.T).all()
    assert near.sum() <= 2 * order.size
    assert near[np.arange(n)[:, None], order].all()


def test_rounding_does_not_decide_between_ties(rng):
    """On a grid in tenths neighbours are equally near only up to rounding; shifting it must change nothing."""
    basis = make_basis(rng)
    grid = np.stack(np.meshgrid(np.arange(-5, 6), np.arange(-5, 6)), axis=-1).reshape(-1, 2)
    moved = Rules(basis.centers + 0.3, basis.widths)
    strengths = slice(None, None, 3)  # the features that stay the same when rows and centers are shifted
    first = laplacian_gram(grid * 0.1, basis, n_neighbors=1)[strengths, strengths]
    second = laplacian_gram(grid * 0.1 + 0.3, moved, n_neighbors=1)[strengths, strengths]
    np.testing.assert_allclose(first, second, atol=1e-10)


def test_many_equal_rows_cost_no_memory(rng):
    basis = make_basis(rng)
    X = np.concatenate([np.zeros((10_000, 2)), np.ones((10_000, 2)), rng.uniform(-1, 1, (100, 2))])
    tracemalloc.start()
    gram = laplacian_gram(X, basis, n_neighbors=10)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20e6  # 10^8 edges would take gigabytes
    few = np.concatenate([np.zeros((20, 2)), np.ones((20, 2)), X[-100:]])
    weights = graph_weights(few, 10)
    counts = np.concatenate([np.full(40, 500.0), np.ones(100)])  # each of these 20 stands for 10,000
    expected = plain_gram(basis.features(few), counts[:, None] * weights * counts)
    np.testing.assert_allclose(gram, expected, rtol=1e-9, atol=1e-6)


def test_neighbors_equal_everyone_when_asked_for_all(rng):
    basis, X = make_basis(rng), rng.uniform(-1, 1, (20, 2))
    np.testing.assert_allclose(
        laplacian_gram(X, basis, n_neighbors=19), laplacian_gram(X, basis, n_neighbors=None), atol=1e-10
    )


@pytest.mark.parametrize("n_neighbors", [3, None])
def test_blocks_do_not_change_the_sum(rng, monkeypatch, n_neighbors):
    basis, X = make_basis(rng), rng.uniform(-1, 1, (100, 2))
    whole = laplacian_gram(X, basis, n_neighbors=n_neighbors)
    monkeypatch.setattr(graph_laplacian, "BLOCK_ROWS", 7)
    np.testing.assert_allclose(laplacian_gram(X, basis, n_neighbors=n_neighbors), whole, atol=1e-10)


@pytest.mark.parametrize("n_neighbors", [2, None])
def test_constants_are_smooth_and_duplicates_are_no_trouble(rng, n_neighbors):
    basis, X = make_basis(rng), np.repeat(rng.uniform(-1, 1, (4, 2)), 5, axis=0)
    gram = laplacian_gram(X, basis, n_neighbors=n_neighbors)
    constant = np.tile([1.0, 0.0, 0.0], 3)
    assert constant @ gram @ constant == pytest.approx(0.0, abs=1e-10)
    assert np.linalg.eigvalsh(gram).min() > -1e-10


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_rows_have_no_graph(rng, n):
    basis = make_basis(rng)
    assert not laplacian_gram(np.zeros((n, 2)), basis, n_neighbors=5).any()
