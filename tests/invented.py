"""Invented results with the shape of real ones, for tests of what is made of results."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np

from dsfr.paper.experiments.complexity import VALUES
from dsfr.paper.experiments.deviations import ALL, DEVIATIONS
from dsfr.paper.experiments.folds import units
from dsfr.paper.experiments.results import Store
from dsfr.paper.experiments.run import open_stores
from dsfr.paper.experiments.spec import Spec, read_specs

EXPERIMENTS = Path(__file__).parent.parent / "experiments"
METHODS = {"FR": 0.6, "LapWNN": 1.0, "s-SFR": 0.9, "SFR-G": 0.8, "SFR-ICR": 0.7}
SETTINGS = ("centralised", "distributed")


def invent(folder: Path, seed: int = 0) -> Path:
    """Complete results of a quick run of all experiments, with random numbers in them."""
    rng = np.random.default_rng(seed)
    for store in open_stores(read_specs(EXPERIMENTS, quick=True), folder):
        fill(store, rng)
    return folder


def fill(store: Store, rng: np.random.Generator) -> None:
    store.begin()
    for unit in units(store.spec):
        store.write(unit, rows_of(store.spec, rng), 1.0)
    store.finish(jobs=2, wall_seconds=1.0)


def rows_of(spec: Spec, rng: np.random.Generator) -> list[dict]:
    error = {"nrmse": 0.0}
    fitted = {"seconds": 0.1, "rounds": 30, "kilobytes": 100.0, "converged": True}
    grid = {"FR": [0.0], "s-SFR": [0.0], "LapWNN": spec.grid, "SFR-G": spec.grid, "SFR-ICR": spec.grid}
    shapes = {
        "grid": [
            {"setting": s, "method": m, "ridge": r, "weight": w, "loo": float(rng.random()), "nrmse": METHODS[m]}
            for s in SETTINGS
            for m in METHODS
            for r, w in product(spec.grid, grid[m])
        ],
        "fits": [
            {"setting": s, "method": m, "ridge": 0.1, "weight": 0.1 if len(grid[m]) > 1 else 0.0, "nrmse": METHODS[m]}
            | fitted
            | {"cluster_rounds": 10, "weight_rounds": 20}
            for s in SETTINGS
            for m in METHODS
        ],
        "admm": [
            {"method": m, "ridge": 0.1, "weight": 0.1, "nrmse": METHODS[m], **fitted}
            | {"cluster_rounds": 300, "weight_rounds": 300}
            for m in METHODS
        ],
        "deviations": [
            {"deviation": name, "diverged": False, "nrmse_paper": 0.7, "nrmse_ours": 0.6, "predictions_apart": 0.1}
            | {"centers_apart": 0.1, "rounds_paper": 605, "rounds_ours": 30, "nrmse": 0.0}
            for name in (*DEVIATIONS, ALL)
        ],
        "complexity": [
            {"parameter": name, "value": value, "stage": stage, "kilobytes": 1.0 * value, "seconds": 0.1 * value}
            for name, values in {"rows": spec.values, **VALUES}.items()
            for value in values
            for stage in ("clusters", "weights")
        ],
        "baselines": [
            {"method": name, "alpha": alpha, "nrmse": 0.7, "loo": loo, "seconds": 0.01}
            for name, alpha, loo in [
                *(("ridge", alpha, float(rng.random())) for alpha in spec.alphas),
                *((name, 0.0, None) for name in ("Gaussian process", "Gaussian process, ARD", "random forest")),
            ]
        ],
        "convergence": [
            {"variant": v, "stage": s, "round": r, "objective": 1 + 1 / r, "objective_pooled": 1.0, "last": r == 40}
            | {"primal_residual": 0.1, "difference": 0.1}
            | {name: 30 if r == 40 else None for name in ("stopped", "loss_settled", "loss_settled_relative")}
            | {name: 0.5 if r == 40 else None for name in ("weights_error", "nrmse_pooled", "nrmse")}
            for v in ("paper", "anderson", "conjugate")
            for s in ("clusters", "weights")
            for r in (1, 2, 10, 40)
        ],
        "penalties": [
            {"parameter": p, "value": v, "converged": False} | error for p in ("rho_p", "rho_s") for v in spec.grid
        ],
        "pairs": [{"pairs": value} | error for value in spec.values],
        "rules": [{"rules": value, "labels": count} | error for value in spec.values for count in spec.label_counts],
        "agents": [
            {"partition": p, "agents": v} | error | fitted
            for p in spec.partitions
            for v in spec.values or (spec.agents,)
        ],
    }
    rows = shapes[spec.kind]
    if spec.kind not in ("convergence", "complexity"):
        for row in rows:
            row["nrmse"] = row["nrmse"] + 0.2 + 0.1 * float(rng.random())
    return rows
