"""Agents leave and return, messages are lost or late: the fit ends at the model of those who are there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.engines import Absence, EngineError, Faults, InProcessEngine
from dsfr.engines.local.faults import FaultSimulator
from dsfr.engines.local.gossip import GossipEngine
from dsfr.engines.local.network import NetworkEngine
from dsfr.engines.topology import make_topology
from dsfr.training import ADMM, TASKS, Conjugate, make_shards, train
from dsfr.training.clustering.clusters import agree_rules
from dsfr.training.fixed_point import Iteration
from dsfr.training.scaling.survey import survey
from dsfr.training.weights.weights import agree_weights
from tests.tables import make_settings, make_table, owners_of

seeds = st.integers(0, 10_000)
SITES = [f"site-{number}" for number in range(4)]
SOLVERS = [Conjugate(), ADMM(), ADMM(acceleration=None)]


def shards_of(seed, **table):
    X, _, y = make_table(seed, n_features=2, **table)
    return make_shards(X, y, owners_of(seed, len(y), 4, skew=10.0))


def engine_of(kind, shards, faults=None, min_agents=1):
    if kind == "in-process":
        return InProcessEngine(shards, TASKS, faults=faults, min_agents=min_agents)
    topology = make_topology(kind, list(shards))
    return NetworkEngine(shards, TASKS, topology, faults=faults, min_agents=min_agents)


def weights_over(engine, told, rules, population):
    solution = agree_weights(engine, told, rules, population, lambda info: None)
    return solution.weights, solution.converged


@settings(max_examples=15)
@given(
    seeds,
    st.sampled_from(SITES[1:]),
    st.integers(1, 10),
    st.sampled_from(["icr", None]),
    st.sampled_from(SOLVERS),
)
def test_an_agent_that_leaves_dicr_and_returns_ends_at_the_same_solution(seed, away, leaves, unlabeled, how):
    shards = shards_of(seed)
    told = {"n_rules": 3, "unlabeled": unlabeled, "tol": 1e-8, "ridge": 0.5, "seed": seed, "max_rounds": 50_000}
    task = "weight_gradient" if how == Conjugate() else "weight_consensus"
    faults = Faults(absences=[Absence(away, leaves, leaves + 19, task)])
    engine = engine_of("in-process", shards, faults)
    settings = make_settings(**told, solver=how)
    population = survey(engine, settings)
    rules, _, _ = agree_rules(engine, settings, population, lambda info: None)
    found, converged = weights_over(engine, settings, rules, population)
    assert converged
    assert engine.present == tuple(SITES)
    entry = engine.ledger.entries[task, "sum"]
    assert entry.agents[away].rounds == entry.rounds - 20
    exact, _ = weights_over(engine, make_settings(**told, solver="sums"), rules, population)
    assert np.linalg.norm(found - exact) <= 2e-8 * np.linalg.norm(exact)


@pytest.mark.parametrize("kind", ["in-process", "complete", "grid"])
@pytest.mark.parametrize("solver", ["conjugate", "sums"])
def test_with_an_agent_gone_the_model_is_that_of_the_others(kind, solver):
    shards = shards_of(3)
    told = make_settings(solver=solver, n_rules=3, ridge=0.5, tol=1e-8, seed=5)
    engine = engine_of(kind, shards, Faults(absences=[Absence("site-2", 1)]))
    found = train(engine, told)
    others = {name: shard for name, shard in shards.items() if name != "site-2"}
    alone = train(engine_of("in-process", others), told)
    assert engine.present == tuple(others)
    assert found.termination == "converged"
    X = np.concatenate([shard.rows.X for shard in shards.values()])
    np.testing.assert_allclose(found.predictor.predict(X), alone.predictor.predict(X), rtol=1e-5)


@pytest.mark.parametrize("kind", ["in-process", "ring"])
@pytest.mark.parametrize("solver", ["conjugate", "sums"])
@pytest.mark.parametrize("rounds", [(1, 1), (2, 2), (1, 3), (3, 6), (4, 8)])
def test_an_agent_that_comes_late_catches_up(kind, solver, rounds):
    """It gets what it has missed, so that no task finds it without the memory it needs."""
    engine = engine_of(kind, shards_of(1), Faults(absences=[Absence("site-1", *rounds)]))
    assert train(engine, make_settings(solver=solver, n_rules=2, ridge=0.5)).termination == "converged"
    assert engine.present == tuple(SITES)


def logging_task(code):
    """A task that notes in the agent's memory that it ran, and what it was told."""

    def task(shard, memory, broadcast):
        log = np.append(memory.get("log", np.empty(0)), [code + broadcast["x"]])
        return {**memory, "log": log}, {"value": np.ones(1)}

    return task


