"""The paper's stopping tests take every pair of agents and every cluster by itself, squared."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from dsfr.core.consensus.iterate_differences import largest_disagreement, largest_dual_change

copies_of_agents = arrays(np.float64, array_shapes(min_dims=3, max_dims=3, max_side=4), elements=st.floats(-10, 10))


@given(copies_of_agents)
def test_disagreement_is_the_largest_over_pairs_and_clusters(copies):
    agents, clusters, _ = copies.shape
    pairs = [(a, b, k) for a in range(agents) for b in range(agents) for k in range(clusters)]
    expected = max(sum((copies[a, k] - copies[b, k]) ** 2) for a, b, k in pairs)
    np.testing.assert_allclose(largest_disagreement(copies), expected, rtol=1e-12)


@given(copies_of_agents, st.floats(0.01, 10.0))
def test_duals_change_by_the_penalty_times_the_distance_from_the_consensus(copies, penalty):
    consensus = copies.mean(axis=0)
    expected = max(sum((penalty * (own[k] - consensus[k])) ** 2) for own in copies for k in range(copies.shape[1]))
    np.testing.assert_allclose(largest_dual_change(copies, consensus, penalty), expected, rtol=1e-12)
