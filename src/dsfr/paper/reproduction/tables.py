"""Table II beside ours, as blocks of a document."""

from __future__ import annotations

from dsfr.paper.experiments.selection import Cell
from dsfr.paper.reproduction.document import Table
from dsfr.paper.reproduction.paper import DATASETS, METHODS, PAPER, SETTINGS, TITLES
from dsfr.paper.reproduction.summary import OURS, BaselineCell, Errors, TableCell

HEADER = (
    *("data, method", "best on test folds", "paper", "difference", "p", "p, corrected"),
    *("p, paper", "chosen by leave-one-out", "p", "p, corrected"),
    *("seconds", "seconds, paper", "ridge", "weight"),
)


def setting_table(
    cells: dict[Cell, TableCell], setting: str, baselines: dict[tuple[str, str], BaselineCell], test_ratio: float
) -> Table:
    """One setting of Table II; baselines stand below the methods where there are any."""
    extra = ("rounds", "kB") if setting == "distributed" else ()
    rows = []
    for dataset in DATASETS:
        rows += [
            _method_row(cells, (dataset, setting, method), test_ratio, with_rounds=bool(extra)) for method in METHODS
        ]
        reference = cells[dataset, setting, OURS]
        found = {name: cell for (where, name), cell in baselines.items() if where == dataset}
        rows += [_baseline_row(dataset, name, cell, reference, test_ratio) for name, cell in found.items()]
    return Table((*HEADER, *extra), rows)


def _method_row(cells: dict[Cell, TableCell], key: Cell, test_ratio: float, *, with_rounds: bool) -> list[str]:
    dataset, setting, method = key
    cell, reference, paper = cells[key], cells[dataset, setting, OURS], PAPER[key]
    name = f"**{method}**" if method == OURS else method
    row = [
        f"{TITLES[dataset]}, {name}",
        _errors(cell.best),
        f"{paper.mean:.4f} ± {paper.deviation:.4f}",
        f"{cell.best.mean - paper.mean:+.4f}",
        *(["", ""] if method == OURS else _p_values(cell.best, reference.best, test_ratio)),
        "" if paper.p_value is None else f"{paper.p_value:.4f}",
        _errors(cell.honest),
        *(["", ""] if method == OURS else _p_values(cell.honest, reference.honest, test_ratio)),
        f"{cell.seconds:.3f}",
        f"{paper.seconds:.3f}",
        f"{cell.ridge:g}",
        f"{cell.weight:g}" if cell.weight else "",
    ]
    return [*row, *([f"{cell.rounds:.0f}", f"{cell.kilobytes:.0f}"] if with_rounds else [])]


def _baseline_row(dataset: str, name: str, cell: BaselineCell, reference: TableCell, test_ratio: float) -> list[str]:
    return [
        f"{TITLES[dataset]}, *{name}*",
        _errors(cell.best),
        *["", ""],
        *_p_values(cell.best, reference.best, test_ratio),
        "",
        _errors(cell.honest),
        *_p_values(cell.honest, reference.honest, test_ratio),
        f"{cell.seconds:.3f}",
        *["", "", ""],
    ]


def _errors(errors: Errors) -> str:
    return f"{errors.mean:.4f} ± {errors.deviation:.4f}"


def _p_values(errors: Errors, reference: Errors, test_ratio: float) -> list[str]:
    """Of the paired t-test, and with the correction of Nadeau and Bengio."""
    return [_p(errors.p_value(reference)), _p(errors.corrected_p_value(reference, test_ratio))]


def _p(p_value: float) -> str:
    return f"{p_value:.4f}" if p_value >= 1e-4 else "<0.0001"


BESIDE = ("ridge", "Gaussian process", "Gaussian process, ARD", "random forest")
"""Baselines of the short table."""


def short_table(cells: dict[Cell, TableCell], baselines: dict[tuple[str, str], BaselineCell], n_agents: int) -> Table:
    """SFR-ICR beside the paper and the baselines, means only."""
    header = ["test NRMSE (mean)"]
    for place in ("", f", {n_agents} agents"):
        header += [f"SFR-ICR{place}, best on test folds", "paper", "chosen by leave-one-out"]
    rows = []
    for dataset in DATASETS:
        row = [TITLES[dataset]]
        for setting in SETTINGS:
            cell, paper = cells[dataset, setting, OURS], PAPER[dataset, setting, OURS]
            row += [f"{value:.3f}" for value in (cell.best.mean, paper.mean, cell.honest.mean)]
        rows.append([*row, *(f"{baselines[dataset, name].honest.mean:.3f}" for name in BESIDE)])
    return Table([*header, *BESIDE], rows)
