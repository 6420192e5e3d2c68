"""The paper's measure of error, and a scorer made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.utils.validation import column_or_1d

from dsfr.core.arrays import Array, as_floats
from dsfr.core.prediction.errors import in_units, relative_error, unit_of


def nrmse(y_true: Any, y_pred: Any) -> float:
    """Root mean squared error over the sample deviation (ddof = 1) of the targets; unlabelled rows are left out.

    0 is perfect; predicting the mean gives almost 1. Up to the factor n/(n-1), R^2 is 1 minus its square.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True targets; NaN marks rows without one.
    y_pred : array-like of shape (n,)
        Predictions.

    Examples
    --------
    >>> round(nrmse([1.0, 2.0, 3.0, float("nan")], [1.0, 2.0, 4.0, 9.0]), 4)
    0.5774
    """
    true = column_or_1d(as_floats(y_true, "y_true"))
    predicted = column_or_1d(as_floats(y_pred, "y_pred"))
    if true.shape != predicted.shape:
        raise ValueError(f"y_true has {len(true)} rows and y_pred {len(predicted)}: they must be as many")
    error = relative_error(true, predicted)
    if error is None:
        raise ValueError(
            f"nrmse needs at least two labelled rows with different targets, got {(~np.isnan(true)).sum()} labelled: "
            "use fewer folds, or a splitter that puts labelled rows into every test fold"
        )
    return error


@dataclass(slots=True)
class RunningError:
    """`nrmse` of rows that come in batches; count, mean and squares are merged as Chan et al. (1979) do.

    Mean and squares are in units of ``unit``.
    """

    n: int = 0
    mean: float = 0.0
    square: float = 0.0
    """Sum of squared deviations of the targets from their mean."""
    error: float = 0.0
    """Sum of squared errors."""
    unit: float = 1.0
    """What targets are divided by, or squares of huge ones would overflow; from the first rows."""

    def add(self, y_true: Array, y_pred: Array) -> None:
        """Add rows; those whose target is NaN do not count."""
        labeled = ~np.isnan(y_true)
        n = int(labeled.sum())
        if n == 0:
            return
        if self.n == 0:
            self.unit = unit_of(y_true[labeled])
        true, predicted = in_units(y_true[labeled], self.unit), in_units(y_pred[labeled], self.unit)
        mean, total = float(true.mean()), self.n + n
        gap = mean - self.mean
        self.square += float(np.sum((true - mean) ** 2)) + gap * gap * self.n * n / total
        self.mean += gap * n / total
        self.error += float(np.sum((predicted - true) ** 2))
        self.n = total

    @property
    def is_known(self) -> bool:
        """Whether there are two labelled rows with different targets."""
        return self.n > 1 and self.square > 0.0

    @property
    def nrmse(self) -> float:
        """Root mean squared error over the sample deviation of the targets."""
        return float(np.sqrt(self.error / self.n / (self.square / (self.n - 1))))

    @property
    def spread(self) -> float:
        """Sample deviation of the targets."""
        return self.unit * float(np.sqrt(self.square / (self.n - 1)))


nrmse_scorer = make_scorer(nrmse, greater_is_better=False)
"""``scoring=nrmse_scorer`` in scikit-learn's searches: higher (nearer to 0) is better, unlabelled rows do not count."""
