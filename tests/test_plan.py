"""What is planned is what is sent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.engines import InProcessEngine
from dsfr.engines.local.gossip import GossipEngine
from dsfr.engines.local.network import NetworkEngine
from dsfr.engines.topology import TOPOLOGIES, make_topology
from dsfr.pipeline.plan import make_plan, plan_links
from dsfr.training import ADMM, ICR, TASKS, make_shards, train
from dsfr.training.plan import legs
from tests.tables import make_settings, make_table

FREE = {"latency": 0.0, "bandwidth": 1.0, "seed": 3}
any_settings = st.fixed_dictionaries(
    {
        "n_rules": st.integers(1, 5),
        "unlabeled": st.sampled_from(["icr", ICR(pairs="local"), "graph", None]),
        "width_pooling": st.sampled_from(["exact", "paper"]),
        "declared": st.booleans(),
        "cluster_rows": st.sampled_from(["all", "nearest"]),
        "membership_exponent": st.sampled_from([None, 1.0]),
    }
)


def train_on(n_features, n_agents, topology, declared, **told):
    X, _, y = make_table(0, n_rows=60, n_features=n_features)
    if declared:
        told |= {"lower": X.min(axis=0), "upper": X.max(axis=0)}
    shards = make_shards(X, y, np.arange(len(y)) % n_agents)
    engine = InProcessEngine(shards, TASKS)
    if topology is not None:
        kind = GossipEngine if told.get("solver") == "decentralized" else NetworkEngine
        engine = kind(shards, TASKS, make_topology(topology, list(shards), seed=3))
    train(engine, make_settings(**told))
    return engine.ledger, make_settings(**told)


def rounds_of(ledger, task):
    return sum(entry.rounds for (name, _), entry in ledger.entries.items() if name == task)


@settings(max_examples=30)
@given(any_settings, st.integers(1, 5), st.integers(2, 6), st.sampled_from(["sums", "few-rounds"]))
def test_bytes_of_sums_are_exact(told, n_features, n_agents, solver):
    ledger, asked = train_on(n_features, n_agents, None, solver=solver, **told)
    links = plan_links(n_agents, None, **FREE)
    plan = make_plan(60, n_features, links, asked, cluster_rounds=rounds_of(ledger, "cluster_sums"))
    assert plan.exact
    assert (plan.rounds, plan.bytes) == (ledger.rounds, ledger.bytes)
    assert sum(leg.rounds * links.messages(leg) for leg in plan.legs) == ledger.messages


@settings(max_examples=20)
@given(any_settings, st.integers(1, 3), st.integers(2, 12), st.sampled_from(sorted(TOPOLOGIES)))
def test_bytes_of_few_rounds_are_exact_on_any_graph(told, n_features, n_agents, topology):
    ledger, asked = train_on(n_features, n_agents, topology, solver="few-rounds", **told)
    plan = make_plan(60, n_features, plan_links(n_agents, topology, **FREE), asked)
    assert plan.exact
    assert (plan.rounds, plan.bytes) == (6, ledger.bytes)
    sent = sum(leg.rounds * plan.links.messages(leg) for leg in plan.legs) + plan.links.building.messages
    assert sent == ledger.messages


@settings(max_examples=30)
@given(any_settings, st.integers(1, 5), st.integers(2, 6))
def test_bytes_of_conjugate_residuals_are_exact(told, n_features, n_agents):
    ledger, asked = train_on(n_features, n_agents, None, **told)
    rounds = {"cluster_rounds": rounds_of(ledger, "cluster_sums"), "weight_rounds": 1}
    rounds["weight_rounds"] += rounds_of(ledger, "weight_gradient")
    plan = make_plan(60, n_features, plan_links(n_agents, None, **FREE), asked, **rounds)
    assert plan.exact
    assert (plan.rounds, plan.bytes) == (ledger.rounds, ledger.bytes)


@settings(max_examples=20)
@given(any_settings, st.integers(1, 4), st.sampled_from([None, "ring"]), st.sampled_from(["anderson", None]))
@pytest.mark.slow
def test_bytes_of_admm_are_near(told, n_features, topology, acceleration):
    ledger, asked = train_on(n_features, 4, topology, solver=ADMM(acceleration=acceleration, max_rounds=40), **told)
    clustering = rounds_of(ledger, "cluster_consensus")
    solving = rounds_of(ledger, "weight_consensus")
    links = plan_links(4, topology, **FREE)
    plan = make_plan(60, n_features, links, asked, cluster_rounds=clustering, weight_rounds=solving)
    assert plan.exact == (acceleration is None and topology is None)
    assert plan.rounds == ledger.rounds
    assert plan.bytes == pytest.approx(ledger.bytes, rel=0.25 if acceleration else 0.0 if topology is None else 0.02)


every_solver = st.one_of(
    st.sampled_from(["sums", "few-rounds", "conjugate"]),
    st.builds(ADMM, acceleration=st.sampled_from(["anderson", None]), penalty=st.sampled_from([None, 1.0, "balanced"])),
    st.builds(ADMM, refresh_pairs=st.just(True), cluster_penalty=st.sampled_from([None, 1.0])),
    st.builds(
        ADMM,
        acceleration=st.none(),
        penalty=st.just(1.0),
        cluster_penalty=st.just(1.0),
        stopping=st.just("paper"),
        refresh_pairs=st.booleans(),
    ),
)


@settings(max_examples=40)
@given(
    any_settings,
    every_solver,
    st.integers(1, 4),
    st.integers(2, 5),
    st.sampled_from(["random", "local"]),
    st.sampled_from(["rules", "wavelets"]),
    st.sampled_from(["k-means++", "random"]),
)
def test_every_task_that_runs_is_planned_with_its_verb_rounds_and_bytes(
    told, solver, n_features, n_agents, pairs, basis, init
):
    told = told | {"solver": solver, "pairs": pairs, "max_rounds": 12}
    if getattr(solver, "refresh_pairs", False):
        told["unlabeled"] = "icr"
    if solver != "few-rounds":
        told["init"] = init
    if basis == "wavelets" and solver != "few-rounds":
        told |= {"basis": basis, "n_nodes": 7}
    ledger, asked = train_on(n_features, n_agents, None, **told)
    clustering = max(rounds_of(ledger, task) for task in ("cluster_sums", "cluster_consensus", "dfcm_round"))
    solving = rounds_of(ledger, "weight_consensus") or rounds_of(ledger, "dicr_round")
    solving = solving or 1 + rounds_of(ledger, "weight_gradient")
    planned = {(leg.task, leg.verb): leg for leg in legs(n_features, asked, clustering, solving) if leg.rounds}
    assert planned.keys() == ledger.entries.keys()
    for key, entry in ledger.entries.items():
        leg = planned[key]
        answers = n_agents if leg.everybody_answers else 1
        assert leg.rounds == entry.rounds, key
        if leg.exact:
            assert entry.bytes_down == leg.rounds * n_agents * leg.bytes_down, key
            assert entry.bytes_up == leg.rounds * answers * leg.bytes_up, key
        else:
            assert asked.solver.acceleration is not None


@settings(max_examples=30)
@given(
    any_settings,
    st.integers(1, 4),
    st.integers(2, 6),
    st.sampled_from(["ring", "star", "line", "complete", "grid", "erdos-renyi"]),
)
def test_gossip_is_planned_to_the_round_and_to_the_byte(told, n_features, n_agents, topology):
    ledger, asked = train_on(n_features, n_agents, topology, solver="decentralized", **told)
    links = plan_links(n_agents, topology, gossip=True, **FREE)
    clustering = rounds_of(ledger, "cluster_sums") // len(links.rule.exchanges)
    plan = make_plan(60, n_features, links, asked, cluster_rounds=clustering)
    assert plan.rounds == ledger.rounds
    sent = sum(leg.rounds * plan.links.messages(leg) for leg in plan.legs) + plan.links.building.messages
    assert sent == ledger.messages
    start = next(leg for leg in plan.legs if leg.task == "start_centers")
    away = abs(plan.bytes - ledger.bytes)
    assert away == 0 if topology in ("ring", "complete") else away <= links.bytes(start)
    assert not plan.exact


@given(st.integers(1, 5), st.sampled_from(["icr", "graph", None]), st.integers(1, 30))
def test_wavelets_are_planned_too(n_features, unlabeled, n_nodes):
    told = {"basis": "wavelets", "n_nodes": n_nodes, "unlabeled": unlabeled, "solver": "sums"}
    ledger, asked = train_on(n_features, 3, None, declared=False, **told)
    sent = sum(leg.rounds * 3 * (leg.bytes_down + leg.bytes_up) for leg in legs(n_features, asked, 1, 1))
    assert sent == ledger.bytes


def test_time_grows_with_latency_and_the_depth_of_the_tree():
    asked = make_settings(solver="few-rounds")
    there = {"bandwidth": 1e12, "seed": 0}
    direct = make_plan(100, 3, plan_links(9, None, latency=0.5, **there), asked)
    assert direct.travelling == pytest.approx(6 * 2 * 0.5)
    ring = make_plan(100, 3, plan_links(9, "ring", latency=0.5, **there), asked)
    assert ring.travelling == pytest.approx(4 * 6 * 2 * 0.5)
    assert make_plan(100_000, 3, direct.links, asked).computing > make_plan(100, 3, direct.links, asked).computing


def test_what_cannot_be_planned_is_refused():
    links = plan_links(3, None, **FREE)
    with pytest.raises(ValueError, match=r"10010 weights \(from 10 features\) are too many.*[Uu]se fewer rules"):
        make_plan(100, 10, links, make_settings(n_rules=910))
    with pytest.raises(ValueError, match="give a topology"):
        make_plan(100, 10, links, make_settings(solver="decentralized"))
    open_ended = [{"scaling": "robust"}, {"tune": "loo"}, {"tune": "evidence"}, {"relevance": "slopes"}]
    for told in (*open_ended, {"n_models": 3, "tune": "evidence"}, {"solver": "sums", "uncertainty": True}):
        with pytest.raises(ValueError, match="cannot be planned"):
            make_plan(100, 10, links, make_settings(**told))
