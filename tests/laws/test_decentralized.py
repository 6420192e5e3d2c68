"""Without a coordinator: every agent ends with the pooled model, and "converged" is what it says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import InProcess, SFRRegressor
from dsfr.core.consensus.admm import relative_error_bound
from dsfr.engines import Absence, EngineError, Faults, InProcessEngine
from dsfr.engines.gossip.rules import sum_rule
from dsfr.engines.local.gossip import LEARN, GossipEngine
from dsfr.engines.topology import TOPOLOGIES, make_topology
from dsfr.training import TASKS, make_shards, train
from tests.tables import make_settings, make_table, owners_of

seeds = st.integers(0, 10_000)
graphs = st.sampled_from(sorted(TOPOLOGIES))


def network(shards, name="ring", **options):
    return GossipEngine(shards, TASKS, make_topology(name, list(shards), seed=1), **options)


def shards_of(seed, n_agents, n_rows=100, n_features=2):
    X, _, y = make_table(seed, n_features=n_features, n_rows=n_rows)
    return X, make_shards(X, y, owners_of(seed, len(y), n_agents, skew=5.0))


def pooled_step(shards, told, centers):
    """How far a step of fuzzy c-means over all rows moves a center: measured apart from the training."""
    engine = InProcessEngine(shards, TASKS)
    train(engine, make_settings(**told | {"solver": "sums", "max_rounds": 1}))  # leaves ranges and fuzzifier in memory
    sums = engine.sum("cluster_sums", {"centers": centers})
    filled = sums["mass"] > 1e-300
    moved = sums["total"][filled] / sums["mass"][filled, None]
    return float(np.abs(moved - centers[filled]).max())


def pooled_error(shards, told, predictor):
    """Bound of the relative error of weights, from the gradient of the objective over all rows."""
    engine = InProcessEngine(shards, TASKS)
    train(engine, make_settings(**told | {"solver": "sums", "max_rounds": 1}))
    asked = make_settings(**told)
    message = {
        **predictor.basis.arrays(),
        "target_mean": np.asarray(predictor.target_mean),
        "target_scale": np.asarray(predictor.target_scale),
        "unlabeled_weight": np.asarray(asked.penalty.strength),
        **asked.penalty.message(),
    }
    engine.sum("first_gradient", message)
    gradient = engine.sum("weight_gradient", {"weights": predictor.weights})["gradient"]
    ridge = asked.ridge_value
    return relative_error_bound(gradient + ridge * predictor.weights, predictor.weights, ridge)


ADMM = {"solver": "admm"}
WAYS = [
    {"solver": "decentralized"},
    {"solver": "decentralized", "acceleration": None},
    {"solver": "conjugate"},
    {"solver": "sums"},
    ADMM,
    ADMM | {"acceleration": None},
    ADMM | {"cluster_penalty": 1e-3},
    ADMM | {"cluster_penalty": 1e9},
]


@pytest.mark.slow
@settings(max_examples=60)
@given(
    seeds,
    graphs,
    st.integers(2, 7),
    st.sampled_from(WAYS),
    st.sampled_from([1e-2, 1e-4, 1e-6]),
    st.floats(1.05, 2.5),
    st.integers(2, 6),
    st.floats(1e-2, 1.0),
    st.sampled_from(["icr", None]),
)
def test_converged_means_that_the_pooled_step_and_the_pooled_gradient_are_small(
    seed, graph, n_agents, way, tol, fuzzifier, n_rules, ridge, unlabeled
):
    """The certificate is a measured pooled quantity: no penalty and no step length can make it small."""
    _, shards = shards_of(seed, n_agents)
    told = {
        "tol": tol,
        "fuzzifier": fuzzifier,
        "n_rules": n_rules,
        "ridge": ridge,
        "unlabeled": unlabeled,
        "seed": seed,
    }
    told |= way | {"max_rounds": 500}
    engine = network(shards, graph) if way["solver"] == "decentralized" else InProcessEngine(shards, TASKS)
    found = train(engine, make_settings(**told))
    if "clusters" not in found.unconverged:
        assert pooled_step(shards, told, found.predictor.basis.centers) <= 3.0 * tol
    if "weights" not in found.unconverged:
        assert pooled_error(shards, told, found.predictor) <= 3.0 * tol


@settings(max_examples=30)
@given(
    seeds,
    graphs,
    st.integers(2, 8),
    st.sampled_from(["icr", "graph", None]),
    st.sampled_from(["rules", "wavelets"]),
    st.floats(1e-3, 1.0),
    st.booleans(),
)
def test_every_copy_is_the_pooled_model(seed, name, n_agents, unlabeled, basis, ridge, declared):
    X, shards = shards_of(seed, n_agents)
    told = {"basis": basis, "unlabeled": unlabeled, "ridge": ridge, "n_rules": 3, "n_nodes": 6, "seed": seed}
    told |= {"consistency": 0.2, "smoothness": 1e-3, "width_scale": 1.3, "fuzzifier": 1.5}
    if declared:
        told["feature_ranges"] = (tuple(X.min(axis=0) - 1.0), tuple(X.max(axis=0) + 1.0))
    engine = network(shards, name)
    found = train(engine, make_settings(solver="decentralized", **told))
    pooled = train(InProcessEngine(shards, TASKS), make_settings(solver="sums", **told))
    assert found.termination == pooled.termination
    assert list(found.copies) == list(shards)
    for copy in found.copies.values():
        np.testing.assert_allclose(copy.predict(X), pooled.predictor.predict(X), atol=1e-6 * copy.target_scale)
        np.testing.assert_array_equal(copy.weights, found.predictor.weights)
    assert (found.n_samples, found.n_labeled) == (100, 30)


@pytest.mark.parametrize(
    "told",
    [
        {"width_pooling": "paper"},
        {"tune": "evidence", "n_models": 3, "uncertainty": True, "scaling": "robust", "relevance": "evidence"},
        {"tune": "loo"},
        {"firing": "mean", "pairs": "local"},
    ],
    ids=lambda told: "-".join(told),
)
def test_what_a_coordinator_can_do_agents_can_do_without(told):
    X, shards = shards_of(2, 5)
    found = train(network(shards), make_settings(solver="decentralized", n_rules=3, **told))
    pooled = train(InProcessEngine(shards, TASKS), make_settings(solver="sums", n_rules=3, **told))
    ours, theirs = found.mixture or found.predictor, pooled.mixture or pooled.predictor
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6 * pooled.predictor.target_scale)
    assert len(found.copies) == 5


@given(graphs, st.integers(2, 6), seeds)
@settings(max_examples=20)
def test_rounds_are_known_before_they_are_made(name, n_agents, seed):
    """A sum takes the degree of the polynomial, a maximum and the start centers the diameter."""
    _, shards = shards_of(seed, n_agents, n_rows=60)
    engine = network(shards, name)
    train(engine, make_settings(solver="decentralized", n_rules=2, seed=seed))
    direct = InProcessEngine(shards, TASKS)
    train(direct, make_settings(solver="sums", n_rules=2, seed=seed))
    across = engine.ledger.entries[LEARN, "flood"].rounds - 1
    cost = {"sum": len(sum_rule(engine.links).exchanges), "max": across, "gather": across}
    expected = {key: entry.rounds * cost[key[1]] for key, entry in direct.ledger.entries.items()}
    assert {key: e.rounds for key, e in engine.ledger.entries.items()} == expected | {(LEARN, "flood"): across + 1}
    assert {e.verb for e in engine.ledger.entries.values() if e.reveals_single_contributions} == {"gather"}


def test_messages_have_the_size_of_the_model():
    sizes = []
    for n_rows in (100, 200):
        engine = network(shards_of(1, 3, n_rows)[1])
        train(engine, make_settings(solver="decentralized", max_rounds=30))
        sizes.append({key: entry.bytes_up / entry.rounds for key, entry in engine.ledger.entries.items()})
    assert sizes[0] == sizes[1]


@settings(max_examples=6)
@given(seeds, graphs, st.floats(0.01, 0.5))
def test_lost_messages_cost_rounds_and_nothing_else(seed, name, loss):
    _, shards = shards_of(seed, 5, n_rows=80)
    told = make_settings(solver="decentralized", n_rules=3, seed=seed)
    calm, lossy = network(shards, name), network(shards, name, faults=Faults(loss=loss, tries=1, seed=seed))
    np.testing.assert_array_equal(train(lossy, told).predictor.weights, train(calm, told).predictor.weights)
    assert lossy.ledger.rounds >= calm.ledger.rounds


@settings(max_examples=6)
@given(seeds, graphs, st.integers(1, 40), st.integers(0, 150), st.integers(0, 4))
def test_an_agent_that_is_away_for_some_rounds_changes_nothing(seed, name, first, length, who):
    _, shards = shards_of(seed, 5, n_rows=80)
    told = make_settings(solver="decentralized", n_rules=3, seed=seed)
    faults = Faults(absences=[Absence(f"site-{who}", first, first + length)])
    found = train(network(shards, name, faults=faults), told)
    np.testing.assert_array_equal(found.predictor.weights, train(network(shards, name), told).predictor.weights)
    assert len(found.copies) == 5


@settings(max_examples=6)
@given(seeds, st.sampled_from(["ring", "complete"]), st.integers(1, 5))
def test_without_one_that_never_comes_the_model_is_that_of_those_present(seed, name, n_rules):
    X, shards = shards_of(seed, 5, n_rows=80)
    told = {"n_rules": n_rules, "seed": seed}
    engine = network(shards, name, faults=Faults(absences=[Absence("site-2", 1)]))
    found = train(engine, make_settings(solver="decentralized", **told))
    others = {agent: shard for agent, shard in shards.items() if agent != "site-2"}
    expected = train(InProcessEngine(others, TASKS), make_settings(solver="sums", **told))
    assert list(found.copies) == list(others)
    np.testing.assert_allclose(found.predictor.predict(X), expected.predictor.predict(X), rtol=1e-6, atol=1e-6)


def test_one_that_leaves_and_never_returns_ends_with_a_model_and_a_warning():
    X, _, y = make_table(3)
    faults = Faults(absences=[Absence("2", 30)])
    model = SFRRegressor(
        n_agents=5, solver="decentralized", engine=InProcess(topology="ring", faults=faults), random_state=0
    )
    with pytest.warns(UserWarning, match=r"1 of 5 agents were missing in the last round: 2\. The model is that of the"):
        model.fit(X, y)
    assert model.termination_ == "converged"
    assert list(model.agent_models_) == ["0", "1", "3", "4"]


def test_one_that_others_cannot_do_without_is_named():
    X, _, y = make_table(3)
    faults = Faults(absences=[Absence("0", 30)])
    model = SFRRegressor(
        n_agents=4, solver="decentralized", engine=InProcess(topology="star", faults=faults), random_state=0
    )
    with pytest.raises(EngineError, match="no message from 0 in 200 rounds"):
        model.fit(X, y)


def test_running_out_of_rounds_is_told():
    _, shards = shards_of(3, 4)
    found = train(network(shards), make_settings(solver="decentralized", max_rounds=1))
    assert found.unconverged == ("clusters",)


def test_one_agent_needs_no_neighbors():
    _, shards = shards_of(3, 1)
    alone = train(InProcessEngine(shards, TASKS), make_settings(solver="decentralized"))
    exact = train(InProcessEngine(shards, TASKS), make_settings(solver="sums"))
    np.testing.assert_array_equal(alone.predictor.weights, exact.predictor.weights)


def test_without_a_graph_there_are_no_neighbors():
    engine = InProcessEngine(shards_of(3, 4)[1], TASKS)
    with pytest.raises(ValueError, match="give the engine a topology"):
        train(engine, make_settings(solver="decentralized"))


def test_nobody_labelled_is_told_as_ever():
    X, _, y = make_table(3)
    shards = make_shards(X, np.full(len(y), np.nan), owners_of(3, len(y), 4))
    with pytest.raises(ValueError, match="no row is labelled"):
        train(network(shards), make_settings(solver="decentralized"))
