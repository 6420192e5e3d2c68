"""Rounds of ADMM for the weights: in which coordinates, and how they end."""

import numpy as np
import pytest

from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, make_shards
from dsfr.training.clustering.clusters import agree_rules
from dsfr.training.scaling.survey import survey
from dsfr.training.weights.weights import agree_weights
from tests.tables import make_settings, make_table


def agents():
    X, _, y = make_table(0, n_features=3)
    return InProcessEngine(make_shards(X, y, np.arange(len(y)) % 5), TASKS)


def solve(engine, **told):
    settings = make_settings(**{"n_rules": 3, "ridge": 0.1, "seed": 0, "solver": "admm"} | told)
    population = survey(engine, settings)
    rules, _, _ = agree_rules(engine, settings, population, lambda info: None)
    history = []
    found = agree_weights(engine, settings, rules, population, history.append)
    exact = agree_weights(engine, make_settings(n_rules=3, ridge=0.1, seed=0, solver="sums"), rules, population, print)
    return found, history, exact.weights


@pytest.mark.parametrize(("penalty", "plain"), [(None, False), ("balanced", False), (0.1, True)])
def test_a_number_for_the_penalty_means_plain_coordinates(penalty, plain):
    engine = agents()
    solve(engine, penalty=penalty)
    roots = [agent._memory["root"] for agent in engine._agents.values()]
    assert all(np.array_equal(root, roots[0]) for root in roots)
    assert np.array_equal(roots[0], np.eye(len(roots[0]))) is plain


def test_metric_and_acceleration_save_rounds():
    best, in_metric, paper = ({}, {"acceleration": None}, {"acceleration": None, "penalty": 0.1})
    counts = [len(solve(agents(), **told)[1]) for told in (best, in_metric, paper)]
    assert 1.5 * counts[0] < counts[1]
    assert 2 * counts[1] < counts[2]


@pytest.mark.parametrize("max_rounds", [1, 2, 7, 12])
def test_stopped_early_it_returns_what_the_next_round_would_have_begun_with(max_rounds):
    found, history, exact = solve(agents(), max_rounds=max_rounds)
    assert len(history) == max_rounds
    assert not found.converged
    assert np.linalg.norm(found.weights - exact) < np.linalg.norm(exact)
