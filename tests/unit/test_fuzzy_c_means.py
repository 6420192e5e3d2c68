import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.core.clustering.fuzzy_c_means import ClusterSums, ClusterVariances, fuzzy_c_means, seed_centers
from dsfr.core.clustering.memberships import memberships

seeds = st.integers(0, 10_000)
fuzzifiers = st.one_of(st.floats(1.01, 5.0), st.sampled_from([1.1, 2.0]))


def rows_and_centers(seed, n=40, d=3, k=4):
    rng = np.random.default_rng(seed)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (k, d))


def plain_fuzzy_c_means(X, centers, a, steps):
    """Bezdek's iteration, as a book has it."""
    X, centers = X.tolist(), centers.tolist()
    for _ in range(steps):
        u = []
        for x in X:
            distance = [sum((p - q) ** 2 for p, q in zip(x, m, strict=True)) ** 0.5 for m in centers]
            u.append([1 / sum((dk / dc) ** (2 / (a - 1)) for dc in distance) for dk in distance])
        for k in range(len(centers)):
            mass = sum(row[k] ** a for row in u)
            centers[k] = [sum(u[i][k] ** a * x[j] for i, x in enumerate(X)) / mass for j in range(len(X[0]))]
    return np.array(centers)


@given(seeds, st.floats(1.3, 4.0), st.integers(1, 5))
def test_steps_equal_a_plain_python_fuzzy_c_means(seed, fuzzifier, steps):
    X, centers = rows_and_centers(seed)
    ours = fuzzy_c_means(X, centers, fuzzifier=fuzzifier, tol=0.0, max_rounds=steps)
    np.testing.assert_allclose(ours, plain_fuzzy_c_means(X, centers, fuzzifier, steps), atol=1e-9)


@given(seeds, fuzzifiers)
def test_memberships_sum_to_one(seed, fuzzifier):
    X, centers = rows_and_centers(seed)
    u = memberships(X, centers, fuzzifier)
    assert (u >= 0).all()
    np.testing.assert_allclose(u.sum(axis=1), 1.0, atol=1e-12)


@given(seeds, fuzzifiers, st.sampled_from([1e6, 1e100, 1e200, 1e308]))
def test_memberships_are_finite_at_any_distance(seed, fuzzifier, distance):
    X, centers = rows_and_centers(seed)
    u = memberships(np.sign(X) * distance, centers, fuzzifier)
    assert np.isfinite(u).all()
    np.testing.assert_allclose(u.sum(axis=1), 1.0, atol=1e-12)


@given(seeds, st.floats(1.0001, 100.0))
def test_a_row_on_a_center_belongs_to_it_alone(seed, fuzzifier):
    _, centers = rows_and_centers(seed)
    np.testing.assert_array_equal(memberships(centers, centers, fuzzifier), np.eye(len(centers)))


@given(seeds, fuzzifiers)
def test_a_row_on_two_coinciding_centers_belongs_half_to_each(seed, fuzzifier):
    _, centers = rows_and_centers(seed)
    centers[1] = centers[0]
    np.testing.assert_allclose(memberships(centers[:1], centers, fuzzifier)[0], [0.5, 0.5, 0.0, 0.0])


@given(seeds, fuzzifiers)
def test_the_objective_never_rises(seed, fuzzifier):
    X, centers = rows_and_centers(seed)
    objectives = []
    for _ in range(30):
        sums = ClusterSums.of(X, centers, fuzzifier)
        objectives.append(sums.objective)
        centers = sums.centers(centers)
    assert (np.diff(objectives) <= 1e-12 * np.abs(objectives[:-1])).all()


@given(seeds, fuzzifiers, st.integers(0, 40))
def test_sums_of_a_split_add_to_those_of_the_whole(seed, fuzzifier, cut):
    X, centers = rows_and_centers(seed)
    for kind in (ClusterSums, ClusterVariances):
        parts = kind.of(X[:cut], centers, fuzzifier) + kind.of(X[cut:], centers, fuzzifier)
        whole = kind.of(X, centers, fuzzifier)
        for name in kind.__slots__:
            np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12, atol=1e-12)


def test_sums_over_many_blocks_equal_one_formula(rng):
    X, centers = rng.uniform(-1, 1, (5000, 2)), rng.uniform(-1, 1, (3, 2))
    weights = memberships(X, centers, 1.5) ** 1.5
    np.testing.assert_allclose(ClusterSums.of(X, centers, 1.5).total, weights.T @ X, rtol=1e-10)


@given(seeds, fuzzifiers)
def test_an_empty_cluster_keeps_its_center_and_has_no_spread(seed, fuzzifier):
    _, centers = rows_and_centers(seed)
    rows = np.repeat(centers[:1], 5, axis=0)  # all rows on the first center: the others are empty
    sums = ClusterSums.of(rows, centers, fuzzifier)
    np.testing.assert_allclose(sums.centers(centers), centers, atol=1e-15)
    spread = ClusterVariances.of(rows, centers, fuzzifier)
    assert (spread.variances == 0.0).all()


@given(seeds, fuzzifiers)
def test_variances_are_weighted_variances_about_the_centers(seed, fuzzifier):
    X, centers = rows_and_centers(seed)
    weights = memberships(X, centers, fuzzifier) ** fuzzifier
    expected = [np.average((X - m) ** 2, axis=0, weights=w) for m, w in zip(centers, weights.T, strict=True)]
    np.testing.assert_allclose(ClusterVariances.of(X, centers, fuzzifier).variances, expected, rtol=1e-9)


@given(seeds, st.integers(1, 8))
def test_seeds_are_distinct_rows_while_there_are_any(seed, n_centers):
    X, _ = rows_and_centers(seed, n=8)
    centers = seed_centers(X, n_centers, np.random.default_rng(seed))
    assert len(np.unique(centers, axis=0)) == n_centers
    assert all((center == X).all(axis=1).any() for center in centers)


@given(seeds, st.integers(2, 6))
def test_with_fewer_distinct_rows_than_centers_the_rest_is_drawn_from_the_cube(seed, n_centers):
    X = np.zeros((5, 2))
    centers = seed_centers(X, n_centers, np.random.default_rng(seed))
    assert len(np.unique(centers, axis=0)) == n_centers
    assert (np.abs(centers) <= 1.0).all()


@pytest.mark.parametrize("fuzzifier", [1.1, 2.0])
def test_well_separated_groups_are_found(rng, fuzzifier):
    truth = np.array([[-0.8, -0.8], [0.8, -0.8], [0.0, 0.8]])
    X = np.concatenate([center + 0.05 * rng.standard_normal((50, 2)) for center in truth])
    found = fuzzy_c_means(X, seed_centers(X, 3, rng), fuzzifier=fuzzifier, tol=1e-8, max_rounds=200)
    nearest = [np.abs(found - center).max(axis=1).min() for center in truth]
    assert max(nearest) < 0.05
