"""The paper's comparison on a small table: five methods, centralised and distributed, on the diabetes data."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold

from dsfr.core.arrays import Array, IntArray
from dsfr.estimators import SFRRegressor
from dsfr.estimators.methods import METHODS, Method
from dsfr.estimators.metrics import nrmse
from dsfr.model.model import Model
from dsfr.paper.datasets import hide_labels, split_evenly

N_AGENTS = 5
LABELS_PER_AGENT = 10
N_FOLDS = 5
N_FITS = 2 * N_FOLDS * len(METHODS)


@dataclass(frozen=True, slots=True)
class Fit:
    """One method fitted on one fold."""

    method: str
    n_agents: int
    fold: int
    nrmse: float
    seconds: float
    rounds: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Rows divided between agents, with few labels each."""

    X: Array
    y: Array
    agents: IntArray
    known: Array
    """Targets with `LABELS_PER_AGENT` labels per agent, NaN elsewhere."""


def diabetes() -> tuple[Array, Array, list[str]]:
    """scikit-learn's diabetes data in original units, with the names of the features."""
    data = load_diabetes(scaled=False)
    return data.data.astype(np.float64), data.target.astype(np.float64), list(data.feature_names)


def distribute(X: Array, y: Array, seed: int) -> TrainingSet:
    """Divide rows evenly between agents and hide all but a few labels of each."""
    rng = np.random.default_rng(seed)
    agents = split_evenly(len(y), N_AGENTS, rng)
    known = np.empty_like(y)
    for agent in range(N_AGENTS):
        known[agents == agent] = hide_labels(y[agents == agent], LABELS_PER_AGENT, rng)
    return TrainingSet(X, y, agents, known)


def compare(seed: int, step: Callable[[], None]) -> list[Fit]:
    """Fit every method on every fold, centralised and distributed, on the same rows and labels."""
    X, y, _ = diabetes()
    fits = []
    for fold, (train, test) in enumerate(KFold(N_FOLDS, shuffle=True, random_state=seed).split(X)):
        data = distribute(X[train], y[train], seed + fold)
        for method in METHODS.values():
            for n_agents in (1, N_AGENTS):
                fits.append(_fit(method, n_agents, fold, data, X[test], y[test], seed))
                step()
    return fits


def summarize(fits: list[Fit]) -> list[list[str]]:
    """One row of text per method: centralised error and time, distributed error, time, rounds and kilobytes."""
    return [
        [method.name, *_cells(fits, method.name, 1)[:2], *_cells(fits, method.name, N_AGENTS)]
        for method in METHODS.values()
    ]


def train_model(seed: int) -> Model:
    """Train the distributed SFR-ICR model on the whole table."""
    X, y, names = diabetes()
    data = distribute(X, y, seed)
    estimator = SFRRegressor(random_state=seed).fit(X, data.known, agents=data.agents)
    return estimator.model_.renamed(names, "progression")


def _fit(method: Method, n_agents: int, fold: int, data: TrainingSet, X_test: Array, y_test: Array, seed: int) -> Fit:
    targets = data.y if method.needs_all_labels else data.known
    owners = data.agents if n_agents > 1 else None
    estimator = method.make(random_state=seed)
    start = time.perf_counter()
    estimator.fit(data.X, targets, agents=owners)
    seconds = time.perf_counter() - start
    error = nrmse(y_test, estimator.predict(X_test))
    ledger = estimator.ledger_
    return Fit(method.name, n_agents, fold, error, seconds, ledger.rounds, ledger.bytes)


def _cells(fits: list[Fit], method: str, n_agents: int) -> list[str]:
    chosen = [fit for fit in fits if fit.method == method and fit.n_agents == n_agents]
    errors = [fit.nrmse for fit in chosen]
    return [
        f"{np.mean(errors):.3f} ± {np.std(errors, ddof=1):.3f}",
        f"{np.mean([fit.seconds for fit in chosen]):.3f}",
        f"{np.mean([fit.rounds for fit in chosen]):.0f}",
        f"{np.mean([fit.bytes for fit in chosen]) / 1e3:.1f}",
    ]
