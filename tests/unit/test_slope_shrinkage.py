"""Lines that differ between rules only along features that matter."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.relevance.slope_shrinkage import Shrinkage, unshrunk_factor
from dsfr.core.solve.cholesky import cholesky
from dsfr.core.solve.statistics import Statistics, solve_weights

seeds, rules = st.integers(0, 10_000), st.integers(1, 6)


def drawn(seed, n_rules, d=3):
    rng = np.random.default_rng(seed)
    p = n_rules * (d + 1)
    H, y, B = rng.normal(size=(12, p)), rng.normal(size=12), rng.normal(size=(5, p))
    total = Statistics(H.T @ H, H.T @ y, H.sum(axis=0), B.T @ B, 12.0, y.sum(), y @ y)
    return total, rng.uniform(0.02, 1.0, d)


@given(seeds, rules)
def test_deviations_from_the_mean_slope_shrink_and_the_mean_does_not(seed, n_rules):
    rng = np.random.default_rng(seed)
    relevance, u = rng.uniform(0.02, 1.0, 3), rng.normal(size=(n_rules, 4))
    lines = Shrinkage.of(relevance, n_rules).times(u.ravel()).reshape(n_rules, 4)
    np.testing.assert_allclose(lines[:, 0], u[:, 0])
    np.testing.assert_allclose(lines.mean(axis=0), u.mean(axis=0), atol=1e-12)
    slopes = u[:, 1:]
    np.testing.assert_allclose(
        lines[:, 1:] - slopes.mean(axis=0), relevance * (slopes - slopes.mean(axis=0)), atol=1e-12
    )


@given(seeds, rules)
def test_a_shrinkage_is_a_symmetric_matrix_with_an_inverse(seed, n_rules):
    total, relevance = drawn(seed, n_rules)
    tied = Shrinkage.of(relevance, n_rules)
    matrix = tied.times(np.eye(len(total.moment)))
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
    np.testing.assert_allclose(tied.times(total.gram), matrix @ total.gram, atol=1e-10)
    np.testing.assert_allclose(tied.inverse.times(tied.times(total.gram)), total.gram, atol=1e-9)
    np.testing.assert_allclose(total.mapped(tied.times).gram, matrix @ total.gram @ matrix, atol=1e-10)


@given(seeds, rules)
def test_tied_weights_solve_the_system_with_their_own_prior(seed, n_rules):
    total, relevance = drawn(seed, n_rules)
    tied, weight, ridge = Shrinkage.of(relevance, n_rules), 0.3, 0.7
    lines = tied.times(solve_weights(total.mapped(tied.times).quadratic(weight), ridge))
    matrix = tied.times(np.eye(len(total.moment)))
    system = total.gram + weight * total.unlabeled_gram + ridge * np.linalg.inv(matrix @ matrix)
    np.testing.assert_allclose(lines, np.linalg.solve(system, total.moment), rtol=1e-6, atol=1e-8)
    seen = total.mapped(tied.times).quadratic(weight).curvature + ridge * np.eye(len(matrix))
    factor = unshrunk_factor(cholesky(seen), tied)
    np.testing.assert_allclose(factor, np.triu(factor), atol=1e-9)
    np.testing.assert_allclose(factor.T @ factor, system, rtol=1e-6, atol=1e-8 * np.abs(system).max())
    assert (np.diag(factor) > 0.0).all()
