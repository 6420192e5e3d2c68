"""Weights by conjugate residuals: how many rounds, which points are measured, and what happens when agents leave."""

import zlib

import numpy as np
import pytest

from dsfr.core.consensus.preconditioner import Preconditioner
from dsfr.engines import Absence, Faults, InProcessEngine
from dsfr.training import ADMM, TASKS, Conjugate, Settings, Sums, make_shards
from dsfr.training.clustering.clusters import agree_rules
from dsfr.training.scaling.survey import survey
from dsfr.training.weights.weights import agree_weights
from tests.tables import make_settings, make_table

ASKED = {"n_rules": 3, "ridge": 0.1, "seed": 0}


def agents(faults=None, n_agents=5, kind=InProcessEngine):
    X, _, y = make_table(0, n_features=3)
    return kind(make_shards(X, y, np.arange(len(y)) % n_agents), TASKS, faults=faults)


def solve(engine, **told):
    settings = make_settings(**ASKED | told)
    population = survey(engine, settings)
    rules, shares, _ = agree_rules(engine, make_settings(**ASKED, solver="sums"), population, lambda info: None)
    history = []
    found = agree_weights(engine, settings, rules, population, history.append, shares=shares)
    exact = agree_weights(engine, make_settings(**ASKED, solver="sums"), rules, population, lambda info: None)
    return found, history, exact.weights


def rounds_of(engine, task):
    return engine.ledger.entries[task, "sum"].rounds if (task, "sum") in engine.ledger.entries else 0


def test_rounds_do_not_depend_on_the_number_of_agents():
    """With the same rules and no random pairs the pooled problem is the same for every split of the rows."""
    told = Settings(**ASKED, unlabeled=None)
    engines = [agents(n_agents=n_agents) for n_agents in (2, 5, 20, 60)]
    populations = [survey(engine, told) for engine in engines]
    rules, shares, _ = agree_rules(engines[0], Settings(**ASKED, solver="sums"), populations[0], lambda info: None)
    bounds = []
    for engine, population in zip(engines, populations, strict=True):
        history = []
        agree_weights(engine, told, rules, population, history.append, shares=shares)
        bounds.append([info.error_bound for info in history[:-1]])  # the last is rounding alone
    assert len({len(each) for each in bounds}) == 1
    np.testing.assert_allclose(bounds, [bounds[0]] * len(bounds), rtol=1e-3)


def test_the_first_gradient_is_that_of_the_preparation():
    engine = agents()
    found, history, exact = solve(engine)
    assert rounds_of(engine, "first_gradient") == 1
    assert len(history) == 1 + rounds_of(engine, "weight_gradient")
    assert history[-1].error_bound <= 1e-4
    np.testing.assert_allclose(found.weights, exact, atol=1e-4 * np.linalg.norm(exact))
    assert rounds_of(engine, "weight_consensus") == rounds_of(engine, "prepare_weights") == 0


def test_the_preconditioner_saves_rounds(monkeypatch):
    before = len(solve(agents())[1])
    plain = Preconditioner.identity(12)
    monkeypatch.setattr("dsfr.training.weights.conjugate_residuals.preconditioner_of_rules", lambda *_, **__: plain)
    assert before < len(solve(agents())[1])


def test_shares_of_the_rules_are_no_part_of_the_solution():
    engine = agents()
    population = survey(engine, make_settings(**ASKED))
    rules, shares, _ = agree_rules(engine, make_settings(**ASKED), population, lambda info: None)
    told = (engine, make_settings(**ASKED, tol=1e-9), rules, population, lambda info: None)
    with_shares, without = agree_weights(*told, shares=shares).weights, agree_weights(*told).weights
    np.testing.assert_allclose(with_shares, without, atol=1e-8 * np.linalg.norm(without))


class Rounding(InProcessEngine):
    """Agents whose gradients have two digits."""

    def sum(self, task, broadcast):
        """Sum as ever, but a hundredth of the gradient (ridge included) beside the truth."""
        result = super().sum(task, broadcast)
        if not task.endswith("_gradient"):
            return result
        gradient = result["gradient"] + ASKED["ridge"] * broadcast.get("weights", 0.0)
        rng = np.random.default_rng(zlib.crc32(gradient.tobytes()))
        noise = rng.standard_normal(len(gradient)) * np.linalg.norm(gradient) / np.sqrt(len(gradient))
        return result | {"gradient": result["gradient"] + 0.01 * noise}


@pytest.mark.parametrize("tol", [1e-4, 1e-6, 1e-8])
def test_gradients_need_not_be_precise(tol):
    """What a combination promises is then not there: but it is a better point to go on from."""
    engine = agents(kind=Rounding)
    found, history, exact = solve(engine, tol=tol, max_rounds=100)
    assert found.converged
    assert len(history) <= 40
    np.testing.assert_allclose(found.weights, exact, atol=1.1 * tol * np.linalg.norm(exact))


@pytest.mark.parametrize("max_rounds", [1, 2, 7, 11])
def test_stopped_early_it_returns_the_best_it_knows(max_rounds):
    found, history, exact = solve(agents(), max_rounds=max_rounds)
    assert len(history) == max_rounds
    assert not found.converged
    assert np.linalg.norm(found.weights - exact) <= np.linalg.norm(exact) * (1.0 if max_rounds == 1 else 0.9)


@pytest.mark.parametrize("first", [1, 4])
def test_gradients_of_other_agents_are_forgotten(first):
    """Mixed with those of all, gradients of a few would tell of a solution that is none."""
    engine = agents(Faults(absences=[Absence("2", first, first + 29, "weight_gradient")]))
    found, history, exact = solve(engine, tol=1e-6)
    assert found.converged
    assert len(history) > 30
    np.testing.assert_allclose(found.weights, exact, atol=1e-6 * np.linalg.norm(exact))


def test_waiting_asks_for_the_same_point_again():
    asked = []

    class Listening(InProcessEngine):
        def sum(self, task, broadcast):
            if task == "weight_gradient":
                asked.append(broadcast["weights"])
            return super().sum(task, broadcast)

    engine = agents(Faults(absences=[Absence("2", 1, 500)]), kind=Listening)
    found, history, _ = solve(engine)
    assert found.converged
    assert len(history) > 50
    assert all(np.array_equal(point, asked[-1]) for point in asked[-50:])
    np.testing.assert_array_equal(found.weights, asked[-1])


@pytest.mark.parametrize("solver", [ADMM(), ADMM(acceleration=None), Conjugate(), Sums()])
def test_admm_runs_when_and_only_when_it_is_asked_for(solver):
    engine = agents()
    settings = make_settings(**ASKED, solver=solver)
    agree_rules(engine, settings, survey(engine, settings), lambda info: None)
    solve(engine, solver=solver)
    is_admm = isinstance(solver, ADMM)
    assert (rounds_of(engine, "cluster_consensus") > 0) == is_admm
    assert (rounds_of(engine, "weight_consensus") > 0) == is_admm
    assert (rounds_of(engine, "first_gradient") > 0) == isinstance(solver, Conjugate)
