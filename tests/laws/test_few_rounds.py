"""A whole training in six rounds, near the one that takes as many as it needs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import SFRRegressor, nrmse
from dsfr.core.clustering.fuzzy_c_means import ClusterSums, merge_centers
from tests.tables import make_table, owners_of, train_on

seeds = st.integers(0, 10_000)


@settings(max_examples=25)
@given(
    seeds, st.integers(2, 8), st.sampled_from(["icr", "graph", None]), st.integers(1, 6), st.sampled_from([0.3, 10.0])
)
def test_six_rounds_whatever_the_settings(seed, n_agents, unlabeled, n_rules, skew):
    X, _, y = make_table(seed)
    owners = owners_of(seed, len(y), n_agents, skew)
    training, engine = train_on(X, y, owners, solver="few-rounds", unlabeled=unlabeled, n_rules=n_rules, seed=seed)
    assert engine.ledger.rounds == 6
    assert training.termination == "fixed_rounds"
    assert np.isfinite(training.predictor.predict(X)).all()
    revealing = [entry.task for entry in engine.ledger.entries.values() if entry.reveals_single_contributions]
    assert revealing == ["local_clusters"]


@pytest.mark.parametrize("skew", [0.5, 100.0])
def test_errors_are_near_those_of_many_rounds(skew):
    ratios = []
    for seed in range(20):
        X, truth, y = make_table(seed, n_rows=400)
        owners = owners_of(seed, len(y), 4, skew)
        many, few = (
            SFRRegressor(solver=solver, random_state=seed).fit(X, y, agents=owners) for solver in ("sums", "few-rounds")
        )
        assert few.n_rounds_ == 6 < many.n_rounds_
        ratios.append(nrmse(truth, few.predict(X)) / nrmse(truth, many.predict(X)))
    assert np.mean(ratios) < 1.05


def test_a_single_agent_has_no_rounds_to_save():
    X, _, y = make_table(0)
    few, many = (SFRRegressor(solver=solver, random_state=0).fit(X, y).predict(X) for solver in ("few-rounds", "sums"))
    np.testing.assert_array_equal(few, many)


@given(seeds, st.sampled_from([1.1, 2.0]))
def test_a_center_of_mass_two_counts_as_two(seed, fuzzifier):
    rng = np.random.default_rng(seed)
    rows, centers, counts = rng.uniform(-1, 1, (10, 2)), rng.uniform(-1, 1, (3, 2)), rng.integers(1, 4, 10)
    weighted = ClusterSums.of(rows, centers, fuzzifier, counts.astype(float))
    repeated = ClusterSums.of(np.repeat(rows, counts, axis=0), centers, fuzzifier)
    np.testing.assert_allclose(weighted.total, repeated.total, atol=1e-10)
    np.testing.assert_allclose(weighted.mass, repeated.mass, atol=1e-10)
    assert weighted.objective == pytest.approx(repeated.objective)


def test_local_centers_of_the_same_groups_merge_to_these(rng):
    truth = np.array([[-0.8, -0.8], [0.8, -0.8], [0.0, 0.8]])
    local = np.concatenate([truth + 0.02 * rng.standard_normal(truth.shape) for _ in range(5)])
    stray = np.concatenate([local, [[0.5, 0.5]]])  # an empty cluster of an agent with too few rows
    merged = merge_centers(stray, np.append(np.full(15, 10.0), 0.0), 3, 1.1, rng)
    assert max(np.abs(merged - center).max(axis=1).min() for center in truth) < 0.03
