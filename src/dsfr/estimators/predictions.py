"""Predictions of a trained model, its intervals and its domain."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from dsfr.core.arrays import Array
from dsfr.core.prediction.mixture import Deviations
from dsfr.estimators.checks import TEXT_REMEDY, check_finite, check_numbers, check_text, is_scan
from dsfr.io.dask_frames import is_lazy, predict_lazily
from dsfr.model.frames import as_frame, encode_frame, is_frame
from dsfr.model.model import Interval, Model


class Predictions:
    """Methods of estimators with a trained ``model_``."""

    model_: Model

    def predict(self, X: Any, return_std: bool = False, X_std: Any = None) -> Any:
        """Predictions in the target's units; shape (n,). Of a dask data frame, a dask series that is computed later.

        Values may be missing (NaN) or noisy: the prediction is then the expected one, given what is known of the row.

        Parameters
        ----------
        X : array-like of shape (n, d), Scan or dask data frame
            Features.
        return_std : bool, default=False
            Return also the standard deviation of a new observation at every row (noise, what the labels leave open
            about the weights, how far models are apart, and uncertain inputs; `deviation_parts` has each). That needs
            a fit with ``uncertainty=True``.
        X_std : float, mapping, or array-like of shape (d,) or (n, d), default=None
            Standard deviation of the noise of the inputs, in their units; a mapping has the names of features.
        """
        check_is_fitted(self, "model_")
        if is_lazy(X):
            if return_std:
                raise ValueError("return_std=True needs rows in memory, not a dask data frame: give X.compute()")
            return predict_lazily(self.model_, X, X_std)
        rows = X if is_scan(X) else self._rows(X)
        predictions = self.model_.predict(rows, X_std)
        return (predictions, self.model_.deviations(rows, X_std)) if return_std else predictions

    def deviation_parts(self, X: Any, X_std: Any = None) -> Deviations:
        """What the standard deviation of a new observation is made of, ``noise, ignorance, inputs``; see `predict`.

        Needs a fit with ``uncertainty=True``.
        """
        check_is_fitted(self, "model_")
        return self.model_.deviation_parts(self._rows(X), X_std)

    def predict_interval(self, X: Any, coverage: float = 0.9, X_std: Any = None) -> Interval:
        """Lower and upper ends of the jackknife intervals of all rows, ``low, high = predict_interval(X)``.

        The interval is the prediction plus and minus the row's standard deviation (see `predict`) times the
        ``coverage`` quantile of the leave-one-out errors on the labels of all agents, each divided by the standard
        deviation of its own row: it is wide where the model knows little. Those of short rules (`RuleRegressor`) follow
        the deviations of their rules, and grow with the distance from the rows. `in_domain` says where not to rely on
        them. Coverage is close to nominal where labels and new rows come from one distribution. The jackknife has no
        guarantee for finite samples. What was chosen with all labels makes the errors too small; where effects take
        part they are enlarged by what choosing costs in cross-validation. See benchmarks/results/accuracy for the
        measured coverage. Needs a fit with ``uncertainty=True``.
        """
        check_is_fitted(self, "model_")
        return self.model_.interval(X if is_scan(X) else self._rows(X), coverage, X_std)

    def in_domain(self, X: Any) -> npt.NDArray[np.bool_]:
        """Whether each row lies where the model has seen data; beyond the model's limits, features are clipped."""
        check_is_fitted(self, "model_")
        return self.model_.in_domain(self._rows(X))

    def _rows(self, X: Any) -> Array:
        X, columns = as_frame(X), self.model_.columns
        if columns.is_plain:
            check_numbers(X)
            check_text(X, "X", TEXT_REMEDY)
            X = validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=False)
        elif is_frame(X):
            X = encode_frame(X, columns)
        else:
            raise ValueError(f"X must be a data frame with the columns {', '.join(map(repr, columns.names))}")
        check_finite(X, columns.feature_names)
        rows: Array = X
        return rows
