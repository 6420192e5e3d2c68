"""Time and bytes of one round of DFCM and DICR as rows, features, rules and agents grow."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from dsfr.core.features.takagi_sugeno import Rules
from dsfr.engines import InProcessEngine
from dsfr.paper.experiments.folds import Fold
from dsfr.paper.experiments.spec import Spec
from dsfr.paper.experiments.table import PRINTED, Choices, Row
from dsfr.training import TASKS, Settings, make_shards
from dsfr.training.clustering.clusters import agree_rules
from dsfr.training.scaling.survey import survey
from dsfr.training.weights.weights import agree_weights

USUAL = {"features": 8, "rules": 5, "agents": 5}
VALUES = {"features": (8, 64, 256), "rules": (5, 20, 80), "agents": (5, 10, 20)}
"""Sizes that are varied one at a time, the others being the usual ones."""
N_ROUNDS = 5
"""Rounds of every stage, after a first one that is not counted: it prepares statistics and factors."""


def run_complexity(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """Processor seconds and kilobytes per round; rows are drawn at random, so the data set does not matter."""
    values = {"rows": spec.values, **VALUES}
    varied = [(name, value) for name, chosen in values.items() for value in chosen]
    return [row for name, value in varied for row in _measured(name, value, fold, spec)]


def _measured(name: str, value: int, fold: Fold, spec: Spec) -> list[Row]:
    usual = {"rows": sorted(spec.values)[len(spec.values) // 2], **USUAL}
    sizes = usual | {name: value}
    rng = fold.rng(value)
    X = rng.uniform(-1.0, 1.0, (sizes["rows"], sizes["features"]))
    owners = np.arange(len(X)) % sizes["agents"]
    y = np.where(np.arange(len(X)) < 10 * sizes["agents"], X.sum(axis=1), np.nan)
    engine = InProcessEngine(list(make_shards(X, y, owners).values()), TASKS)
    solver = replace(PRINTED, tol=1e-300, max_rounds=N_ROUNDS + 1)
    settings = Settings(n_rules=sizes["rules"], solver=solver, unlabeled=None, ridge=spec.ridge, seed=fold.seed)
    clock = _Clock()
    population = survey(engine, settings)
    rules, _, _ = agree_rules(engine, settings, population, clock.tick)
    wide = Rules(rules.centers, np.full_like(rules.widths, 0.5))
    agree_weights(engine, settings, wide, population, clock.tick)
    return [
        {
            "parameter": name,
            "value": value,
            "stage": stage,
            "kilobytes": round(_bytes_per_round(engine, task) / 1e3, 3),
            "seconds": float(f"{clock.seconds(stage):.3g}"),
        }
        for stage, task in (("clusters", "dfcm_round"), ("weights", "dicr_round"))
    ]


class _Clock:
    """Processor time between rounds, by stage."""

    def __init__(self) -> None:
        self.times: dict[str, list[float]] = {"clusters": [], "weights": []}

    def tick(self, info: object) -> None:
        self.times[str(getattr(info, "stage", ""))].append(time.process_time())

    def seconds(self, stage: str) -> float:
        """The shortest round: others are disturbed by what else the machine does."""
        return float(np.diff(self.times[stage]).min())


def _bytes_per_round(engine: InProcessEngine, task: str) -> float:
    entry = engine.ledger.entries[task, "gather"]
    return (entry.bytes_down + entry.bytes_up) / entry.rounds