LOGGING = {name: logging_task(code) for name, code in {"a": 100.0, "b": 200.0, "c": 300.0}.items()}


@pytest.mark.parametrize("kind", ["in-process", "star"])
@pytest.mark.parametrize(
    ("asked", "log"),
    [
        ("abc", [100.0, 201.0, 302.0]),
        ("abac", [201.0, 102.0, 303.0]),  # each once, as last asked, in that order
        ("aaba", [202.0, 103.0]),  # what is asked now is not asked twice
    ],
)
def test_missed_tasks_run_once_in_the_order_last_asked(kind, asked, log):
    faults = Faults(absences=[Absence("site-1", 1, len(asked) - 1)])
    shards = dict.fromkeys(SITES, np.zeros(1))
    if kind == "in-process":
        engine = InProcessEngine(shards, LOGGING, faults=faults)
    else:
        engine = NetworkEngine(shards, LOGGING, make_topology(kind, SITES), faults=faults)
    for number, task in enumerate(asked):
        before = engine.ledger.bytes
        engine.sum(task, {"x": np.array([float(number)])})
    np.testing.assert_array_equal(engine._agents["site-1"]._memory["log"], log)
    # Telling it what it has missed costs as much as telling it then.
    ways = 8 if kind == "in-process" else 6 + 3  # a tree of three links is built anew, with three offers from the root
    assert engine.ledger.bytes - before == 8 * (ways + len(log) - 1)


@pytest.mark.parametrize("task", ["weight_consensus", "cluster_consensus", "weight_gradient", "cluster_sums"])
def test_those_who_have_converged_wait_for_one_who_is_away(task):
    """With a loose tolerance the others are done long before it is back; its rows count all the same."""
    engine = engine_of("in-process", shards_of(1), Faults(absences=[Absence("site-1", 1, 45, task)]))
    how = "admm" if "consensus" in task else "conjugate"
    trained = train(engine, make_settings(n_rules=2, ridge=0.5, tol=0.5, solver=how))
    assert trained.termination == "converged"
    assert engine.ledger.entries[task, "sum"].rounds > 45


class Listening(InProcessEngine):
    """Keeps the centers that are asked for, what comes back, and from whom."""

    def sum(self, task, broadcast):
        result = super().sum(task, broadcast)
        if task == "cluster_sums":
            self.__dict__.setdefault("heard", []).append((broadcast["centers"], result, self.present))
        return result


def test_steps_of_the_clusters_are_plain_again_after_somebody_left_or_came_back():
    """What was learnt of the others' objective says nothing of this one."""
    faults = Faults(absences=[Absence("site-1", 4, 6, "cluster_sums")])
    engine = Listening(shards_of(1), TASKS, faults=faults)
    train(engine, make_settings(n_rules=4, unlabeled=None, tol=1e-6, fuzzifier=2.0))
    plain = []
    for (_, _, before), (_, sums, present), (following, _, _) in zip(
        engine.heard, engine.heard[1:], engine.heard[2:], strict=False
    ):
        moved = sums["total"] / sums["mass"][:, None]
        plain.append(np.allclose(following, moved, rtol=1e-9, atol=1e-12))
        assert plain[-1] or before == present
    assert sum(plain) < len(plain) / 2


def fates(*told):
    """Fates of messages, one after another."""
    return iter(told).__next__


def test_an_agent_whose_answer_was_lost_has_missed_nothing():
    engine = InProcessEngine(dict.fromkeys(SITES[:2], np.zeros(1)), LOGGING)
    arrives, fails = (True, 1, 0.0), (False, 1, 0.0)
    engine._faults.send = fates(arrives, fails, arrives, arrives, *[arrives] * 4)
    engine.sum("a", {"x": np.zeros(1)})
    assert engine.present == ("site-1",)
    engine.sum("b", {"x": np.zeros(1)})
    np.testing.assert_array_equal(engine._agents["site-0"]._memory["log"], [100.0, 200.0])


