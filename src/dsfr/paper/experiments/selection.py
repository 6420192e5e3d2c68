"""Choice of the grid value: the best on the test folds, or by leave-one-out on the training labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dsfr.paper.experiments.pooled import Candidate

Cell = tuple[str, str, str]
"""Data set, setting, method."""
Run = tuple[int, int]
"""Repetition, fold."""


def best_on_test(rows: Iterable[Mapping[str, Any]]) -> dict[Cell, Candidate]:
    """One grid value per data set, setting and method: that of the lowest mean error on the test folds.

    The choice uses the test rows, so the resulting error is optimistic.
    """
    errors: dict[Cell, dict[Candidate, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        errors[_cell(row)][row["ridge"], row["weight"]].append(row["nrmse"])
    return {cell: min(by_value, key=lambda value: float(np.mean(by_value[value]))) for cell, by_value in errors.items()}


def chosen_by_leave_one_out(rows: Iterable[Mapping[str, Any]]) -> dict[Cell, dict[Run, Mapping[str, Any]]]:
    """For every fold the row of the grid with the lowest leave-one-out error on the training labels."""
    chosen: dict[Cell, dict[Run, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        by_run, run = chosen[_cell(row)], (row["repetition"], row["fold"])
        if run not in by_run or row["loo"] < by_run[run]["loo"]:
            by_run[run] = row
    return dict(chosen)


def _cell(row: Mapping[str, Any]) -> Cell:
    return row["dataset"], row["setting"], row["method"]
