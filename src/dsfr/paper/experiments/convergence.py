"""Convergence histories of clusters and weights: plain ADMM of the paper, accelerated ADMM, and the default."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

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
from dsfr.paper.experiments.sweeps import PLAIN
from dsfr.paper.experiments.table import Choices, Row
from dsfr.training import ADMM, ICR, Conjugate, Sums
from dsfr.training.clustering.clusters import agree_rules
from dsfr.training.solvers import IterativeSolver
from dsfr.training.weights.weights import agree_weights

VARIANTS: dict[str, IterativeSolver] = {"paper": PLAIN, "anderson": ADMM(), "conjugate": Conjugate()}


def run_convergence(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """Objective per round of both stages, beside its value at the pooled solution."""
    return [row for variant in VARIANTS for row in _rounds_of(fold, spec, variant)]


def _rounds_of(fold: Fold, spec: Spec, variant: str) -> Iterator[Row]:
    solver = replace(VARIANTS[variant], tol=spec.tol, max_rounds=spec.max_rounds)
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
    """The first 20 rounds and about 30 later ones; the last row has the final errors."""
    marks = {*range(1, 21), *np.geomspace(20, len(history), 30).astype(int).tolist(), len(history)}
    stopped = next((info.round for info in history if _converged(info, tol)), None)
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
            "last": last,
            "stopped": stopped if last else None,
            "weights_error": ends.get("weights_error") if last else None,
            "nrmse": ends.get("nrmse") if last else None,
            "nrmse_pooled": ends.get("nrmse_pooled") if last else None,
        }


def _converged(info: RoundInfo, tol: float) -> bool:
    """Whether both residuals are below the threshold.

    The first round does not count, because the consensus has not moved yet. Solvers other than ADMM have no residuals.
    """
    return info.round > 1 and 0.0 < info.primal_residual <= tol and info.dual_residual <= tol


def _error(fold: Fold, agents: Agents, rules: Rules, weights: Array) -> float:
    population = agents.population
    H = rules.features(scale_features(fold.X_test, population.ranges))
    return round(nrmse(fold.y_test, population.target_mean + population.target_scale * (H @ weights)), 6)
