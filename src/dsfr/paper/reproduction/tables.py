"""Tables of the report: our Table II beside the published one, and a short table for the README."""

from __future__ import annotations

from collections.abc import Mapping

from dsfr.paper.experiments.selection import Cell
from dsfr.paper.reproduction.document import table
from dsfr.paper.reproduction.published import DATASETS, METHODS, PAPER, SETTINGS, TITLES
from dsfr.paper.reproduction.summary import REFERENCE, BaselineCell, Errors, TableCell

HEADER = (
    *("data, method", "best on test folds", "paper", "difference", "p", "p, corrected"),
    *("p, paper", "chosen by leave-one-out", "p", "p, corrected"),
    *("seconds", "seconds, paper", "ridge", "weight"),
)


def setting_table(
    cells: Mapping[Cell, TableCell], setting: str, baselines: Mapping[tuple[str, str], BaselineCell], test_ratio: float
) -> str:
    """One setting of Table II, with the baselines below the methods."""
    extra = ("rounds", "kB") if setting == "distributed" else ()
    rows = []
    for dataset in DATASETS:
        rows += [
            _method_row(cells, (dataset, setting, method), test_ratio, with_rounds=bool(extra)) for method in METHODS
        ]
        reference = cells[dataset, setting, REFERENCE]
        found = {name: cell for (where, name), cell in baselines.items() if where == dataset}
        rows += [_baseline_row(dataset, name, cell, reference, test_ratio) for name, cell in found.items()]
    return table((*HEADER, *extra), rows)


def _method_row(cells: Mapping[Cell, TableCell], key: Cell, test_ratio: float, *, with_rounds: bool) -> list[str]:
    dataset, setting, method = key
    cell, reference, paper = cells[key], cells[dataset, setting, REFERENCE], PAPER[key]
    name = f"**{method}**" if method == REFERENCE else method
    row = [
        f"{TITLES[dataset]}, {name}",
        _errors(cell.best_on_test),
        f"{paper.mean:.4f} ± {paper.deviation:.4f}",
        f"{cell.best_on_test.mean - paper.mean:+.4f}",
        *(["", ""] if method == REFERENCE else _p_values(cell.best_on_test, reference.best_on_test, test_ratio)),
        "" if paper.p_value is None else f"{paper.p_value:.4f}",
        _errors(cell.by_leave_one_out),
        *(
            ["", ""]
            if method == REFERENCE
            else _p_values(cell.by_leave_one_out, reference.by_leave_one_out, test_ratio)
        ),
        f"{cell.seconds:.3f}",
        f"{paper.seconds:.3f}",
        f"{cell.ridge:g}",
        f"{cell.weight:g}" if cell.weight else "",
    ]
    return [*row, *([f"{cell.rounds:.0f}", f"{cell.kilobytes:.0f}"] if with_rounds else [])]


def _baseline_row(dataset: str, name: str, cell: BaselineCell, reference: TableCell, test_ratio: float) -> list[str]:
    return [
        f"{TITLES[dataset]}, *{name}*",
        _errors(cell.best_on_test),
        *["", ""],
        *_p_values(cell.best_on_test, reference.best_on_test, test_ratio),
        "",
        _errors(cell.by_leave_one_out),
        *_p_values(cell.by_leave_one_out, reference.by_leave_one_out, test_ratio),
        f"{cell.seconds:.3f}",
        *["", "", ""],
    ]


def _errors(errors: Errors) -> str:
    return f"{errors.mean:.4f} ± {errors.deviation:.4f}"


def _p_values(errors: Errors, reference: Errors, test_ratio: float) -> list[str]:
    """p-values of the paired t-test, plain and with the correction of Nadeau and Bengio."""
    return [_p(errors.p_value(reference)), _p(errors.corrected_p_value(reference, test_ratio))]


def _p(p_value: float) -> str:
    return f"{p_value:.4f}" if p_value >= 1e-4 else "<0.0001"


BASELINES = ("ridge", "Gaussian process", "Gaussian process, ARD", "random forest")
"""Baselines of the short table."""


def short_table(
    cells: Mapping[Cell, TableCell], baselines: Mapping[tuple[str, str], BaselineCell], n_agents: int
) -> str:
    """Means of SFR-ICR beside those of the paper and of the baselines."""
    header = ["test NRMSE (mean)"]
    for suffix in ("", f", {n_agents} agents"):
        header += [f"SFR-ICR{suffix}, best on test folds", "paper", "chosen by leave-one-out"]
    rows = []
    for dataset in DATASETS:
        row = [TITLES[dataset]]
        for setting in SETTINGS:
            cell, paper = cells[dataset, setting, REFERENCE], PAPER[dataset, setting, REFERENCE]
            row += [f"{value:.3f}" for value in (cell.best_on_test.mean, paper.mean, cell.by_leave_one_out.mean)]
        rows.append([*row, *(f"{baselines[dataset, name].by_leave_one_out.mean:.3f}" for name in BASELINES)])
    return table([*header, *BASELINES], rows)
