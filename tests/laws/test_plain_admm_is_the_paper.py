"""With acceleration off and a penalty given, the rounds are those of the paper's Algorithms 1 and 2.

So are the numbers in the history, the centers and widths that come out, and the pairs that are drawn anew.
"""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.engines import InProcessEngine
from dsfr.training import ADMM, TASKS, make_shards
from dsfr.training.clustering.clusters import _start, agree_rules
from dsfr.training.scaling.survey import survey
from dsfr.training.weights.weights import agree_weights
from tests.plain import algorithm_1, algorithm_2, local_system, paper_widths, powers, scaled, variances
from tests.tables import make_settings, make_table, owners_of

seeds = st.integers(0, 10_000)


class Recorder(InProcessEngine):
    """Keeps what is broadcast as consensus."""

    def sum(self, task, broadcast):
        if task in ("cluster_consensus", "weight_consensus"):
            self.seen.append(broadcast["centers" if task == "cluster_consensus" else "consensus"])
        return super().sum(task, broadcast)


def shards_in(engine):
    return [agent._shard for agent in engine._agents.values()]


def engine_of(seed, n_agents):
    X, _, y = make_table(seed, n_features=2)
    engine = Recorder(list(make_shards(X, y, owners_of(seed, len(y), n_agents)).values()), TASKS)
    engine.seen = []
    return engine


@settings(max_examples=25)
@given(
    seeds,
    st.integers(2, 5),
    st.floats(0.5, 50.0),
    st.sampled_from([1.1, 2.0]),
    st.integers(1, 4),
    st.integers(1, 12),
    st.floats(0.5, 3.0),
    st.sampled_from(["exact", "paper"]),
)
def test_clusters_follow_algorithm_1(seed, n_agents, rho, fuzzifier, n_rules, max_rounds, width_scale, width_pooling):
    engine, history = engine_of(seed, n_agents), []
    told = {"fuzzifier": fuzzifier, "n_rules": n_rules, "max_rounds": max_rounds, "tol": 1e-12, "seed": seed}
    told |= {"width_scale": width_scale, "width_pooling": width_pooling, "cluster_penalty": rho}
    told = make_settings(solver=ADMM(acceleration=None), **told)
    population = survey(engine, told)
    start = _start(engine, told, population)
    rules, shares, converged = agree_rules(engine, told, population, history.append)
    rows = [scaled(shard, population.ranges) for shard in shards_in(engine)]
    *rounds, (last, local, _) = algorithm_1(rows, start, rho, fuzzifier, len(engine.seen))
    np.testing.assert_allclose(engine.seen, [r for r, _, _ in rounds], atol=1e-9)
    np.testing.assert_allclose(rules.centers, engine.seen[-1] if converged else last, atol=1e-9)
    pooled = np.concatenate(rows)
    mass = powers(pooled, rules.centers, fuzzifier).sum(axis=0)
    if width_pooling == "exact":
        np.testing.assert_allclose(shares, mass / mass.sum(), atol=1e-8)
        widths = width_scale * np.sqrt(variances(pooled, rules.centers, fuzzifier))
        np.testing.assert_allclose(rules.widths, np.maximum(widths, 0.01), atol=1e-8)
    else:
        np.testing.assert_allclose(rules.widths, paper_widths(rows, local, fuzzifier, width_scale), atol=1e-8)
    check_cluster_history(history, rows, rounds, rho, fuzzifier)


def check_cluster_history(history, rows, rounds, rho, fuzzifier):
    previous = rounds[0][0]
    for number, (info, (r, before, after)) in enumerate(zip(history, rounds, strict=True), start=1):
        u = [powers(X, m, fuzzifier) for X, m in zip(rows, before, strict=True)]
        objective = sum(
            u[i][:, k] @ ((X - before[i][k]) ** 2).sum(axis=1) / 2 for i, X in enumerate(rows) for k in range(len(r))
        )
        step = sum(u[i].T @ X for i, X in enumerate(rows)) / sum(part.sum(axis=0) for part in u)[:, None]
        apart = np.sqrt(sum(((m - r) ** 2).sum() for m in after))
        bound = max(np.abs(step - r).max(), apart / np.sqrt(len(rows) * r.size))
        dual = rho * np.sqrt(len(rows)) * np.linalg.norm(r - previous)
        assert (info.stage, info.round) == ("clusters", number)
        told = [info.objective, info.primal_residual, info.dual_residual, info.error_bound]
        np.testing.assert_allclose(told, [objective, apart, dual, bound], rtol=1e-7, atol=1e-9)
        previous = r