def test_a_round_takes_as_long_as_the_slowest_path():
    """Messages to different agents travel at the same time; along a path, one after another."""
    shards = dict.fromkeys(SITES, np.zeros(1))
    engine = InProcessEngine(shards, LOGGING)
    engine._faults.send = fates(*[(True, 1, float(seconds)) for seconds in (1, 2, 3, 4, 1, 1, 2, 2)])
    engine.sum("a", {"x": np.zeros(1)})
    assert engine.ledger.seconds == 3 + 4
    path = NetworkEngine(shards, LOGGING, make_topology([(0, 1), (1, 2), (2, 3)], SITES))
    path._faults.send = lambda: (True, 1, 1.0)
    path.sum("a", {"x": np.zeros(1)})
    built = path.ledger.seconds
    path.sum("a", {"x": np.zeros(1)})
    assert path.ledger.seconds - built == 2 * 3
    ring = GossipEngine(shards, LOGGING, make_topology("ring", SITES))
    ring._faults.send = lambda: (True, 1, 1.0)
    ring.sum("a", {"x": np.zeros(1)})
    learnt = ring.ledger.seconds
    ring.sum("a", {"x": np.zeros(1)})
    assert ring.ledger.seconds - learnt == 2.0


def test_messages_without_a_timeout_are_missed_after_the_mean_delay():
    simulator = FaultSimulator(Faults(loss=0.9, delay=1.0, tries=50, seed=0), SITES)
    arrived, tries, seconds = simulator.send()
    assert seconds >= tries - arrived
    hurried = FaultSimulator(Faults(delay=1.0, timeout=1e-9, tries=3), SITES)
    assert hurried.send() == (False, 3, pytest.approx(3e-9))


def test_combining_starts_anew_when_one_leaves_as_another_returns():
    iteration = Iteration(5)
    sums = {"image": np.ones(2)}
    iteration.receive({**sums, "products": np.array([0.0, 1.0])}, ["a", "b"])
    iteration.receive({**sums, "products": np.array([0.1, 1.0])}, ["b", "a"])
    assert len(iteration.mix) == len(iteration.image_sums) == 2
    iteration.receive({**sums, "products": np.array([0.1, 0.1, 1.0])}, ["a", "c"])
    assert len(iteration.mix) == len(iteration.image_sums) == 1


@settings(max_examples=15)
@given(seeds, st.floats(0.0, 0.4), st.floats(0.0, 2.0), st.sampled_from(["in-process", "ring", "star"]))
def test_lost_and_late_messages_cost_messages_and_nothing_else(seed, loss, delay, kind):
    shards = shards_of(seed, n_rows=80)
    told = make_settings(n_rules=2, ridge=0.5, seed=seed)
    faults = Faults(loss=loss, delay=delay, timeout=5.0, tries=200, seed=seed)
    engine, calm = engine_of(kind, shards, faults), engine_of(kind, shards)
    found, expected = train(engine, told), train(calm, told)
    np.testing.assert_allclose(found.predictor.weights, expected.predictor.weights, rtol=1e-6, atol=1e-8)
    assert engine.ledger.rounds == calm.ledger.rounds
    assert engine.ledger.messages >= calm.ledger.messages
    assert (engine.ledger.seconds > 0.0) == (delay > 0.0)


def test_faults_are_reproducible_by_their_seed():
    ledgers = []
    for seed in (1, 1, 2):
        engine = engine_of("ring", shards_of(0), Faults(loss=0.3, delay=0.1, seed=seed))
        train(engine, make_settings(n_rules=2))
        ledgers.append((engine.ledger.messages, engine.ledger.seconds))
    assert ledgers[0] == ledgers[1] != ledgers[2]


def test_messages_that_never_arrive_leave_agents_out():
    engine = engine_of("in-process", shards_of(0), Faults(loss=0.1, tries=1, seed=3))
    trained = train(engine, make_settings(n_rules=2, max_rounds=30))
    assert np.isfinite(trained.predictor.weights).all()
    assert any(traffic.rounds < engine.ledger.rounds for traffic in engine.ledger.agents.values())


