"""Messages of real trainings, task by task: what fuzzing starts from."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

from dsfr.core.density import MOST_CORRELATED
from dsfr.core.sampling import SAMPLE_ROWS
from dsfr.engines import Absence, Faults, InProcessEngine
from dsfr.training import ADMM, TASKS, RangeScaling, make_shards, train
from dsfr.training.distillation.distill import distill
from dsfr.training.distillation.settings import StudentSettings
from dsfr.training.ensemble.effect_member import CLEARLY_HIGHER
from dsfr.training.ensemble.triples import LEAST_LABELS as LABELS_FOR_TRIPLES
from tests.tables import SumsAlone, make_settings, make_table

PRINTED = {"solver": ADMM(acceleration=None, penalty=1.0, cluster_penalty=1.0, stopping="paper")}
COUNTED = {"cluster_rows": "nearest", "membership_exponent": 1.0}
EFFECTS = {"tune": "evidence", "uncertainty": True, "scaling": "robust", "n_models": 2, "effects": "pairs"}
SUMMED_EFFECTS = {"tune": "evidence", "n_models": 1, "effects": "pairs", "declared": True, "only_sums": True}
TRIPLES = {**EFFECTS, "effects": "triples", "triples": True, "n_features": 3}
LEVELS = {**TRIPLES, "effects": "levels", "few_values": True}
EVERY_KIND = [
    {},
    {"solver": "admm"},
    {"solver": "admm", "acceleration": None, "penalty": 1.0, "refresh_pairs": True},
    {"solver": "admm", "acceleration": None, "penalty": 1.0, "refresh_pairs": True, "pairs": "local"},
    {"basis": "wavelets", "n_nodes": 8, "unlabeled": "graph", "solver": "admm"},
    {"basis": "wavelets", "n_nodes": 8, "solver": "admm", "acceleration": None, "refresh_pairs": True},
    {"solver": "sums", "width_pooling": "paper", "unlabeled": "graph", "n_neighbors": 3},
    {"solver": "admm", "cluster_penalty": 1.0, "width_pooling": "paper", "unlabeled": None},
    {"solver": "few-rounds"},
    {"solver": "few-rounds", "declared": True},
    {"tune": "evidence", "uncertainty": True, "scaling": "robust", "relevance": "evidence", "n_models": 3},
    {"tune": "loo", "n_models": 3, "pairs": "local", "uncertainty": True},
    {"relevance": "slopes", "solver": "admm", "acceleration": None, "penalty": 1.0},
    {"relevance": "slopes", "pairs": "local"},
    {"relevance": "slopes", "tune": "loo", "unlabeled": "graph"},
    {"basis": "wavelets", "n_nodes": 8, "unlabeled": "graph"},
    {"basis": "wavelets", "n_nodes": 8, "tune": "loo"},
    {"tune": "loo", "n_models": 3, "uncertainty": True, "repeated": True, "scaling": "robust"},
    {"tune": "evidence", "repeated": True},
    {"membership": "bell"},
    {"membership": "bell", "solver": "admm", "acceleration": None, "penalty": 1.0, "refresh_pairs": True},
    {"membership": "bell", "tune": "loo", "n_models": 2, "relevance": "slopes", "uncertainty": True},
    {"membership": "bell", "solver": "sums"},
    {**PRINTED, **COUNTED, "refresh_pairs": True, "init": "random", "width_pooling": "paper"},
    {**PRINTED, "refresh_pairs": True, "pairs": "local", "membership": "bell"},
    {**PRINTED, "refresh_pairs": True, "relevance": "slopes"},
    {**PRINTED, "refresh_pairs": True, "relevance": "slopes", "pairs": "local"},
    {**PRINTED, "basis": "wavelets", "n_nodes": 8, "refresh_pairs": True},
    {**COUNTED, "solver": "admm"},
    {**COUNTED, "solver": "sums"},
    {**COUNTED, "solver": "few-rounds"},
    {"solver": "sums", "declared": True, "only_sums": True},
    {"solver": "private-sums", "unlabeled": None, "membership": "bell", "declared": True, "only_sums": True},
    {"relevance": "slopes", "tune": "evidence", "declared": True, "only_sums": True},
    {"tune": "evidence", "uncertainty": True, "scaling": "robust", "n_models": 3, "student": {"max_rules": 3}},
    {"tune": "evidence", "student": {"max_rules": 4, "max_terms": 1}, "n_features": 14},
    {"tune": "evidence", "uncertainty": True, "membership": "bell", "student": {"max_rules": 2}},
    {"tune": "evidence", "uncertainty": True, "repeated": True, "scaling": "robust", "student": {"max_rules": 2}},
    {"tune": "evidence", "uncertainty": True, "no_signal": True, "student": {"max_rules": 2}},
    EFFECTS,
    {"tune": "loo", "n_models": "auto", "effects": "single"},
    {"tune": "evidence", "uncertainty": True, "n_models": 0, "effects": "pairs", "repeated": True},
    {**EFFECTS, "student": {"max_rules": 3}},
    {**EFFECTS, "student": {"max_rules": 2}, "sample_rows": 10},
    {**SUMMED_EFFECTS, "student": {"max_rules": 2}},
    {**SUMMED_EFFECTS, "membership": "bell"},
    {"solver": "sums", "gaps": 0.2},
    {"solver": "sums", "gaps": 0.2, "declared": True, "only_sums": True},
    {"solver": "sums", "gaps": 0.2, "scaling": RangeScaling(lower=(-9.0,) * 2, upper=(9.0,) * 2)},
    {"solver": "sums", "gaps": 0.2, "n_features": MOST_CORRELATED + 1},
    {**EFFECTS, "gaps": 0.2, "student": {"max_rules": 2}},
    {"solver": "few-rounds", "weighted": True},
    {**EFFECTS, "student": {"max_rules": 3}, "weighted": True},
    {**EFFECTS, "target": "log", "n_models": 0, "effects": "single", "student": {"max_rules": 2}},
    {"tune": "evidence", "target": "log", "membership": "bell", "repeated": True},
    {**TRIPLES, "student": {"max_rules": 2}},
    {**TRIPLES, "target": "log", "n_models": 0, "student": {"max_rules": 2}},
    {**LEVELS, "student": {"max_rules": 2}},
    {**LEVELS, "target": "log", "n_models": 0, "student": {"max_rules": 2}},
]
"""Settings that together use every task, and every optional array of one."""
PER_TASK = 6
"""Calls that are kept of each task with the same arrays."""


@dataclass(frozen=True)
class Call:
    """One run of a task, and what came of it."""

    task: str
    shard: Any
    memory: dict[str, Any]
    broadcast: dict[str, Any]
    kept: dict[str, Any]
    contribution: dict[str, Any]


def record(calls: list[Call], n_features: int = 2, faults: Faults | None = None, **told: Any) -> InProcessEngine:
    """Train, and append all runs of tasks."""
    X, _, y = make_table(0, n_rows=45, n_features=n_features, n_labels=18)
    if told.pop("few_values", False):
        X[:, 0] = np.round(2.0 * X[:, 0])
    if told.pop("no_signal", False):
        y = np.where(np.isnan(y), np.nan, np.random.default_rng(2).normal(size=len(y)))
    if told.pop("declared", False):
        target = (np.nanmin(y), np.nanmax(y))
        told["scaling"] = RangeScaling(lower=tuple(X.min(axis=0)), upper=tuple(X.max(axis=0)), target_range=target)
    X[np.random.default_rng(1).random(X.shape) < told.pop("gaps", 0.0)] = np.nan
    owners = np.arange(len(y)) % 3
    if told.pop("repeated", False):
        X, y, owners = with_repetitions(X, y, owners)
    weights = np.arange(1.0, len(y) + 1.0) / len(y) if told.pop("weighted", False) else None
    shards = make_shards(X, y, owners, weights)

    def recorded(name, task):
        def run(shard, memory, broadcast):
            kept, contribution = task(shard, memory, broadcast)
            calls.append(Call(name, shard, memory, broadcast, kept, contribution))
            return kept, contribution

        return run

    tasks = {name: recorded(name, task) for name, task in TASKS.items()}
    kind = SumsAlone if told.pop("only_sums", False) else InProcessEngine
    engine = kind(shards, tasks, serialize=True, faults=faults)
    engine.sum("identify", {})
    student = told.pop("student", None)
    # With few labels and whatever the evidence, where products of three features or levels are asked for.
    n_labels, higher = (1.0, -np.inf) if told.pop("triples", False) else (LABELS_FOR_TRIPLES, CLEARLY_HIGHER)
    with ExitStack() as changed:
        for name, value in {
            "core.sampling.SAMPLE_ROWS": told.pop("sample_rows", SAMPLE_ROWS),
            "training.ensemble.triples.LEAST_LABELS": n_labels,
            "training.ensemble.effect_member.CLEARLY_HIGHER": higher,
            "training.ensemble.levels.LEAST_LABELS": n_labels,
            "training.ensemble.levels.MORE_THAN_CHANCE": higher,
        }.items():
            changed.enter_context(patch(f"dsfr.{name}", value))
        training = train(engine, make_settings(n_rules=2, max_rounds=6, **told))
    if student is not None:
        distill(engine, training, StudentSettings(**student))
    return engine


def with_repetitions(X, y, owners):
    """A table with duplicates at their owner, labels of equal features, and labelled rows of two agents."""
    labeled, unlabeled = np.flatnonzero(~np.isnan(y)), np.flatnonzero(np.isnan(y))
    replicates, duplicates, shared = labeled[:5], np.append(unlabeled[:12], labeled[5]), labeled[6:]
    rows = np.concatenate([np.arange(len(y)), duplicates, replicates, shared])
    y, owners = y[rows], owners[rows]
    y[-len(replicates) - len(shared) : -len(shared)] += 1.0
    owners[-len(shared) :] = (owners[-len(shared) :] + 1) % 3
    return X[rows], y, owners


@cache
def all_calls() -> list[Call]:
    """All runs of tasks in trainings of every kind."""
    calls: list[Call] = []
    for told in EVERY_KIND:
        record(calls, **told)
    for agent in ("0", "1", "2"):  # one of them proposes the start: without it, others draw tickets
        record(calls, faults=Faults(absences=[Absence(agent, 1, 1, task="start_centers")]))
    return calls


@cache
def some_calls() -> dict[str, list[Call]]:
    """A few runs of every task, with different arrays."""
    kept: dict[tuple[str, ...], list[Call]] = {}
    for call in all_calls():
        kept.setdefault((call.task, *sorted(call.broadcast), *sorted(call.memory)), []).append(call)
    found: dict[str, list[Call]] = {}
    for (task, *_), calls in kept.items():
        found.setdefault(task, []).extend(calls[:: max(len(calls) // PER_TASK, 1)][:PER_TASK])
    return found
