"""Sweeps over one setting with the others fixed: ADMM penalties, pairs, rules, agents."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.penalties.interpolation_consistency import Pairs, gap_gram
from dsfr.core.scaling.affine import scale_features
from dsfr.estimators.metrics import nrmse
from dsfr.paper.datasets import hide_labels_by_agent
from dsfr.paper.experiments.folds import Fold, owners_by
from dsfr.paper.experiments.pooled import Agents, Problem
from dsfr.paper.experiments.spec import Spec
from dsfr.paper.experiments.table import Choices, Row, make_estimator
from dsfr.training import ADMM, ICR
from dsfr.training.shard import Purpose
from dsfr.training.weights.weights import agree_weights

PLAIN = ADMM(acceleration=None, cluster_penalty=0.1, penalty=0.1)
"""The paper's plain ADMM with rho_s = rho_p = 0.1."""


def run_penalties(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """Plain ADMM of the paper with one of its two penalties varied, stopped after ``max_rounds``."""
    plain = replace(PLAIN, tol=spec.tol, max_rounds=spec.max_rounds)
    options = {"solver": plain, "ridge": spec.ridge, "unlabeled": ICR(weight=spec.consistency)}
    agents = Agents.of_fold(fold, spec, fold.owners, fold.known, **options)
    rows = []
    usual = agents.rules()
    for value in spec.grid:
        rows.append(_plain_fit(fold, agents, "rho_p", value, usual, replace(plain, penalty=value)))
        rules = agents.rules(replace(plain, cluster_penalty=value))
        rows.append(_plain_fit(fold, agents, "rho_s", value, rules, plain))
    return rows


def _plain_fit(fold: Fold, agents: Agents, parameter: str, value: float, rules: Rules, solver: ADMM) -> Row:
    population, settings = agents.population, replace(agents.settings, solver=solver)
    found = agree_weights(agents.engine, settings, rules, population, lambda _: None)
    H = rules.features(scale_features(fold.X_test, agents.population.ranges))
    error = nrmse(fold.y_test, population.target_mean + population.target_scale * (H @ found.weights))
    return {"parameter": parameter, "value": value, "nrmse": round(error, 6), "converged": found.converged}


def run_pairs(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """SFR-ICR over numbers of pairs per agent; the pairs of a smaller number are among those of a larger one."""
    agents = Agents.of_fold(fold, spec, fold.owners, fold.known)
    rules = agents.rules()
    labeled_part = agents.statistics(rules, None)
    rows, gap = [], np.zeros_like(labeled_part.gram)
    for value, new in _growing_grams(fold, agents, rules, sorted(spec.values)):
        gap = gap + new
        problem = Problem(agents.population, rules, replace(labeled_part, unlabeled_gram=gap))
        error = problem.errors(fold, [(spec.ridge, spec.consistency)])[0]
        rows.append({"pairs": value, "nrmse": round(error, 6)})
    return rows


def _growing_grams(fold: Fold, agents: Agents, rules: Rules, values: list[int]) -> Iterator[tuple[int, Array]]:
    """For every number of pairs, the increment of ``B'B`` over the number before, summed over agents."""
    holders = np.unique(fold.owners)
    X = scale_features(fold.X, agents.population.ranges)
    hidden = np.isnan(fold.known)
    rows = [X[hidden & (fold.owners == holder)] for holder in holders]
    concentration = agents.settings.penalty.concentration
    drawn = [
        Pairs.draw(len(own), values[-1], concentration, fold.rng(Purpose.PAIRS, holder))
        for own, holder in zip(rows, holders.tolist(), strict=True)
    ]
    for low, high in zip([0, *values], values, strict=False):
        parts = [Pairs(pairs.first[low:high], pairs.second[low:high], pairs.mix[low:high]) for pairs in drawn]
        grams = [gap_gram(own, part, rules) for own, part in zip(rows, parts, strict=True)]
        yield high, np.sum(grams, axis=0)


def run_rules(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """Distributed SFR-ICR over numbers of rules, for several numbers of labels."""
    counts = spec.label_counts or (spec.labels,)
    known = {count: hide_labels_by_agent(fold.y, fold.owners, count, fold.rng(count)) for count in counts}
    rows = []
    for value in spec.values:
        rules = None
        for count, targets in known.items():
            agents = Agents.of_fold(fold, spec, fold.owners, targets, n_rules=value)
            # Clusters do not depend on labels.
            rules = rules or agents.rules()
            problem = Problem(agents.population, rules, agents.statistics(rules, "icr"))
            error = problem.errors(fold, [(spec.ridge, spec.consistency)])[0]
            rows.append({"rules": value, "labels": count, "nrmse": round(error, 6)})
    return rows


def run_agents(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """Full fits of SFR-ICR over numbers of agents and partitions, with a fixed total number of labels."""
    return [
        _fit_over(fold, spec, partition, value)
        for partition in spec.partitions
        for value in spec.values or (spec.agents,)
    ]


def _fit_over(fold: Fold, spec: Spec, partition: str, n_agents: int) -> Row:
    rng = fold.rng(n_agents)
    owners = owners_by(partition, fold, n_agents, rng)
    known = hide_labels_by_agent(fold.y, owners, spec.labels, rng)
    estimator = make_estimator("SFR-ICR", spec, ridge=spec.ridge, weight=spec.consistency, random_state=fold.seed)
    start = time.process_time()
    estimator.fit(fold.X, known, agents=owners)
    return {
        "partition": partition,
        "agents": n_agents,
        "nrmse": round(nrmse(fold.y_test, estimator.predict(fold.X_test)), 6),
        "seconds": round(time.process_time() - start, 4),
        "rounds": estimator.n_rounds_,
        "kilobytes": round(estimator.ledger_.bytes / 1e3, 1),
        "converged": estimator.termination_ == "converged",
    }
