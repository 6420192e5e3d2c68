"""Without a coordinator: every agent ends with a copy of the model, and all copies are the pooled solution."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.engines import Absence, EngineError, Faults, InProcessEngine
from dsfr.engines.local.network import NetworkEngine
from dsfr.engines.topology import TOPOLOGIES, make_topology
from dsfr.training import TASKS, Settings, make_shards, train
from dsfr.training.clustering.clusters import rules_about
from dsfr.training.scaling.survey import survey
from dsfr.training.weights.weights import agree_weights
from tests.tables import make_table, owners_of

seeds = st.integers(0, 10_000)


def network(shards, name="ring", **options):
    return NetworkEngine(shards, TASKS, make_topology(name, list(shards), seed=1), **options)


def pooled(shards, told, basis):
    """Population, and the exact weights over given rules, by sums over all agents."""
    engine = InProcessEngine(shards, TASKS)
    population = survey(engine, told)
    exact = agree_weights(engine, told, basis, population, lambda info: None).weights
    return population, exact


@settings(max_examples=12)
@given(
    seeds,
    st.sampled_from(sorted(TOPOLOGIES)),
    st.integers(2, 6),
    st.sampled_from(["icr", "graph", None]),
    st.sampled_from(["rules", "wavelets"]),
    st.floats(1e-2, 1.0),
    st.booleans(),
)
def test_every_copy_is_near_the_pooled_solution(seed, name, n_agents, unlabeled, basis, ridge, declared):
    X, _, y = make_table(seed, n_features=2, n_rows=100)
    shards = make_shards(X, y, owners_of(seed, len(y), n_agents, skew=5.0))
    told = {"basis": basis, "unlabeled": unlabeled, "ridge": ridge, "n_rules": 3, "n_nodes": 6, "seed": seed}
    told |= {"consistency": 0.2, "smoothness": 1e-3, "width_scale": 1.3, "fuzzifier": 1.5}
    if declared:
        told["feature_ranges"] = (tuple(X.min(axis=0) - 1.0), tuple(X.max(axis=0) + 1.0))
    engine = network(shards, name)
    found = train(engine, Settings(solver="decentralized", **told))
    assert found.termination == "converged"
    population, exact = pooled(shards, Settings(solver="exact", **told), found.predictor.basis)
    assert list(found.copies) == list(shards)
    for copy in found.copies.values():
        np.testing.assert_allclose(copy.ranges.low, population.ranges.low)
        np.testing.assert_allclose([copy.target_mean, copy.target_scale], _moments(population), rtol=1e-6)
        assert np.linalg.norm(copy.weights - exact) <= 1e-3 * np.linalg.norm(exact)
        np.testing.assert_array_equal(copy.shares, found.predictor.shares)
        for array, same in zip(copy.basis.arrays().values(), found.predictor.basis.arrays().values(), strict=True):
            np.testing.assert_array_equal(array, same)
    assert (found.n_samples, found.n_labeled) == (len(y), 30)
    assert {entry.verb for entry in engine.ledger.entries.values()} == {"neighbor_sum"}


def _moments(population):
    return [population.target.mean, population.target.deviation]


def test_a_smaller_tolerance_brings_copies_nearer():
    X, _, y = make_table(1, n_features=2)
    shards = make_shards(X, y, owners_of(1, len(y), 5, skew=5.0))
    errors, spreads = [], []
    for tol in (1e-3, 1e-6):
        found = train(network(shards), Settings(solver="decentralized", n_rules=3, tol=tol))
        _, exact = pooled(shards, Settings(solver="exact", n_rules=3), found.predictor.basis)
        weights = np.array([copy.weights for copy in found.copies.values()])
        errors.append(np.linalg.norm(weights - exact, axis=1).max() / np.linalg.norm(exact))
        spreads.append(np.linalg.norm(weights - weights[0], axis=1).max() / np.linalg.norm(exact))
        assert errors[-1] < 10 * tol
        assert spreads[-1] < tol
    assert errors[1] < errors[0] / 100


def test_centers_are_where_a_pooled_step_does_not_move_them_and_widths_are_the_pooled_ones():
    X, _, y = make_table(2, n_features=2)
    shards = make_shards(X, y, owners_of(2, len(y), 4, skew=5.0))
    told = Settings(solver="decentralized", n_rules=3, tol=1e-6, width_scale=1.2)
    rules = train(network(shards, "grid"), told).predictor.basis
    engine = InProcessEngine(shards, TASKS)
    train(engine, Settings(n_rules=3, solver="exact"))  # leaves ranges and fuzzifier in the agents' memory
    sums = engine.sum("cluster_sums", {"centers": rules.centers})
    np.testing.assert_allclose(sums["total"] / sums["mass"][:, None], rules.centers, atol=1e-4)
    np.testing.assert_allclose(rules_about(engine, told, rules.centers)[0].widths, rules.widths, rtol=1e-6)


def test_messages_have_the_size_of_the_model():
    sizes = []
    for n_rows in (100, 200):
        X, _, y = make_table(1, n_rows=n_rows)
        engine = network(make_shards(X, y, owners_of(1, n_rows, 3)))
        train(engine, Settings(solver="decentralized", max_rounds=30))
        sizes.append({task: entry.bytes_up / entry.rounds for (task, _), entry in engine.ledger.entries.items()})
    flooded = {"flood", "average", "announce"}  # of several things in turn, for as long as it takes
    assert all(sizes[0][task] == sizes[1][task] for task in sizes[0].keys() - flooded)
    assert all(sizes[1][task] < 3 * 2 * 8 * (100 + 3) for task in flooded)


def test_agents_may_miss_rounds_of_the_weights():
    X, _, y = make_table(3, n_features=2)
    shards = make_shards(X, y, owners_of(3, len(y), 5, skew=5.0))
    told = {"n_rules": 3, "ridge": 0.5, "tol": 1e-6}
    faults = Faults(absences=[Absence("site-2", 5, 24, "neighbor_weights")], loss=0.3, tries=2)
    engine = network(shards, "complete", faults=faults)
    found = train(engine, Settings(solver="decentralized", **told))
    assert found.termination == "converged"
    _, exact = pooled(shards, Settings(solver="exact", **told), found.predictor.basis)
    for copy in found.copies.values():
        assert np.linalg.norm(copy.weights - exact) <= 1e-5 * np.linalg.norm(exact)


@pytest.mark.parametrize("name", ["ring", "complete", "star"])
def test_a_long_absence_does_not_move_the_solution(name):
    """While somebody is away nobody pulls harder: both ends of a link must take the same penalty for an exchange."""
    X, _, y = make_table(3, n_features=2)
    shards = make_shards(X, y, owners_of(3, len(y), 5, skew=5.0))
    told = {"n_rules": 3, "ridge": 0.5, "tol": 1e-6}
    faults = Faults(absences=[Absence("site-2", 5, 400, "neighbor_weights")])
    found = train(network(shards, name, faults=faults), Settings(solver="decentralized", **told))
    assert found.termination == "converged"
    _, exact = pooled(shards, Settings(solver="exact", **told), found.predictor.basis)
    for copy in found.copies.values():
        assert np.linalg.norm(copy.weights - exact) <= 1e-5 * np.linalg.norm(exact)


@settings(max_examples=4)
@given(seeds, st.sampled_from(["ring", "star"]), st.floats(0.01, 0.05))
def test_links_that_fail_cost_rounds_and_nothing_else(seed, name, loss):
    X, _, y = make_table(seed, n_features=2, n_rows=80)
    shards = make_shards(X, y, owners_of(seed, len(y), 5, skew=5.0))
    told = {"n_rules": 3, "ridge": 0.1, "fuzzifier": 1.5, "seed": seed}
    engine = network(shards, name, faults=Faults(loss=loss, tries=1, seed=seed))
    found = train(engine, Settings(solver="decentralized", **told))
    assert found.termination == "converged"
    population, exact = pooled(shards, Settings(solver="exact", **told), found.predictor.basis)
    for copy in found.copies.values():
        np.testing.assert_allclose([copy.target_mean, copy.target_scale], _moments(population), rtol=1e-6)
        for array, same in zip(copy.basis.arrays().values(), found.predictor.basis.arrays().values(), strict=True):
            np.testing.assert_array_equal(array, same)
        assert np.linalg.norm(copy.weights - exact) <= 1e-3 * np.linalg.norm(exact)


def test_links_that_fail_all_the_time_are_an_error():
    X, _, y = make_table(3)
    engine = network(make_shards(X, y, owners_of(3, len(y), 4)), faults=Faults(loss=0.9, tries=1))
    with pytest.raises(EngineError, match="links failed in 1000 rounds after task 'introduce'"):
        train(engine, Settings(solver="decentralized"))


@pytest.mark.parametrize("task", ["count", "place_centers", "spread_out", "start_copies", "announce"])
def test_agents_must_be_there_when_something_begins(task):
    X, _, y = make_table(3, n_features=4)  # as many features as counts: stale ones would fit
    shards = make_shards(X, y, owners_of(3, len(y), 4))
    engine = network(shards, faults=Faults(absences=[Absence("site-2", 1, 1, task)]))
    with pytest.raises(EngineError, match=f"only 3 of 4 agents were there in task '{task}'"):
        train(engine, Settings(solver="decentralized", n_rules=3))


def test_agents_must_be_there_when_ranges_are_told_on():
    X, _, y = make_table(3)
    shards = make_shards(X, y, owners_of(3, len(y), 4))
    engine = network(shards, faults=Faults(absences=[Absence("site-2", 1, 3)]))
    with pytest.raises(EngineError, match=r"only 3 of 4 agents were there in task 'introduce'.*another solver"):
        train(engine, Settings(solver="decentralized"))


def test_running_out_of_rounds_is_told():
    X, _, y = make_table(3)
    shards = make_shards(X, y, owners_of(3, len(y), 4))
    found = train(network(shards), Settings(solver="decentralized", max_rounds=6))
    assert found.unconverged == ("clusters", "weights")


def test_one_agent_needs_no_neighbors():
    X, _, y = make_table(3)
    shards = make_shards(X, y, np.zeros(len(y)))
    alone = train(InProcessEngine(shards, TASKS), Settings(solver="decentralized"))
    exact = train(InProcessEngine(shards, TASKS), Settings(solver="exact"))
    np.testing.assert_array_equal(alone.predictor.weights, exact.predictor.weights)


def test_without_a_graph_there_are_no_neighbors():
    X, _, y = make_table(3)
    engine = InProcessEngine(make_shards(X, y, owners_of(3, len(y), 4)), TASKS)
    with pytest.raises(ValueError, match="give a topology"):
        train(engine, Settings(solver="decentralized"))


@pytest.mark.parametrize(
    "told",
    [
        {"rounds": "few"},
        {"width_pooling": "paper"},
        {"refresh_pairs": True},
        {"relaxation": 1.5},
        {"penalty": "balanced"},
        {"cluster_penalty": 1.0},
    ],
)
def test_what_needs_a_coordinator_is_refused(told):
    with pytest.raises(ValueError, match=f"{next(iter(told))}=.*(decentralized|refresh_pairs)"):
        Settings(solver="decentralized", **told)


def test_nobody_labelled_is_told_as_ever():
    X, _, y = make_table(3)
    shards = make_shards(X, np.full(len(y), np.nan), owners_of(3, len(y), 4))
    with pytest.raises(ValueError, match="no row is labelled"):
        train(network(shards), Settings(solver="decentralized"))
