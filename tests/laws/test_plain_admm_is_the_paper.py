"""With acceleration off and a penalty given, the rounds are those of the paper's Algorithms 1 and 2."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.core.clusters import memberships
from dsfr.engines import InProcessEngine
from dsfr.protocol import TASKS, Settings, make_shards
from dsfr.protocol.clusters import _start, agree_rules
from dsfr.protocol.survey import scaled_rows, survey
from dsfr.protocol.weights import agree_weights
from tests.tables import make_table, owners_of

seeds = st.integers(0, 10_000)


def engine_of(seed, n_agents):
    X, _, y = make_table(seed, n_features=2)
    return InProcessEngine(list(make_shards(X, y, owners_of(seed, len(y), n_agents)).values()), TASKS)


def algorithm_1(rows, start, rho, fuzzifier, rounds):
    """Consensus before each round, as the paper updates it: memberships, eq. (26), (27), (25)."""
    L, r = len(rows), start
    m, dual = [start] * L, [np.zeros_like(start)] * L
    for _ in range(rounds):
        yield r
        u = [memberships(X, centers, fuzzifier) ** fuzzifier for X, centers in zip(rows, m, strict=True)]
        m = [(u[i].T @ rows[i] - dual[i] + rho * r) / (u[i].sum(axis=0) + rho)[:, None] for i in range(L)]
        r = sum(dual) / L / rho + sum(m) / L
        dual = [dual[i] + rho * (m[i] - r) for i in range(L)]


def algorithm_2(A, b, rho, ridge, rounds):
    """Consensus before each round, as the paper updates it: eq. (36) with rho_p in Q, (38), (35)."""
    L, z = len(b), np.zeros_like(b[0])
    dual = [np.zeros_like(z)] * L
    for _ in range(rounds):
        yield z
        w = [np.linalg.solve(A[i] + rho * np.eye(len(z)), b[i] + rho * z - dual[i]) for i in range(L)]
        z = sum(dual[i] + rho * w[i] for i in range(L)) / (ridge + rho * L)
        dual = [dual[i] + rho * (w[i] - z) for i in range(L)]


class Recorder(InProcessEngine):
    """Keeps what is broadcast as consensus."""

    def sum(self, task, broadcast):
        if task in ("cluster_consensus", "weight_consensus"):
            self.seen.append(broadcast["centers" if task == "cluster_consensus" else "consensus"])
        return super().sum(task, broadcast)


@settings(max_examples=20)
@given(seeds, st.integers(2, 5), st.floats(0.5, 50.0), st.sampled_from([1.1, 2.0]), st.integers(1, 4))
def test_clusters_follow_algorithm_1(seed, n_agents, rho, fuzzifier, n_rules):
    engine = engine_of(seed, n_agents)
    engine.__class__, engine.seen = Recorder, []
    told = Settings(
        acceleration=None,
        cluster_penalty=rho,
        fuzzifier=fuzzifier,
        n_rules=n_rules,
        max_rounds=12,
        tol=1e-12,
        seed=seed,
    )
    population = survey(engine, told)
    start = _start(engine, told, population)
    agree_rules(engine, told, population, lambda info: None)
    rows = [scaled_rows(shard, memory) for shard, memory in zip(engine._shards, engine._memories, strict=True)]
    expected = list(algorithm_1(rows, start, rho, fuzzifier, len(engine.seen)))
    np.testing.assert_allclose(engine.seen, expected, atol=1e-9)


@settings(max_examples=20)
@given(seeds, st.integers(2, 5), st.floats(0.05, 10.0), st.floats(1e-3, 10.0), st.floats(0.0, 1.0))
def test_weights_follow_algorithm_2(seed, n_agents, rho, ridge, consistency):
    engine = engine_of(seed, n_agents)
    engine.__class__, engine.seen = Recorder, []
    told = Settings(
        acceleration=None,
        penalty=rho,
        ridge=ridge,
        consistency=consistency,
        n_rules=3,
        max_rounds=12,
        tol=1e-12,
        seed=seed,
    )
    population = survey(engine, told)
    rules, _, _ = agree_rules(engine, told, population, lambda info: None)
    engine.seen = []
    agree_weights(engine, told, rules, population.target, lambda info: None)
    A, b = zip(*((memory["curvature"], memory["moment"]) for memory in engine._memories), strict=True)
    expected = list(algorithm_2(A, b, rho, ridge, len(engine.seen)))
    np.testing.assert_allclose(engine.seen, expected, atol=1e-8)
