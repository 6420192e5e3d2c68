"""Numbers of the main table: means, deviations and tests over the stored runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student
from scipy.stats import ttest_rel

from dsfr.core.arrays import Array
from dsfr.paper.experiments.results import Row
from dsfr.paper.experiments.selection import Cell, Run, chosen_by_leave_one_out
from dsfr.paper.reproduction.stored import Results

OURS = "SFR-ICR"
"""The method that others are tested against."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Test errors of one cell, run by run."""

    by_run: dict[Run, float]

    @property
    def values(self) -> Array:
        """In the order of the runs."""
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
        """Paired t-test over the runs as if they were independent, which they are not: folds share training rows."""
        return float(ttest_rel(self.values, other.values).pvalue)

    def corrected_p_value(self, other: Errors, test_ratio: float) -> float:
        """Corrected resampled t-test (Nadeau and Bengio 2003, section 5); ``test_ratio`` is test over training rows.

        The variance of a mean over n runs is taken as ``1/n + test_ratio`` times that of a run, in the place of
        ``1/n``, because runs that share training rows are correlated.
        """
        differences = self.values - other.values
        n = len(differences)
        spread = float(np.sqrt((1 / n + test_ratio) * differences.var(ddof=1)))
        mean = abs(float(differences.mean()))
        if spread == 0.0:
            return 1.0 if mean == 0.0 else 0.0
        return float(2 * student.sf(mean / spread, n - 1))


@dataclass(frozen=True, slots=True)
class TableCell:
    """One method on one data set in one setting: all that the table says of it."""

    best: Errors
    """Real fits at the grid value that is best on the test folds."""
    honest: Errors
    """Closed form, grid value chosen in every fold by leave-one-out on the training labels."""
    ridge: float
    weight: float
    seconds: float
    rounds: float
    kilobytes: float
    converged: float
    """Share of the fits that converged."""
    gap: float
    """Largest difference over the runs between the NRMSE of a fit and of the pooled closed form."""


def table_cells(results: Results) -> dict[Cell, TableCell]:
    """All cells of the main table."""
    chosen = chosen_by_leave_one_out(results.rows["grid"])
    fits = _grouped(results.rows["fits"])
    pooled = _pooled_errors(results, fits)
    return {cell: _table_cell(fits[cell], chosen[cell], pooled[cell]) for cell in chosen}


def _pooled_errors(results: Results, fits: dict[Cell, list[Row]]) -> dict[Cell, dict[Run, float]]:
    """What the closed form gives at the grid value of the fits."""
    values = {cell: (rows[0]["ridge"], rows[0]["weight"]) for cell, rows in fits.items()}
    pooled: dict[Cell, dict[Run, float]] = {cell: {} for cell in fits}
    for row in results.rows["grid"]:
        cell = (row["dataset"], row["setting"], row["method"])
        if values[cell] == (row["ridge"], row["weight"]):
            pooled[cell][row["repetition"], row["fold"]] = row["nrmse"]
    return pooled


def _table_cell(fits: list[Row], chosen: dict[Run, Any], pooled: dict[Run, float]) -> TableCell:
    best = Errors({_run(row): row["nrmse"] for row in fits})
    return TableCell(
        best=best,
        honest=Errors({run: row["nrmse"] for run, row in chosen.items()}),
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

    best: Errors
    honest: Errors
    seconds: float


def baseline_cells(results: Results) -> dict[tuple[str, str], BaselineCell]:
    """Baselines by data set and name; where nothing is to be chosen, both selections are the same."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in results.rows["baselines"]:
        groups.setdefault((row["dataset"], row["method"]), []).append(row)
    return {key: _baseline_cell(rows) for key, rows in groups.items()}


def _baseline_cell(rows: list[Row]) -> BaselineCell:
    alphas = sorted({row["alpha"] for row in rows})
    by_alpha = {alpha: Errors({_run(row): row["nrmse"] for row in rows if row["alpha"] == alpha}) for alpha in alphas}
    honest: dict[Run, Row] = {}
    for row in rows:
        run = _run(row)
        if run not in honest or row["loo"] < honest[run]["loo"]:
            honest[run] = row
    best = min(by_alpha.values(), key=lambda errors: errors.mean)
    return BaselineCell(best, Errors({run: row["nrmse"] for run, row in honest.items()}), _mean(rows, "seconds"))


def curve(rows: Iterable[Row], x: str) -> tuple[list[float], Array, Array]:
    """Values of ``x``, and mean and deviation of the NRMSE at each."""
    groups: dict[float, list[float]] = {}
    for row in rows:
        groups.setdefault(row[x], []).append(row["nrmse"])
    values = sorted(groups)
    means = np.array([np.mean(groups[value]) for value in values])
    deviations = np.array([np.std(groups[value], ddof=1) for value in values])
    return values, means, deviations


def medians(rows: Iterable[Row], x: str) -> tuple[list[float], Array]:
    """Values of ``x``, and the median of the NRMSE at each."""
    groups: dict[float, list[float]] = {}
    for row in rows:
        groups.setdefault(row[x], []).append(row["nrmse"])
    values = sorted(groups)
    return values, np.array([np.median(groups[value]) for value in values])


def _grouped(rows: Iterable[Row]) -> dict[Cell, list[Row]]:
    groups: dict[Cell, list[Row]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["setting"], row["method"]), []).append(row)
    return groups


def _run(row: Row) -> Run:
    return row["repetition"], row["fold"]


def _mean(rows: list[Row], name: str) -> float:
    return float(np.mean([row[name] for row in rows]))
