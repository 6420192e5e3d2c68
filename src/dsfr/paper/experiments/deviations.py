"""Deviations from the paper, one at a time: a fit with the paper's choice beside the same fit with ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.estimators import SFRRegressor
from dsfr.estimators.metrics import nrmse
from dsfr.paper.experiments.convergence import stopping_rounds
from dsfr.paper.experiments.folds import Fold
from dsfr.paper.experiments.shared_rounds import SharedRounds
from dsfr.paper.experiments.spec import Spec
from dsfr.paper.experiments.table import PRINTED, Choices, Row
from dsfr.training import ADMM, ICR, BroadcastError, Conjugate, FuzzyRules, Graph, RangeScaling

PLAIN = ADMM(acceleration=None, cluster_penalty=0.1, penalty=0.1)


@dataclass(frozen=True, slots=True)
class Deviation:
    """The paper's choice, and ours, as arguments of the estimator."""

    paper: Mapping[str, Any]
    ours: Mapping[str, Any] = field(default_factory=dict)
    """Beside the defaults."""


DEVIATIONS: dict[str, Deviation] = {
    "eq. (5): memberships in place of their powers": Deviation({"rules__membership_exponent": 1.0}),
    "eq. (4), (17), (19), (26): sums over the rows of a cluster": Deviation({"rules__cluster_rows": "nearest"}),
    "eq. (14): no 1/2 before gamma": Deviation({"unlabeled__weight": 0.2}),
    "eq. (18): average widths": Deviation({"rules__width_pooling": "paper"}),
    "eq. (30), (31): stopping tests": Deviation({"solver": PRINTED}, {"solver": PLAIN}),
    "eq. (37): mu = 1 in place of rho_p": Deviation(
        {"solver": PRINTED, "solver__local_shift": "ridge", "ridge": 1.0}, {"solver": PRINTED, "ridge": 1.0}
    ),
    "eq. (37): mu = 0.01 in place of rho_p": Deviation(
        {"solver": PRINTED, "solver__local_shift": "ridge", "ridge": 0.01}, {"solver": PRINTED, "ridge": 0.01}
    ),
    "random start": Deviation({"rules__init": "random"}),
    "raw targets": Deviation({"scaling": RangeScaling(target="raw")}),
    "new pairs in every round": Deviation({"solver": PRINTED, "solver__refresh_pairs": True}, {"solver": PRINTED}),
    "plain ADMM, rho_s = rho_p = 0.1": Deviation({"solver": PLAIN}),
    "full kernel graph (SFR-G)": Deviation({"unlabeled": Graph(kernel="full")}, {"unlabeled": Graph()}),
    "mixing shares Beta(1, 1)": Deviation({"unlabeled__mix_concentration": 1.0}),
}
"""By name; the usual values of other parameters are those of the specification."""
ALL = "all of them: SFRRegressor.paper()"


def run_deviations(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """Errors, centers and predictions with the paper's choice and with ours, one deviation after the other."""
    rows: list[Row] = []
    fits: dict[str, Any] = {}
    rounds = SharedRounds(fold)
    for name, deviation in DEVIATIONS.items():
        key = repr(sorted(deviation.ours.items()))
        if key not in fits:
            fits[key] = _fit(fold, spec, rounds, _usual(spec), deviation.ours)
        try:
            paper = _fit(fold, spec, rounds, _usual(spec), deviation.paper)
        except BroadcastError:  # weights beyond all bounds
            rows.append({**dict.fromkeys(rows[0]), "deviation": name, "diverged": True})
            continue
        rows.append(_compare(name, fold, spec, paper, fits[key]))
    printed = _fit(fold, spec, rounds, SFRRegressor.paper(), {})
    return [*rows, _compare(ALL, fold, spec, printed, fits["[]"])]


def _usual(spec: Spec) -> SFRRegressor:
    return SFRRegressor(
        spec.rules,
        rules=FuzzyRules(fuzzifier=spec.fuzzifier),
        unlabeled=ICR(weight=spec.consistency),
        ridge=spec.ridge,
        solver=Conjugate(tol=spec.tol),
    )


def _fit(
    fold: Fold, spec: Spec, rounds: SharedRounds, estimator: SFRRegressor, arguments: Mapping[str, Any]
) -> SFRRegressor:
    estimator.set_params(random_state=fold.seed, **arguments)
    if isinstance(estimator.solver, ADMM):
        estimator.set_params(solver__tol=spec.tol, solver__max_rounds=spec.max_rounds)
    fitted: SFRRegressor = rounds.fit(estimator, fold.known, fold.owners)[0]
    return fitted


def _compare(name: str, fold: Fold, spec: Spec, paper: SFRRegressor, ours: SFRRegressor) -> Row:
    predictions = [np.asarray(model.predict(fold.X_test)) for model in (paper, ours)]
    apart = float(np.sqrt(np.mean((predictions[0] - predictions[1]) ** 2)) / fold.y_test.std())
    weights = [info for info in paper.history_ if info.stage == "weights"]
    return {
        "deviation": name,
        "diverged": False,
        "nrmse_paper": round(nrmse(fold.y_test, predictions[0]), 6),
        "nrmse_ours": round(nrmse(fold.y_test, predictions[1]), 6),
        "predictions_apart": float(f"{apart:.4g}"),
        "centers_apart": float(f"{_center_distance(_centers(paper), _centers(ours)):.4g}"),
        "rounds_paper": paper.n_rounds_,
        "rounds_ours": ours.n_rounds_,
        "kilobytes_paper": round(paper.ledger_.bytes / 1e3, 1),
        "kilobytes_ours": round(ours.ledger_.bytes / 1e3, 1),
        **{f"weights_{key}": value for key, value in stopping_rounds(weights, spec.tol).items()},
    }


def _centers(model: SFRRegressor) -> Array:
    rules = model.model_.mixture.strongest.basis
    assert isinstance(rules, Rules), "SFRRegressor makes rules"
    return rules.centers


def _center_distance(first: Array, second: Array) -> float:
    """Largest distance of a center of one set from the nearest of the other, in scaled features: the order is free."""
    distances = np.linalg.norm(first[:, None] - second, axis=2)
    return float(max(distances.min(axis=0).max(), distances.min(axis=1).max()))
