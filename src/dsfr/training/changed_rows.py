"""Rows that are changed one by one: moved to limits, completed, or with the logarithms of their targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.density import RowDensity
from dsfr.core.scaling.affine import LARGEST_FLOAT, Ranges
from dsfr.training.rows import ChangedRows, WeightedBatch


class IncompleteRowsError(ValueError):
    """Rows with missing values where none may be."""


@dataclass(frozen=True, slots=True)
class LimitedRows(ChangedRows):
    """Rows of another source, with features and targets moved to the limits where they lie beyond."""

    limits: Ranges
    target_limits: Array

    def changed(self, batch: WeightedBatch) -> WeightedBatch:
        """Rows within the limits."""
        X, y, weights = batch
        return self.limits.clip(X), np.clip(y, *self.target_limits), weights


@dataclass(frozen=True, slots=True)
class LogRows(ChangedRows):
    """Rows of another source with the logarithms of their targets.

    The logarithm of a target that is not positive is the lowest number there is.
    """

    def changed(self, batch: WeightedBatch) -> WeightedBatch:
        """Rows with logarithms."""
        X, y, weights = batch
        positive = np.where(y > 0.0, y, 1.0)
        return X, np.where(y > 0.0, np.log(positive), np.where(np.isnan(y), np.nan, -LARGEST_FLOAT)), weights


@dataclass(frozen=True, slots=True)
class CompletedRows(ChangedRows):
    """Rows of another source, with missing values replaced by what a density expects of them, given the others."""

    density: RowDensity

    def changed(self, batch: WeightedBatch) -> WeightedBatch:
        """Rows without missing values."""
        X, y, weights = batch
        return (self.density.expected(X) if np.isnan(X.min(initial=0.0)) else X), y, weights


@dataclass(frozen=True, slots=True)
class CompleteRows(ChangedRows):
    """Rows of another source, none of which may have missing values.

    Raises
    ------
    IncompleteRowsError
        In the first pass over a row with one.
    """

    def changed(self, batch: WeightedBatch) -> WeightedBatch:
        """The same rows."""
        if np.isnan(batch[0].min(initial=0.0)):
            raise IncompleteRowsError("X has missing values")
        return batch
