"""Convergence histories of clusters and weights: the paper's ADMM, accelerated ADMM, and the default.

The paper's ADMM runs for all ``max_rounds``: its stopping tests, and the change of the loss, are evaluated afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import ClusterSums
from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.scaling.affine import scale_features
from dsfr.estimators.metrics import nrmse
from dsfr.paper.experiments.folds import Fold
from dsfr.paper.experiments.pooled import Agents
from dsfr.paper.experiments.spec import Spec
from dsfr.paper.experiments.table import PRINTED, Choices, Row
from dsfr.training import ADMM, ICR, Conjugate, Sums
from dsfr.training.clustering.clusters import agree_rules
from dsfr.training.solvers import IterativeSolver
from dsfr.training.weights.weights import agree_weights

VARIANTS: dict[str, IterativeSolver] = {"paper": PRINTED, "anderson": ADMM(), "conjugate": Conjugate()}
NEVER = 1e-300
"""Threshold that no iterate reaches."""


def run_convergence(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """Objective per round of both stages, beside its value at the pooled solution."""
    return [row for variant in VARIANTS for row in _rounds_of(fold, spec, variant)]


def _rounds_of(fold: Fold, spec: Spec, variant: str) -> Iterator[Row]:
    tol = NEVER if variant == "paper" else spec.tol
    solver = replace(VARIANTS[variant], tol=tol, max_rounds=spec.max_rounds)
    options = {"solver": solver, "ridge": spec.ridge, "unlabeled": ICR(weight=spec.consistency)}
    agents = Agents.of_fold(fold, spec, fold.owners, fold.known, **options)
    settings = agents.settings
    history: list[RoundInfo] = []
    rules, shares, _ = agree_rules(agents.engine, settings, agents.population, history.append)
    X = scale_features(fold.X, agents.population.ranges)
    pooled = ClusterSums.of(X, rules.centers, spec.fuzzifier).objective
    yield from _rows(variant, history, pooled, spec.tol, {})
    population, rounds, solution = agents.population, list[RoundInfo](), list[RoundInfo]()
    found = agree_weights(agents.engine, settings, rules, population, rounds.append, shares=shares).weights
    exact = agree_weights(agents.engine, replace(settings, solver=Sums()), rules, population, solution.append).weights
    ends = {
        "weights_error": round(float(np.linalg.norm(found - exact) / np.linalg.norm(exact)), 8),
        "nrmse": _error(fold, agents, rules, found),
        "nrmse_pooled": _error(fold, agents, rules, exact),
    }
    yield from _rows(variant, rounds, solution[0].objective, spec.tol, ends)


def _rows(variant: str, history: list[RoundInfo], pooled: float, tol: float, ends: dict[str, float]) -> Iterator[Row]:
    """The first 20 rounds and about 30 later ones; the last row has the final errors, and when tests were passed."""
    marks = {*range(1, 21), *np.geomspace(20, len(history), 30).astype(int).tolist(), len(history)}
    last_row = {**dict.fromkeys(("weights_error", "nrmse", "nrmse_pooled")), **ends, **stopping_rounds(history, tol)}
    for info in history:
        if info.round not in marks:
            continue
        last = info.round == len(history)
        yield {
            "variant": variant,
            "stage": info.stage,
            "round": info.round,
            "objective": float(f"{info.objective:.8g}"),
            "objective_pooled": float(f"{pooled:.8g}"),
            "primal_residual": float(f"{info.primal_residual:.4g}"),
            "difference": float(f"{info.error_bound:.4g}"),
            "last": last,
            **{name: value if last else None for name, value in last_row.items()},
        }


def stopping_rounds(history: list[RoundInfo], tol: float) -> dict[str, int | None]:
    """First rounds in which the solver's test is passed, and in which the loss changes by at most ``tol``."""
    changes = [(after, abs(after.objective - before.objective)) for before, after in pairwise(history)]
    return {
        "stopped": next((info.round for info in history if info.error_bound <= tol), None),
        "loss_settled": next((info.round for info, change in changes if change <= tol), None),
        "loss_settled_relative": next(
            (info.round for info, change in changes if change <= tol * abs(info.objective)), None
        ),
    }


def _error(fold: Fold, agents: Agents, rules: Rules, weights: Array) -> float:
    population = agents.population
    H = rules.features(scale_features(fold.X_test, population.ranges))
    return round(nrmse(fold.y_test, population.target_mean + population.target_scale * (H @ weights)), 6)
