"""A table that comes with scikit-learn, few labels, five owners: the recommended model beside others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.datasets import load_wine
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsfr.core.arrays import Array, IntArray
from dsfr.estimators import RuleRegressor
from dsfr.estimators.methods import METHODS
from dsfr.estimators.metrics import nrmse
from dsfr.model.model import Model
from dsfr.paper.datasets import hide_labels, split_evenly

TARGET = "flavanoids"
N_AGENTS = 5
LABELS_PER_AGENT = 10
N_FOLDS = 5
COVERAGE = 0.9
RULES = "RuleRegressor"


@dataclass(frozen=True, slots=True)
class Competitor:
    """One method of the comparison."""

    name: str
    make: Callable[[int], Any]
    """The estimator with a seed."""
    over_owners: bool = True
    """Whether it trains over owners; other methods need all rows in one place."""
    all_labels: bool = False
    """Whether it gets every label."""


COMPETITORS = (
    Competitor(RULES, lambda seed: RuleRegressor(random_state=seed)),
    Competitor(
        "ridge regression", lambda _: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 25))), over_owners=False
    ),
    Competitor("extra trees", lambda seed: ExtraTreesRegressor(300, random_state=seed), over_owners=False),
    *(
        Competitor(f"{method.name} (paper)", lambda seed, m=method: m.make(random_state=seed))  # type: ignore[misc]
        for method in METHODS.values()
        if not method.needs_all_labels
    ),
    *(
        Competitor(f"{method.name} (paper)", lambda seed, m=method: m.make(random_state=seed), all_labels=True)  # type: ignore[misc]
        for method in METHODS.values()
        if method.needs_all_labels
    ),
)


@dataclass(frozen=True, slots=True)
class Fit:
    """One method fitted on one fold."""

    method: str
    nrmse: float
    coverage: float | None
    """Share of the test rows within their interval, if the method has intervals."""


@dataclass(frozen=True, slots=True)
class TrainingSet:
    """Rows divided between agents, with few labels each."""

    X: Array
    y: Array
    agents: IntArray
    known: Array
    """Targets with `LABELS_PER_AGENT` labels per agent, NaN elsewhere."""


def wine() -> tuple[Array, Array, list[str]]:
    """scikit-learn's table of 178 wines: twelve measurements, the target, and the names of the former."""
    data = load_wine()
    j = data.feature_names.index(TARGET)
    names = [str(name) for name in data.feature_names if name != TARGET]
    return np.delete(data.data, j, axis=1), data.data[:, j].copy(), names


def distribute(X: Array, y: Array, seed: int) -> TrainingSet:
    """Divide rows evenly between agents and hide all but a few labels of each."""
    rng = np.random.default_rng(seed)
    agents = split_evenly(len(y), N_AGENTS, rng)
    known = np.empty_like(y)
    for agent in range(N_AGENTS):
        known[agents == agent] = hide_labels(y[agents == agent], LABELS_PER_AGENT, rng)
    return TrainingSet(X, y, agents, known)


def n_fits() -> int:
    """Number of fits of `compare`."""
    return N_FOLDS * len(COMPETITORS)


def compare(seed: int, step: Callable[[], None]) -> list[Fit]:
    """Fit every method on every fold, on the same rows and labels."""
    X, y, _ = wine()
    fits = []
    for fold, (train, test) in enumerate(KFold(N_FOLDS, shuffle=True, random_state=seed).split(X)):
        data = distribute(X[train], y[train], seed + fold)
        for competitor in COMPETITORS:
            fits.append(_fit(competitor, data, X[test], y[test], seed))
            step()
    return fits


def summarize(fits: list[Fit]) -> list[list[str]]:
    """One row of text per method: error, coverage of its intervals, and whether rows stay with their owners."""
    return [[*_cells(fits, method.name), "yes" if method.over_owners else "no"] for method in COMPETITORS]


def train_model(seed: int) -> tuple[Model, TrainingSet]:
    """Train the recommended model over all owners, on the whole table."""
    X, y, names = wine()
    data = distribute(X, y, seed)
    owners = np.array([f"cellar {agent + 1}" for agent in data.agents])
    estimator = RuleRegressor(random_state=seed).fit(X, data.known, agents=owners)
    return estimator.model_.renamed(names, TARGET), data


def as_table(data: TrainingSet) -> pa.Table:
    """The rows with their owners, for a file; hidden targets are empty."""
    _, _, names = wine()
    columns: dict[str, Any] = {"cellar": [f"cellar {agent + 1}" for agent in data.agents]}
    columns |= {name: data.X[:, j] for j, name in enumerate(names)}
    return pa.table(columns | {TARGET: pa.array(data.known, mask=np.isnan(data.known))})


def kilobytes_sent(model: Model) -> Iterator[tuple[str, float]]:
    """What left each owner, in kB."""
    for entry in model.training["agents"]:
        yield str(entry["agent"]), entry["bytes_sent"] / 1e3


def _fit(competitor: Competitor, data: TrainingSet, X_test: Array, y_test: Array, seed: int) -> Fit:
    targets = data.y if competitor.all_labels else data.known
    labeled = ~np.isnan(targets)
    estimator = competitor.make(seed)
    if competitor.over_owners:
        estimator.fit(data.X, targets, agents=data.agents)
    else:
        estimator.fit(data.X[labeled], targets[labeled])
    coverage = None
    if competitor.name == RULES:
        low, high = estimator.predict_interval(X_test, COVERAGE)
        coverage = float(np.mean((low <= y_test) & (y_test <= high)))
    return Fit(competitor.name, nrmse(y_test, estimator.predict(X_test)), coverage)


def _cells(fits: list[Fit], method: str) -> list[str]:
    chosen = [fit for fit in fits if fit.method == method]
    errors = [fit.nrmse for fit in chosen]
    covered = [fit.coverage for fit in chosen if fit.coverage is not None]
    return [
        method,
        f"{np.mean(errors):.3f} ± {np.std(errors, ddof=1) / np.sqrt(len(errors)):.3f}",
        f"{np.mean(covered):.0%}" if covered else "",
    ]
