"""Baselines of scikit-learn on the same labels: ridge, Gaussian process, random forest.

They use no unlabelled rows, and need all labels in one place.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import Ridge, RidgeCV

from dsfr.core.arrays import Array
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.estimators.metrics import nrmse
from dsfr.paper.experiments.folds import Fold
from dsfr.paper.experiments.spec import Spec
from dsfr.paper.experiments.table import Choices, Row


def run_baselines(fold: Fold, spec: Spec, _: Choices) -> list[Row]:
    """Test error and seconds of every baseline, with features and targets scaled as for the other methods."""
    labeled = ~np.isnan(fold.known)
    ranges, targets = Ranges.of(fold.X), fold.known[labeled]
    X, X_test = scale_features(fold.X[labeled], ranges), scale_features(fold.X_test, ranges)
    y = (targets - targets.mean()) / targets.std()
    rows = []
    for method, alpha, loo, model in _models(X, y, spec, fold.seed):
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
        error = nrmse(fold.y_test, targets.mean() + targets.std() * model.predict(X_test))
        measured = {"nrmse": round(error, 6), "loo": loo, "seconds": round(seconds, 4)}
        rows.append({"method": method, "alpha": alpha, **measured})
    return rows


def _models(X: Array, y: Array, spec: Spec, seed: int) -> list[tuple[str, float, float | None, Any]]:
    """Name, ridge penalty, leave-one-out error (None without a parameter to choose) and model."""
    scores = _ridge_leave_one_out(X, y, spec.alphas)
    ridges = [("ridge", alpha, loo, Ridge(alpha=alpha)) for alpha, loo in zip(spec.alphas, scores, strict=True)]
    return [
        *ridges,
        ("Gaussian process", 0.0, None, _gaussian_process(np.ones(1), seed)),
        ("Gaussian process, ARD", 0.0, None, _gaussian_process(np.ones(X.shape[1]), seed)),
        ("random forest", 0.0, None, RandomForestRegressor(spec.trees, random_state=seed)),
    ]


def _ridge_leave_one_out(X: Array, y: Array, alphas: tuple[float, ...]) -> list[float]:
    """Root mean square leave-one-out residual of every alpha."""
    search = RidgeCV(alphas=alphas, store_cv_results=True).fit(X, y)
    return [round(float(score), 6) for score in np.sqrt(search.cv_results_.mean(axis=0))]


def _gaussian_process(length_scales: Array, seed: int) -> GaussianProcessRegressor:
    """Gaussian process with one length scale for all features or one for each (ARD), by marginal likelihood."""
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(length_scales, (1e-2, 1e3)) + WhiteKernel(0.1, (1e-6, 1e1))
    return GaussianProcessRegressor(kernel, random_state=seed)
