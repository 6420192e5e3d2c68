"""Summary statistics of the stored runs: means, standard deviations, medians and t-tests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student
from scipy.stats import ttest_rel

from dsfr.core.arrays import Array
from dsfr.paper.experiments.results import Row
from dsfr.paper.experiments.selection import Cell, Run, chosen_by_leave_one_out
from dsfr.paper.reproduction.loading import Results

CELL = ("dataset", "setting", "method")
"""Columns that identify a cell of the table."""
REFERENCE = "SFR-ICR"
"""Method against which the others are tested."""
MEDIAN_GAP = 0.05
"""Where mean and median differ by more than this, figures show both."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Test errors of one cell of the table, by run."""

    by_run: dict[Run, float]

    @property
    def values(self) -> Array:
        """Errors in the order of the runs."""
        return np.array([self.by_run[run] for run in sorted(self.by_run)])

    @property
    def mean(self) -> float:
        """Mean over all runs."""
        return float(self.values.mean())

    @property
    def deviation(self) -> float:
        """Sample standard deviation over all runs."""
        return float(self.values.std(ddof=1))

    def p_value(self, other: Errors) -> float:
        """Paired t-test over the runs. It assumes independent runs, but folds share training rows."""
        return float(ttest_rel(self.values, other.values).pvalue)

    def corrected_p_value(self, other: Errors, test_ratio: float) -> float:
        """Corrected resampled t-test (Nadeau and Bengio 2003, section 5); ``test_ratio`` is test over training rows.

        The variance of a mean over n runs is ``1/n + test_ratio`` times that of one run, instead of ``1/n`` times,
        because runs that share training rows are correlated.
        """
        differences = self.values - other.values
        n = len(differences)
        standard_error = float(np.sqrt((1 / n + test_ratio) * differences.var(ddof=1)))
        mean = abs(float(differences.mean()))
        if standard_error == 0.0:
            return 1.0 if mean == 0.0 else 0.0
        return float(2 * student.sf(mean / standard_error, n - 1))


@dataclass(frozen=True, slots=True)
class TableCell:
    """Numbers of one method on one data set in one setting."""

    best_on_test: Errors
    """Full fits at the grid value with the lowest mean error on the test folds."""
    by_leave_one_out: Errors
    """Closed form at the grid value chosen in every fold by leave-one-out on the training labels."""
    ridge: float
    weight: float
    seconds: float
    rounds: float
    kilobytes: float
    converged: float
    """Share of the fits that converged."""
    gap: float
    """Largest difference of the NRMSE between a fit and the pooled closed form, over the runs."""


def table_cells(results: Results) -> dict[Cell, TableCell]:
    """All cells of the main table."""
    chosen = chosen_by_leave_one_out(results.rows["grid"])
    fits = group_by(results.rows["fits"], *CELL)
    pooled = _pooled_errors(results, fits)
    return {cell: _table_cell(fits[cell], chosen[cell], pooled[cell]) for cell in chosen}


def _pooled_errors(results: Results, fits: Mapping[Cell, list[Row]]) -> dict[Cell, dict[Run, float]]:
    """Errors of the closed form at the grid value of the fits."""
    values = {cell: (rows[0]["ridge"], rows[0]["weight"]) for cell, rows in fits.items()}
    pooled: dict[Cell, dict[Run, float]] = {cell: {} for cell in fits}
    for row in results.rows["grid"]:
        cell = (row["dataset"], row["setting"], row["method"])
        if values[cell] == (row["ridge"], row["weight"]):
            pooled[cell][row["repetition"], row["fold"]] = row["nrmse"]
    return pooled


def _table_cell(fits: list[Row], chosen: dict[Run, Any], pooled: dict[Run, float]) -> TableCell:
    best = _errors(fits)
    return TableCell(
        best_on_test=best,
        by_leave_one_out=_errors(chosen.values()),
        ridge=fits[0]["ridge"],
        weight=fits[0]["weight"],
        seconds=_mean(fits, "seconds"),
        rounds=_mean(fits, "rounds"),
        kilobytes=_mean(fits, "kilobytes"),
        converged=_mean(fits, "converged"),
        gap=float(np.abs(best.values - Errors(pooled).values).max()),
    )


@dataclass(frozen=True, slots=True)
class BaselineCell:
    """One baseline on one data set."""

    best_on_test: Errors
    by_leave_one_out: Errors
    seconds: float


def baseline_cells(results: Results) -> dict[tuple[str, str], BaselineCell]:
    """Baselines by data set and name; a baseline without parameters has the same errors in both selections."""
    groups = group_by(results.rows["baselines"], "dataset", "method")
    return {(dataset, name): _baseline_cell(rows) for (dataset, name), rows in groups.items()}


def _baseline_cell(rows: list[Row]) -> BaselineCell:
    by_alpha = [_errors(group) for _, group in sorted(group_by(rows, "alpha").items())]
    runs = group_by(rows, "repetition", "fold").values()
    chosen = [min(run, key=lambda row: row["loo"]) if len(run) > 1 else run[0] for run in runs]
    return BaselineCell(min(by_alpha, key=lambda errors: errors.mean), _errors(chosen), _mean(rows, "seconds"))


def mean_curve(rows: Iterable[Row], x: str) -> tuple[list[float], Array, Array]:
    """Values of ``x``, and mean and standard deviation of the NRMSE at each."""
    values, errors = _errors_over(rows, x)
    means = np.array([np.mean(group) for group in errors])
    deviations = np.array([np.std(group, ddof=1) for group in errors])
    return values, means, deviations


def median_curve(rows: Iterable[Row], x: str) -> tuple[list[float], Array]:
    """Values of ``x``, and the median of the NRMSE at each."""
    values, errors = _errors_over(rows, x)
    return values, np.array([np.median(group) for group in errors])


def few_runs_shift_the_mean(rows: Iterable[Row], x: str) -> bool:
    """Whether mean and median of the NRMSE differ by more than `MEDIAN_GAP` at some value of ``x``."""
    found = list(rows)
    return bool(np.abs(median_curve(found, x)[1] - mean_curve(found, x)[1]).max() > MEDIAN_GAP)


def group_by(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Rows by their values in some columns, in the order of their first occurrence."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return dict(groups)


def _errors_over(rows: Iterable[Row], x: str) -> tuple[list[float], list[list[float]]]:
    groups = sorted(group_by(rows, x).items())
    return [value for (value,), _ in groups], [[row["nrmse"] for row in group] for _, group in groups]


def _errors(rows: Iterable[Row]) -> Errors:
    return Errors({(row["repetition"], row["fold"]): row["nrmse"] for row in rows})


def _mean(rows: list[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))
