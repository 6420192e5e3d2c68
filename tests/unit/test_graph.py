import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from dsfr.core import graph
from dsfr.core.graph import laplacian_gram, neighbor_weights
from dsfr.core.rules import Rules

seeds = st.integers(0, 10_000)


def make_basis(rng, k=3, d=2):
    return Rules(rng.uniform(-1, 1, (k, d)), rng.uniform(0.2, 1.0, (k, d)))


def plain_gram(H, W):
    return H.T @ (np.diag(W.sum(axis=1)) - W) @ H


@given(seeds, st.integers(2, 30))
def test_the_full_graph_equals_the_matrix_formula(seed, n):
    rng = np.random.default_rng(seed)
    basis, X = make_basis(rng), rng.uniform(-1, 1, (n, 2))
    expected = plain_gram(basis.features(X), np.exp(-cdist(X, X, "sqeuclidean") / 2))
    np.testing.assert_allclose(laplacian_gram(X, basis, n_neighbors=None), expected, atol=1e-10)


@given(seeds, st.integers(2, 30), st.integers(1, 12))
def test_the_neighbor_graph_equals_the_matrix_formula(seed, n, n_neighbors):
    rng = np.random.default_rng(seed)
    basis, X = make_basis(rng), rng.uniform(-1, 1, (n, 2))
    W = neighbor_weights(X, n_neighbors).toarray()
    expected = plain_gram(basis.features(X), W)
    np.testing.assert_allclose(laplacian_gram(X, basis, n_neighbors=n_neighbors), expected, atol=1e-10)


@given(seeds, st.integers(2, 25), st.integers(1, 6))
def test_neighbors_are_the_nearest_rows(seed, n, n_neighbors):
    X = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    distances = cdist(X, X)
    np.fill_diagonal(distances, np.inf)
    near = np.zeros((n, n), dtype=bool)
    for i in range(n):
        near[i, np.argsort(distances[i])[: min(n_neighbors, n - 1)]] = True
    W = neighbor_weights(X, n_neighbors).toarray()
    np.testing.assert_array_equal(W > 0, near | near.T)
    np.testing.assert_allclose(W[W > 0], np.exp(-(distances[W > 0] ** 2) / 2))


def test_neighbors_equal_everyone_when_asked_for_all(rng):
    basis, X = make_basis(rng), rng.uniform(-1, 1, (20, 2))
    np.testing.assert_allclose(
        laplacian_gram(X, basis, n_neighbors=19), laplacian_gram(X, basis, n_neighbors=None), atol=1e-10
    )


@pytest.mark.parametrize("n_neighbors", [3, None])
def test_blocks_do_not_change_the_sum(rng, monkeypatch, n_neighbors):
    basis, X = make_basis(rng), rng.uniform(-1, 1, (100, 2))
    whole = laplacian_gram(X, basis, n_neighbors=n_neighbors)
    monkeypatch.setattr(graph, "BLOCK_ROWS", 7)
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
