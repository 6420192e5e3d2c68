"""The rows that a report is made with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsfr.core.arrays import Array, as_floats
from dsfr.io.columns import Origin, Table, matrix, numbers
from dsfr.model.inputs import features_of
from dsfr.model.model import Model


@dataclass(frozen=True, slots=True)
class ReportData:
    """Complete rows, their targets (NaN where unknown) if there are any, and the number of incomplete rows."""

    X: Array
    y: Array | None = None
    n_incomplete: int = 0
    names: tuple[Any, ...] = ()
    """Names of the rows: labels in the index of a data frame; none: numbers from 1."""

    @property
    def row_names(self) -> Sequence[Any]:
        """Names of the rows."""
        return self.names or range(1, len(self.X) + 1)

    @classmethod
    def of(cls, X: Any, y: Any, model: Model) -> ReportData:
        """From an array or a data frame; rows with missing or infinite values are left out and counted.

        Raises
        ------
        ValueError
            If columns or targets do not fit, or no complete row is left.
        """
        rows, feature_names = features_of(X, model.feature_names, model.schema), model.feature_names
        targets = None if y is None else as_floats(y, "y")
        if rows.ndim != 2 or rows.shape[1] != len(feature_names):
            raise ValueError(f"X has shape {rows.shape}; the model needs {len(feature_names)} columns")
        if targets is not None and targets.shape != (len(rows),):
            raise ValueError(f"y has shape {targets.shape}; it needs one target for each of {len(rows)} rows")
        names = tuple(X.index) if hasattr(X, "iloc") else tuple(range(1, len(rows) + 1))
        return cls._complete(rows, targets, names)

    @classmethod
    def _complete(cls, X: Array, y: Array | None, names: Sequence[Any]) -> ReportData:
        complete = np.isfinite(X).all(axis=1)
        if not complete.any():
            raise ValueError("no row is complete: every one lacks the value of some feature")
        kept = tuple(names[n] for n in np.flatnonzero(complete).tolist())
        return cls(X[complete], None if y is None else y[complete], int((~complete).sum()), kept)


def data_of_table(table: Table, model: Model, decimal: str = ".") -> ReportData:
    """The model's columns of a table, and its target if the table has it.

    Raises
    ------
    TableError
        If a feature is missing, or not made of numbers.
    """
    origin = Origin(decimal=decimal)
    X = matrix(table, model.columns, origin)
    known = model.target_name in table.column_names
    y = numbers(table, model.target_name, origin) if known else None
    return ReportData._complete(X, y, range(1, len(X) + 1))
