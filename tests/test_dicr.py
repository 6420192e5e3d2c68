"""Rounds of the weights: in which coordinates, which points are tried, and what becomes of them when agents leave."""

import numpy as np
import pytest

from dsfr.engines import Absence, Faults, InProcessEngine
from dsfr.protocol import TASKS, Settings, make_shards
from dsfr.protocol.clusters import agree_rules
from dsfr.protocol.survey import survey
from dsfr.protocol.weights import agree_weights
from tests.tables import make_table


def agents(faults=None, n_agents=5):
    X, _, y = make_table(0, n_features=3)
    return InProcessEngine(make_shards(X, y, np.arange(len(y)) % n_agents), TASKS, faults=faults)


def solve(engine, **told):
    settings = Settings(**{"n_rules": 3, "ridge": 0.1, "seed": 0} | told)
    population = survey(engine, settings)
    rules, _, _ = agree_rules(engine, settings, population, lambda info: None)
    history = []
    found = agree_weights(engine, settings, rules, population, history.append)
    exact = agree_weights(engine, Settings(n_rules=3, ridge=0.1, seed=0, solver="exact"), rules, population, print)
    return found, history, exact.weights


def rounds_of(engine, task):
    return engine.ledger.entries[task, "sum"].rounds if (task, "sum") in engine.ledger.entries else 0


@pytest.mark.parametrize(("penalty", "plain"), [(None, False), ("balanced", False), (0.1, True)])
def test_a_number_for_the_penalty_means_plain_coordinates(penalty, plain):
    engine = agents()
    solve(engine, penalty=penalty)
    roots = [agent._memory["root"] for agent in engine._agents.values()]
    assert all(np.array_equal(root, roots[0]) for root in roots)
    assert np.array_equal(roots[0], np.eye(len(roots[0]))) is plain


def test_the_metric_and_the_best_of_all_points_save_rounds():
    best, in_metric, paper = ({}, {"acceleration": None}, {"acceleration": None, "penalty": 0.1})
    counts = [len(solve(agents(), **told)[1]) for told in (best, in_metric, paper)]
    assert 2 * counts[0] < counts[1]
    assert 2 * counts[1] < counts[2]


def test_only_acceleration_tries_points():
    engine = agents()
    found, history, exact = solve(engine)
    assert rounds_of(engine, "weight_gradient") >= 1
    assert len(history) == rounds_of(engine, "weight_gradient") + rounds_of(engine, "weight_consensus")
    assert history[-1].error_bound <= 1e-4
    np.testing.assert_allclose(found.weights, exact, atol=1e-4 * np.linalg.norm(exact))
    engine = agents()
    solve(engine, acceleration=None)
    assert rounds_of(engine, "weight_gradient") == 0


class Disappointing(InProcessEngine):
    """Agents at whom a promise never holds."""

    def sum(self, task, broadcast):
        """Sum as ever, but with a steep slope wherever a point is tried."""
        result = super().sum(task, broadcast)
        return result | {"gradient": result["gradient"] + 1e3} if task == "weight_gradient" else result


def test_points_that_disappoint_are_tried_ever_more_seldom():
    X, _, y = make_table(0, n_features=3)
    engine = Disappointing(make_shards(X, y, np.arange(len(y)) % 5), TASKS)
    found, history, _ = solve(engine, tol=1e-9, max_rounds=200)
    assert not found.converged or history[-1].error_bound <= 1e-9
    assert 1 <= rounds_of(engine, "weight_gradient") <= 8


@pytest.mark.parametrize("max_rounds", [1, 2, 7, 12])
def test_stopped_early_it_returns_the_best_it_knows(max_rounds):
    found, history, exact = solve(agents(), max_rounds=max_rounds)
    assert len(history) == max_rounds
    assert not found.converged
    assert np.linalg.norm(found.weights - exact) < np.linalg.norm(exact)


@pytest.mark.parametrize("task", ["weight_consensus", "weight_gradient"])
@pytest.mark.parametrize("first", [1, 4])
def test_points_of_other_agents_are_forgotten(task, first):
    """Mixed with those of all, gradients of a few would tell of a solution that is none."""
    engine = agents(Faults(absences=[Absence("2", first, first + 29, task)]))
    found, _, exact = solve(engine, tol=1e-6)
    assert found.converged
    np.testing.assert_allclose(found.weights, exact, atol=1e-6 * np.linalg.norm(exact))
