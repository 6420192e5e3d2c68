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
from dsfr.estimators import AutoSFRRegressor, RuleRegressor
from dsfr.estimators.methods import METHODS, Method
from dsfr.estimators.metrics import nrmse
from dsfr.model.model import Model
from dsfr.paper.datasets import hide_labels, split_evenly

FEATURES = ("alcohol", "total_phenols", "color_intensity", "hue")
TARGET = "flavanoids"
N_AGENTS = 5
LABELS_PER_AGENT = 10
N_FOLDS = 5
COVERAGE = 0.9
RULES, AUTOMATIC = "RuleRegressor", "AutoSFRRegressor"
SURE = 2.0
"""Standard errors of a mean difference over folds beyond which it is said without reserve."""


@dataclass(frozen=True, slots=True)
class Competitor:
    """One method of the comparison."""

    name: str
    make: Callable[[int], Any]
    """The estimator with a seed."""
    option: str | None = None
    """Its name for ``dsfr fit --method``; None: of another package, which needs all rows in one place."""
    all_labels: bool = False
    """Whether it gets every label."""

    @property
    def over_owners(self) -> bool:
        """Whether it trains over owners who keep their rows."""
        return self.option is not None


def _ridge(_: int) -> Any:
    return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 25)))


def _of_paper(method: Method) -> Competitor:
    return Competitor(
        f"{method.name} (paper)",
        lambda seed: method.make(random_state=seed),
        method.name.lower(),
        all_labels=method.needs_all_labels,
    )


COMPETITORS = (
    Competitor(RULES, lambda seed: RuleRegressor(random_state=seed), "rules"),
    Competitor(AUTOMATIC, lambda seed: AutoSFRRegressor(random_state=seed), "auto"),
    Competitor("ridge regression", _ridge),
    Competitor("extra trees", lambda seed: ExtraTreesRegressor(300, random_state=seed)),
    *map(_of_paper, sorted(METHODS.values(), key=lambda method: method.needs_all_labels)),
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


def wine() -> tuple[Array, Array]:
    """Four measurements of the 178 wines of scikit-learn's table, and a fifth as the target."""
    data = load_wine()
    columns = [data.feature_names.index(name) for name in (*FEATURES, TARGET)]
    values = data.data[:, columns].astype(np.float64)
    return values[:, :-1].copy(), values[:, -1].copy()


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
    X, y = wine()
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


def advice(fits: list[Fit]) -> str:
    """Which estimator of dsfr to take on this table and how to get it, from the errors that were measured."""
    same_labels = [competitor for competitor in COMPETITORS if not competitor.all_labels]
    ours = _lowest(fits, [competitor for competitor in same_labels if competitor.over_owners])
    other = _lowest(fits, [competitor for competitor in same_labels if not competitor.over_owners])
    said = f"Lowest error of dsfr's estimators on this table: {ours.name} (dsfr fit --method {ours.option}). "
    if ours.name != RULES:
        said += f"The error of {RULES}, whose rules can be read, is {_difference(fits, RULES, ours.name)}. "
    return f"{said}That of {other.name}, the best of other packages, is {_difference(fits, other.name, ours.name)}."


def train_model(seed: int) -> tuple[Model, TrainingSet]:
    """Train the recommended model over all owners, on the whole table."""
    X, y = wine()
    data = distribute(X, y, seed)
    owners = np.array([f"cellar {agent + 1}" for agent in data.agents])
    estimator = RuleRegressor(random_state=seed).fit(X, data.known, agents=owners)
    return estimator.model_.renamed(FEATURES, TARGET), data


def as_table(data: TrainingSet) -> pa.Table:
    """The rows with their owners, for a file; hidden targets are empty."""
    columns: dict[str, Any] = {"cellar": [f"cellar {agent + 1}" for agent in data.agents]}
    columns |= {name: data.X[:, j] for j, name in enumerate(FEATURES)}
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
    if competitor.name in (RULES, AUTOMATIC):
        low, high = estimator.predict_interval(X_test, COVERAGE)
        coverage = float(np.mean((low <= y_test) & (y_test <= high)))
    return Fit(competitor.name, nrmse(y_test, estimator.predict(X_test)), coverage)


def _lowest(fits: list[Fit], competitors: list[Competitor]) -> Competitor:
    return min(competitors, key=lambda competitor: float(_errors(fits, competitor.name).mean()))


def _difference(fits: list[Fit], method: str, reference: str) -> str:
    """How much higher the error of a method is than that of another, fold by fold."""
    differences = _errors(fits, method) - _errors(fits, reference)
    mean, deviation = float(differences.mean()), _standard_error(differences)
    size = f"{abs(mean):.3f} ± {deviation:.3f} {'higher' if mean >= 0 else 'lower'}"
    return size if abs(mean) > SURE * deviation else f"{size} (within the uncertainty)"


def _errors(fits: list[Fit], method: str) -> Array:
    return np.array([fit.nrmse for fit in fits if fit.method == method])


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _cells(fits: list[Fit], method: str) -> list[str]:
    errors = _errors(fits, method)
    covered = [fit.coverage for fit in fits if fit.method == method and fit.coverage is not None]
    return [
        method,
        f"{errors.mean():.3f} ± {_standard_error(errors):.3f}",
        f"{np.mean(covered):.0%}" if covered else "",
    ]
