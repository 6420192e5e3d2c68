"""Rows that have given sums, and what they say of weights with independent priors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.solve.label_rows import Explained, LabelRows, low_rank_root
from dsfr.core.solve.statistics import Statistics

seeds, counts = st.integers(0, 10_000), st.integers(1, 12)


def drawn(seed: int, n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, p)), rng.normal(size=n), rng.exponential(size=p)


@given(seeds, counts, counts)
def test_rows_have_the_sums_that_they_are_of(seed, n, p):
    H, y, _ = drawn(seed, n, p)
    total = Statistics(H.T @ H, H.T @ y, H.sum(axis=0), np.zeros((p, p)), float(n), y.sum(), y @ y)
    rows = LabelRows.of(total)
    assert len(rows.root) <= min(n, p)
    np.testing.assert_allclose(rows.root.T @ rows.root, total.gram, atol=1e-9)
    np.testing.assert_allclose(rows.root.T @ rows.rest, total.moment, atol=1e-5)
    assert (rows.rest >= 0.0).all()
    np.testing.assert_allclose(rows.rest @ rows.rest + rows.beyond, y @ y, rtol=1e-6)


@given(seeds, st.integers(1, 4), st.integers(8, 20))
def test_few_rows_are_those_of_all_eigenvectors(seed, n, p):
    """Up to their signs; sums of few rows are decomposed in another way."""
    H, y, _ = drawn(seed, n, p)
    root, rest = low_rank_root(H.T @ H, H.T @ y)
    values, vectors = np.linalg.eigh(H.T @ H)
    assert root.shape == (n, p)
    np.testing.assert_allclose(np.sum(root**2, axis=1), values[-n:], atol=1e-9)
    np.testing.assert_allclose(root @ root.T, np.diag(values[-n:]), atol=1e-9)
    np.testing.assert_allclose(root.T @ root, H.T @ H, atol=1e-9)
    np.testing.assert_allclose(root.T @ rest, H.T @ y, atol=1e-9)
    inside = root @ vectors[:, -n:]
    np.testing.assert_allclose(np.sum(inside**2, axis=1), np.sum(root**2, axis=1), atol=1e-9)


@given(seeds, counts, counts)
def test_labels_explained_are_the_posterior_of_the_weights(seed, n, p):
    """By the system of the weights, which is another one than that of the labels."""
    H, y, variances = drawn(seed, n, p)
    explained = Explained.by(variances, H, y)
    posterior = np.linalg.inv(H.T @ H + np.diag(1.0 / variances))
    np.testing.assert_allclose(np.sqrt(variances) * explained.means, posterior @ H.T @ y, atol=1e-8)
    np.testing.assert_allclose(variances * explained.used, variances - np.diag(posterior), atol=1e-8)
    np.testing.assert_allclose(y @ explained.solved, y @ y - y @ H @ posterior @ H.T @ y, atol=1e-8)
    log_ratio = np.linalg.slogdet(posterior)[1] - np.log(variances).sum()
    np.testing.assert_allclose(explained.log_determinant, -log_ratio, atol=1e-8)
