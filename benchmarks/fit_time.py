"""Seconds of one SFR-ICR fit with as many pairs as rows, on one core.

scikit-learn's gradient boosting is measured to show the speed of the machine; it is not the same work: it learns from
all 17,290 labels, SFR-ICR from 50 and the unlabelled rest.

    DSFR_DATA_HOME=... python -m benchmarks.fit_time
"""

import os
import time
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

import dsfr
from benchmarks import MISSED
from benchmarks.tables import load
from dsfr.paper.datasets import hide_labels

TO_REACH = 1.0
REPEATS = 5


def median_seconds(fit: Callable[[], object]) -> float:
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        fit()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def main() -> None:
    os.environ["DSFR_THREADS"] = "1"
    X, y, _ = load("kch")
    train = np.random.default_rng(0).permutation(len(y))[:17_290]
    X, y = X[train], y[train]
    few = hide_labels(y, 50, np.random.default_rng(0))
    whole, part = dsfr.ICR(n_pairs=len(y)), dsfr.ICR(n_pairs=len(y) // 5)
    fits = {
        "SFR-ICR, centralised": lambda: dsfr.SFRRegressor(unlabeled=whole, random_state=0).fit(X, few),
        "SFR-ICR, 5 agents, sums": lambda: dsfr.SFRRegressor(
            unlabeled=part, n_agents=5, solver="sums", random_state=0
        ).fit(X, few),
        "SFR-ICR, 5 agents, conjugate": lambda: dsfr.SFRRegressor(
            unlabeled=part, n_agents=5, solver="conjugate", random_state=0
        ).fit(X, few),
        "HistGradientBoostingRegressor, all labels": lambda: HistGradientBoostingRegressor().fit(X, y),
    }
    print(f"dsfr {dsfr.__version__}, kch, {X.shape[0]} rows x {X.shape[1]} features, one core, median of {REPEATS}\n")
    with threadpool_limits(1):
        seconds = {name: median_seconds(fit) for name, fit in fits.items()}
    for name, value in seconds.items():
        print(f"{name:<44} {value:>8.3f} s")
    reached = max(seconds["SFR-ICR, centralised"], seconds["SFR-ICR, 5 agents, sums"]) < TO_REACH
    print(f"\nunder {TO_REACH:g} s centralised and by sums: {'yes' if reached else 'NO'}")
    raise SystemExit(0 if reached else MISSED)


if __name__ == "__main__":
    main()
