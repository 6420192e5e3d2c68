"""Table II beside ours, as blocks of a document."""

from __future__ import annotations

from dsfr.paper.experiments.selection import Cell
from dsfr.paper.reproduction.document import Table
from dsfr.paper.reproduction.paper import DATASETS, METHODS, PAPER, SETTINGS, TITLES
from dsfr.paper.reproduction.summary import OURS, BaselineCell, Errors, TableCell

HEADER = (
    *("data, method", "best on test folds", "paper", "difference", "p", "p, paper", "chosen by leave-one-out", "p"),
    *("seconds", "seconds, paper", "ridge", "weight"),
)


def setting_table(cells: dict[Cell, TableCell], setting: str, baselines: dict[tuple[str, str], BaselineCell]) -> Table:
    """One setting of Table II; baselines stand below the methods where there are any."""
    extra = ("rounds", "kB") if setting == "distributed" else ()
    rows = []
    for dataset in DATASETS:
        rows += [_method_row(cells, dataset, setting, method, with_rounds=bool(extra)) for method in METHODS]
        reference = cells[dataset, setting, OURS]
        found = {name: cell for (where, name), cell in baselines.items() if where == dataset}
        rows += [_baseline_row(dataset, name, cell, reference) for name, cell in found.items()]
    return Table((*HEADER, *extra), rows)


def _method_row(
    cells: dict[Cell, TableCell], dataset: str, setting: str, method: str, *, with_rounds: bool
) -> list[str]:
    cell, reference = cells[dataset, setting, method], cells[dataset, setting, OURS]
    paper = PAPER[dataset, setting, method]
    name = f"**{method}**" if method == OURS else method
    row = [
        f"{TITLES[dataset]}, {name}",
        _errors(cell.best),
        f"{paper.mean:.4f} ± {paper.deviation:.4f}",
        f"{cell.best.mean - paper.mean:+.4f}",
        "" if method == OURS else _p(cell.best.p_value(reference.best)),
        "" if paper.p_value is None else f"{paper.p_value:.4f}",
        _errors(cell.honest),
        "" if method == OURS else _p(cell.honest.p_value(reference.honest)),
        f"{cell.seconds:.3f}",
        f"{paper.seconds:.3f}",
        f"{cell.ridge:g}",
        f"{cell.weight:g}" if cell.weight else "",
    ]
    return [*row, *([f"{cell.rounds:.0f}", f"{cell.kilobytes:.0f}"] if with_rounds else [])]


def _baseline_row(dataset: str, name: str, cell: BaselineCell, reference: TableCell) -> list[str]:
    return [
        f"{TITLES[dataset]}, *{name}*",
        _errors(cell.best),
        *["", ""],
        _p(cell.best.p_value(reference.best)),
        "",
        _errors(cell.honest),
        _p(cell.honest.p_value(reference.honest)),
        f"{cell.seconds:.3f}",
        *["", "", ""],
    ]


def _errors(errors: Errors) -> str:
    return f"{errors.mean:.4f} ± {errors.deviation:.4f}"


def _p(p_value: float) -> str:
    return f"{p_value:.4f}" if p_value >= 1e-4 else "<0.0001"


BESIDE = ("ridge", "Gaussian process", "Gaussian process, ARD", "random forest")
"""Baselines of the short table."""


def short_table(cells: dict[Cell, TableCell], baselines: dict[tuple[str, str], BaselineCell]) -> Table:
    """SFR-ICR beside the paper and the baselines, means only."""
    header = ["test NRMSE (mean)"]
    for place in ("", ", 5 agents"):
        header += [f"SFR-ICR{place}, best on test folds", "paper", "chosen by leave-one-out"]
    rows = []
    for dataset in DATASETS:
        row = [TITLES[dataset]]
        for setting in SETTINGS:
            cell, paper = cells[dataset, setting, OURS], PAPER[dataset, setting, OURS]
            row += [f"{value:.3f}" for value in (cell.best.mean, paper.mean, cell.honest.mean)]
        rows.append([*row, *(f"{baselines[dataset, name].honest.mean:.3f}" for name in BESIDE)])
    return Table([*header, *BESIDE], rows)
