"""The rows that a report is made with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsfr.core.arrays import Array, as_floats
from dsfr.io.columns import Table, TableError, numbers
from dsfr.model.inputs import by_name
from dsfr.model.model import Model


@dataclass(frozen=True, slots=True)
class ReportData:
    """Complete rows, their targets (NaN where unknown) if there are any, and the number of incomplete rows."""

    X: Array
    y: Array | None = None
    n_incomplete: int = 0

    @classmethod
    def of(cls, X: Any, y: Any, feature_names: Sequence[str]) -> ReportData:
        """From an array or a data frame; rows with missing or infinite values are left out and counted.

        Raises
        ------
        ValueError
            If columns or targets do not fit, or no complete row is left.
        """
        matrix = as_floats(by_name(X, feature_names), "X")
        targets = None if y is None else as_floats(y, "y")
        if matrix.ndim != 2 or matrix.shape[1] != len(feature_names):
            raise ValueError(f"X has shape {matrix.shape}; the model needs {len(feature_names)} columns")
        if targets is not None and targets.shape != (len(matrix),):
            raise ValueError(f"y has shape {targets.shape}; it needs one target for each of {len(matrix)} rows")
        return cls._complete(matrix, targets)

    @classmethod
    def _complete(cls, X: Array, y: Array | None) -> ReportData:
        complete = np.isfinite(X).all(axis=1)
        if not complete.any():
            raise ValueError("no row is complete: every one lacks the value of some feature")
        return cls(X[complete], None if y is None else y[complete], int((~complete).sum()))


def data_of_table(table: Table, model: Model) -> ReportData:
    """The model's columns of a table, and its target if the table has it.

    Raises
    ------
    TableError
        If a feature is missing, or not made of numbers.
    """
    missing = [name for name in model.feature_names if name not in table.column_names]
    if missing:
        raise TableError(f"the table lacks the column(s) {', '.join(missing)} that the model was trained on")
    X = np.column_stack([numbers(table, name, allow_missing=True) for name in model.feature_names])
    known = model.target_name in table.column_names
    return ReportData._complete(X, numbers(table, model.target_name, allow_missing=True) if known else None)
