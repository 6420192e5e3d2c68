"""Our methods on the same draws: error, and coverage and width of intervals."""

import hashlib
import subprocess
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import dsfr
from benchmarks.accuracy.complexity import measure_complexity
from benchmarks.accuracy.scores import LEVELS, interval_measures, nrmse
from benchmarks.tables import Draw

AUTO, RULES = "auto", "rules"
CLASSES = {AUTO: "AutoSFRRegressor", RULES: "RuleRegressor"}
CROSS_CONFORMAL = {
    f"{method} {name}": (method, folds) for method in CLASSES for name, folds in (("CV+", 10), ("jackknife+", 0))
}
"""Our methods within MAPIE's CV+ of so many folds; 0: one for every label, the jackknife+."""
OURS = tuple(method for method, name in CLASSES.items() if hasattr(dsfr, name))


def score_ours(method: str, draw: Draw) -> dict[str, Any]:
    """Error, seconds of a fit, coverage and width of intervals, and what there is to read."""
    if method in CROSS_CONFORMAL:
        return score_cross_conformal(method, draw)
    start = time.perf_counter()
    model = getattr(dsfr, CLASSES[method])(random_state=draw.seed).fit(draw.X, draw.y)
    seconds = time.perf_counter() - start
    found = {"nrmse": nrmse(draw.y_test, np.asarray(model.predict(draw.X_test))), "seconds": seconds}
    for level in LEVELS:
        limits = model.predict_interval(draw.X_test, level / 100)
        found |= interval_measures(draw.y_test, level, np.column_stack(limits))
    return found | measure_complexity(method, model)


def score_cross_conformal(method: str, draw: Draw) -> dict[str, Any]:
    """Intervals of MAPIE around one of our methods; unlabelled rows belong to every fit."""
    from mapie.regression import CrossConformalRegressor
    from sklearn.base import BaseEstimator, RegressorMixin

    inner, folds = CROSS_CONFORMAL[method]
    unlabeled = draw.X[np.isnan(draw.y)]

    class SemiSupervised(RegressorMixin, BaseEstimator):
        def fit(self, X: np.ndarray, y: np.ndarray) -> "SemiSupervised":
            rows, targets = np.vstack([X, unlabeled]), np.concatenate([y, np.full(len(unlabeled), np.nan)])
            self.model_ = getattr(dsfr, CLASSES[inner])(random_state=draw.seed).fit(rows, targets)
            return self

        def predict(self, X: np.ndarray) -> np.ndarray:
            return np.asarray(self.model_.predict(X))

    start = time.perf_counter()
    levels = [level / 100 for level in LEVELS]
    cv = folds or len(draw.labeled[1])
    wrapped = CrossConformalRegressor(SemiSupervised(), levels, cv=cv, random_state=draw.seed)
    middle, limits = wrapped.fit_conformalize(*draw.labeled).predict_interval(draw.X_test)
    found = {"nrmse": nrmse(draw.y_test, middle), "seconds": time.perf_counter() - start}
    for i, level in enumerate(LEVELS):
        found |= interval_measures(draw.y_test, level, limits[:, :, i])
    return found


@cache
def source_version(method: str = AUTO) -> str:
    """Commit of the checkout that dsfr is imported from, with a + if its source has changed since, and a checksum."""
    package = Path(dsfr.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    # Scores that this very command stores are changes too, but none of the source.
    commit, changed = (
        subprocess.run(["git", *command], cwd=package, capture_output=True, text=True, check=False).stdout.strip()
        for command in (("describe", "--always"), ("status", "--porcelain", "."))
    )
    return f"{commit or dsfr.__version__}{'+' if changed else ''} {digest.hexdigest()[:8]}"