@pytest.mark.parametrize("solver", ["admm", "conjugate", "sums"])
def test_a_cluster_that_is_empty_at_an_agent_does_not_count_in_its_width(solver):
    """Agent b has no row of the first group, and clusters are so hard that it has no membership in that one at all."""
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0.0, 0.1, (30, 2)), rng.uniform(0.9, 1.0, (40, 2))
    owners = np.repeat(["a", "b"], [50, 20])
    told = {"n_rules": 2, "fuzzifier": 1.005, "width_pooling": "paper", "solver": solver, "seed": 1}
    told = make_settings(**told, lower=(0.0, 0.0), upper=(1.0, 1.0), tol=1e-9)
    shards = make_shards(np.concatenate([first, second]), np.ones(70), owners)
    engine = InProcessEngine(list(shards.values()), TASKS)
    rules, _, converged = agree_rules(engine, told, survey(engine, told), lambda info: None)
    assert converged
    k = np.argmin(rules.centers.sum(axis=1))
    np.testing.assert_allclose(rules.widths[k], (2 * first).std(axis=0), rtol=1e-6)
    here, there = ((2 * part - 1 - rules.centers[1 - k]) ** 2 for part in (second[:20], second[20:]))
    pooled = (50 * here.mean(axis=0) + 20 * there.mean(axis=0)) / 70
    np.testing.assert_allclose(rules.widths[1 - k], np.sqrt(pooled), rtol=1e-6)


@settings(max_examples=40)
@given(
    seeds,
    st.integers(2, 5),
    st.floats(0.05, 10.0),
    st.floats(1e-3, 10.0),
    st.floats(0.0, 1.0),
    st.sampled_from(["icr", "fresh", "neighbors", "full", None]),
    st.sampled_from(["anderson", None]),
    st.integers(1, 12),
)
def test_weights_follow_algorithm_2(seed, n_agents, rho, ridge, weight, unlabeled, acceleration, n_neighbors):
    engine, history = engine_of(seed, n_agents), []
    graph = {"unlabeled": "graph", "kernel": unlabeled, "n_neighbors": n_neighbors}
    kinds = {"icr": {}, "fresh": {"refresh_pairs": True}, None: {"unlabeled": None}}
    told = kinds.get(unlabeled, graph) | {"weight": weight, "ridge": ridge}
    solver = ADMM(acceleration=acceleration, penalty=rho, max_rounds=8, tol=1e-12)
    told = make_settings(solver=solver, n_rules=3, seed=seed, **told)
    population = survey(engine, told)
    rules, _, _ = agree_rules(engine, told, population, lambda info: None)
    engine.seen = []
    agree_weights(engine, told, rules, population, history.append)
    target = (population.target.mean, population.target.deviation)
    systems, constants = [], []
    for number in range(1, len(engine.seen) + 1):
        repeat = number if told.solver.refresh_pairs else 0
        parts = [local_system(s, population.ranges, rules, target, told, repeat) for s in shards_in(engine)]
        A, b, squares = zip(*parts, strict=True)
        systems.append((A, b))
        constants.append(sum(squares))
    rounds = list(algorithm_2(systems, rho, ridge))
    if told.solver.refresh_pairs and weight > 1e-3:
        assert all((first[0][0] != second[0][0]).any() for first, second in pairwise(systems))
    plain = acceleration is None or told.solver.refresh_pairs
    if plain:
        np.testing.assert_allclose(engine.seen, [z for z, _ in rounds], atol=1e-8)
        primal = [np.sqrt(sum(((w - z) ** 2).sum() for w in own)) for z, own in rounds]
        np.testing.assert_allclose([info.primal_residual for info in history], primal, rtol=1e-6, atol=1e-9)
    check_weight_history(history, engine.seen, systems, constants, rho, ridge)


def check_weight_history(history, seen, systems, constants, rho, ridge):
    """Objective, dual residual and error bound follow from the consensus alone, accelerated or not."""
    previous = seen[0]
    for info, z, (A, b), constant in zip(history, seen, systems, constants, strict=True):
        curvature, moment = sum(A), sum(b)
        objective = z @ curvature @ z / 2 - moment @ z + constant / 2 + ridge / 2 * z @ z
        bound = np.linalg.norm(curvature @ z - moment + ridge * z) / ridge / max(np.linalg.norm(z), 1e-6)
        dual = rho * np.sqrt(len(b)) * np.linalg.norm(z - previous)
        told = [info.objective, info.dual_residual, info.error_bound]
        np.testing.assert_allclose(told, [objective, dual, bound], rtol=1e-6, atol=1e-9)
        previous = z