@settings(max_examples=25)
@given(
    seeds,
    st.sampled_from(["complete", "ring", "star", "grid"]),
    st.floats(0.1, 0.9),
    st.sampled_from(["conjugate", "sums"]),
)
def test_on_a_graph_lost_messages_leave_agents_out_and_nothing_worse(seed, kind, loss, solver):
    """Also those that build the tree: offers and acceptances."""
    engine = engine_of(kind, shards_of(0), Faults(loss=loss, tries=1, seed=seed))
    trained = train(engine, make_settings(solver=solver, n_rules=2, max_rounds=8))
    assert np.isfinite(trained.predictor.weights).all()
    assert "site-0" in engine.present


@given(seeds, st.sampled_from(["complete", "ring", "grid"]), st.floats(0.1, 0.9))
def test_a_sum_is_that_of_those_it_names(seed, kind, loss):
    """Whatever message is lost, no contribution counts twice, and no old contribution counts."""

    def tell(shard, memory, broadcast):
        return memory, {"value": shard * broadcast["x"]}

    powers = {name: np.array([2.0**number]) for number, name in enumerate(SITES)}
    topology = make_topology(kind, SITES)
    engine = NetworkEngine(powers, {"tell": tell}, topology, faults=Faults(loss=loss, tries=1, seed=seed))
    for x in (1.0, 10.0, 100.0):
        found = engine.sum("tell", {"x": np.array([x])})["value"]
        assert found == x * sum(powers[name] for name in engine.present)


@pytest.mark.parametrize("kind", ["in-process", "ring"])
def test_fewer_than_min_agents_is_an_error_that_names_the_missing(kind):
    engine = engine_of(kind, shards_of(0), Faults(absences=[Absence("site-1", 4), Absence("site-3", 4)]), 3)
    with pytest.raises(EngineError, match=r"only . of 4 agents answered.*min_agents is 3.*site-3.*smaller min_agents"):
        train(engine, make_settings())


def test_the_engine_waits_for_enough_agents():
    engine = engine_of("in-process", shards_of(0), Faults(absences=[Absence("site-1", 4, 30)]), 4)
    train(engine, make_settings())
    assert all(traffic.rounds == engine.ledger.rounds for traffic in engine.ledger.agents.values())


def test_the_start_agent_may_be_away_when_it_is_asked():
    shards = shards_of(0)
    largest = max(shards, key=lambda name: shards[name].n_samples)
    engine = engine_of("in-process", shards, Faults(absences=[Absence(largest, 1, 2, "start_centers")]))
    assert train(engine, make_settings()).termination == "converged"


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"loss": 1.0}, "loss=1.0"),
        ({"loss": -0.1}, "loss=-0.1"),
        ({"delay": -1.0}, "delay=-1.0"),
        ({"timeout": 0.0}, "timeout=0.0"),
        ({"tries": 0}, "tries=0"),
        ({"tries": 1.5}, "tries=1.5"),
        ({"absences": Absence("site-0", 1)}, "must be a list of dsfr.Absence"),
        ({"absences": [("site-0", 1)]}, "must be a list of dsfr.Absence"),
        ({"absences": [Absence("nobody", 1)]}, "nobody.*site-0"),
    ],
)
def test_impossible_faults_are_refused(wrong, match):
    with pytest.raises(ValueError, match=match):
        engine_of("in-process", shards_of(0), Faults(**wrong))


def test_agents_with_numbers_for_names_can_be_away():
    engine = InProcessEngine(list(shards_of(0).values()), TASKS, faults=Faults(absences=[Absence(2, 1)]))
    train(engine, make_settings(n_rules=2, max_rounds=5))
    assert engine.present == ("0", "1", "3")


def test_min_agents_may_come_from_a_search():
    assert engine_of("in-process", shards_of(0), min_agents=np.int64(4)).n_agents == 4


def test_impossible_absences_and_min_agents_are_refused():
    with pytest.raises(ValueError, match="from round 3 to 2"):
        Absence("site-0", 3, 2)
    for min_agents in (0, 5):
        with pytest.raises(ValueError, match=f"min_agents={min_agents} must be 1 to 4"):
            engine_of("in-process", shards_of(0), min_agents=min_agents)
