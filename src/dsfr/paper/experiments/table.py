"""The main table: every method over the grid in closed form, and full fits at the chosen grid values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

from dsfr.estimators.methods import METHODS
from dsfr.estimators.metrics import nrmse
from dsfr.paper.experiments.folds import Fold
from dsfr.paper.experiments.pooled import Agents, Candidate, Problem
from dsfr.paper.experiments.shared_rounds import SharedRounds
from dsfr.paper.experiments.spec import Spec
from dsfr.training import ADMM, Conjugate, FuzzyRules
from dsfr.training.solvers import Solver

Row = dict[str, Any]
Choices = Mapping[tuple[str, str, str], Candidate]
"""Chosen grid value by data set, setting and method."""
SETTINGS = ("centralised", "distributed")
PRINTED = ADMM(acceleration=None, cluster_penalty=0.1, penalty=0.1, stopping="paper")
"""The paper's ADMM: rho_s = rho_p = 0.1 and its stopping tests; pairs are drawn once."""


def run_grid(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """Test error and leave-one-out error of the five methods at every grid value, centralised and distributed."""
    return [row for setting in SETTINGS for row in _grid_of_setting(fold, spec, setting)]


def _grid_of_setting(fold: Fold, spec: Spec, setting: str) -> Iterator[Row]:
    owners = fold.owners if setting == "distributed" else None
    few = Agents.of_fold(fold, spec, owners, fold.known)
    everything = Agents.of_fold(fold, spec, owners, fold.y)
    rules, wavelets = few.rules(), few.wavelets(spec.nodes)
    icr = Problem(few.population, rules, few.statistics(rules, "icr"))
    graph = Problem(few.population, rules, few.statistics(rules, "graph"))
    network = Problem(few.population, wavelets, few.statistics(wavelets, "graph"))
    supervised = Problem(everything.population, rules, everything.statistics(rules, None))
    ridges = [(ridge, 0.0) for ridge in spec.grid]
    pairs = list(product(spec.grid, spec.grid))
    plan = {
        "FR": (supervised, fold.y, ridges),
        "LapWNN": (network, fold.known, pairs),
        "s-SFR": (icr, fold.known, ridges),
        "SFR-G": (graph, fold.known, pairs),
        "SFR-ICR": (icr, fold.known, pairs),
    }
    for method, (problem, targets, candidates) in plan.items():
        errors, scores = problem.errors(fold, candidates), problem.leave_one_out(fold, targets, candidates)
        for (ridge, weight), error, score in zip(candidates, errors, scores, strict=True):
            yield {
                "setting": setting,
                "method": method,
                "ridge": ridge,
                "weight": weight,
                "nrmse": round(error, 6),
                "loo": round(score, 6),
            }


def run_fits(fold: Fold, spec: Spec, choices: Choices) -> list[Row]:
    """A full fit of every method at its chosen grid value: error, seconds, rounds and bytes."""
    solver, rounds = Conjugate(tol=spec.tol), SharedRounds(fold)
    return [_fit(fold, spec, setting, name, choices, solver, rounds) for setting in SETTINGS for name in _names()]


def run_admm(fold: Fold, spec: Spec, choices: Choices) -> list[Row]:
    """The distributed fits of `run_fits` by the paper's ADMM, at most ``max_rounds`` of either stage."""
    solver = replace(PRINTED, tol=spec.tol, max_rounds=spec.max_rounds)
    rounds = SharedRounds(fold)
    return [_fit(fold, spec, "distributed", name, choices, solver, rounds) for name in _names()]


def _names() -> list[str]:
    return [method.name for method in METHODS.values()]


def _fit(
    fold: Fold, spec: Spec, setting: str, name: str, choices: Choices, solver: Solver, rounds: SharedRounds
) -> Row:
    ridge, weight = choices[fold.unit.dataset, setting, name]
    estimator = make_estimator(name, spec, ridge=ridge, weight=weight, random_state=fold.seed, solver=solver)
    targets = fold.y if METHODS[name.lower()].needs_all_labels else fold.known
    owners = fold.owners if setting == "distributed" else None
    estimator, seconds = rounds.fit(estimator, targets, owners)
    stages = [info.stage for info in estimator.history_]
    return {
        "setting": setting,
        "method": name,
        "ridge": ridge,
        "weight": weight,
        "nrmse": round(nrmse(fold.y_test, estimator.predict(fold.X_test)), 6),
        "seconds": round(seconds, 4),
        "cluster_rounds": stages.count("clusters"),
        "weight_rounds": stages.count("weights"),
        "rounds": estimator.n_rounds_,
        "kilobytes": round(estimator.ledger_.bytes / 1e3, 1),
        "converged": estimator.termination_ == solver.ending,
    }


def make_estimator(
    name: str, spec: Spec, *, ridge: float, weight: float, random_state: int, solver: Solver | None = None
) -> Any:
    """The estimator of a method with the protocol's settings; without a solver, with the default one."""
    method = METHODS[name.lower()]
    shared: dict[str, Any] = {
        "ridge": ridge,
        "solver": solver or Conjugate(tol=spec.tol),
        "random_state": random_state,
    }
    if method.penalty is not None:
        shared["unlabeled"] = method.penalty(weight=weight)
    if method.has_rules:
        return method.make(n_rules=spec.rules, rules=FuzzyRules(fuzzifier=spec.fuzzifier), **shared)
    return method.make(n_nodes=spec.nodes, **shared)
