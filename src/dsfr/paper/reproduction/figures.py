"""Figures like the paper's: mean and band of one standard deviation over the runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.paper.experiments.results import Row
from dsfr.paper.reproduction.claims import Evidence
from dsfr.paper.reproduction.figure_claims import grid_rows
from dsfr.paper.reproduction.published import ADMM_PENALTY, DATASETS, METHODS, PAPER, SETTINGS, TITLES
from dsfr.paper.reproduction.summary import few_runs_shift_the_mean, group_by, mean_curve, median_curve
from dsfr.storage.atomic import replacing

BLUE, ORANGE, GREEN, GRAY = "#0b62a4", "#d1570a", "#2e8540", "#8a8a8a"
DPI = 90
CONVERGENCE = ("airfoil", "ccpp", "kch", "wmsl")
"""Data sets of the paper's figure of convergence."""
CONVERGENCE_LINES = (
    ("paper", ORANGE, f"plain ADMM, rho = {ADMM_PENALTY:g} (paper)"),
    ("anderson", GREEN, "accelerated ADMM"),
    ("conjugate", BLUE, "conjugate residuals (default)"),
)
SMALLEST_EXCESS = 1e-9
"""Smaller excesses of the objective are drawn as this value."""
NAMES = ("overview", "convergence", "parameters", "pairs", "rules", "agents", "owners")


def require_matplotlib() -> Any:
    """Matplotlib's pyplot with a backend that needs no screen.

    Raises
    ------
    ImportError
        If matplotlib is not installed; the message says how to install it.
    """
    try:
        import matplotlib  # noqa: PLC0415 - optional: only figures need it
    except ImportError as error:
        raise ImportError("figures need matplotlib: pip install 'dsfr[reproduce]'") from error
    matplotlib.use("agg")
    from matplotlib import pyplot  # noqa: PLC0415

    return pyplot


def draw_figures(evidence: Evidence, folder: str | Path) -> list[Path]:
    """Draw all figures into a folder; each file has the name of its figure."""
    plt = require_matplotlib()
    plots: dict[str, Callable[[Any, Evidence], Any]] = {
        "overview": _overview,
        "convergence": _convergence,
        "parameters": _parameters,
        "pairs": _pairs,
        "rules": _rules,
        "agents": _agents,
        "owners": _owners,
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = []
    style = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
    }
    with plt.rc_context(style):
        for name in NAMES:
            figure = plots[name](plt, evidence)
            paths.append(Path(folder) / f"{name}.png")
            with replacing(paths[-1]) as file:
                figure.savefig(file, format="png", dpi=DPI, metadata={"Software": None})
            plt.close(figure)
    return paths


def _panels(plt: Any, n_rows: int, n_columns: int, height: float = 2.6, **options: Any) -> tuple[Any, Any]:
    size = (max(2.9 * n_columns, 6.0), height * n_rows)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained", **options)
    return figure, axes


def _sweep(axis: Any, rows: list[Row], x: str, color: str, label: str) -> None:
    """Mean and band of the NRMSE over ``x``, cut at 0, and its median (dashed) where it differs much from the mean."""
    values, means, deviations = mean_curve(rows, x)
    axis.plot(values, means, color=color, label=label, marker="o", markersize=3)
    band = {"color": color, "alpha": 0.15, "linewidth": 0}
    axis.fill_between(values, np.maximum(means - deviations, 0.0), means + deviations, **band)
    if few_runs_shift_the_mean(rows, x):
        axis.plot(values, median_curve(rows, x)[1], color=color, linestyle="--", linewidth=1)


def _overview(plt: Any, evidence: Evidence) -> Any:
    """Every cell of the table: our errors by both selections, and the paper's."""
    figure, axes = _panels(plt, len(SETTINGS), len(DATASETS), 2.9)
    y = np.arange(len(METHODS))[::-1]
    for i, setting in enumerate(SETTINGS):
        for j, dataset in enumerate(DATASETS):
            axis = axes[i][j]
            cells = [evidence.cells[dataset, setting, method] for method in METHODS]
            paper = [PAPER[dataset, setting, method] for method in METHODS]
            for shift, color, marker, label, points in (
                (
                    0.2,
                    BLUE,
                    "o",
                    "ours, best on the test folds",
                    [(c.best_on_test.mean, c.best_on_test.deviation) for c in cells],
                ),
                (
                    0.0,
                    GREEN,
                    "s",
                    "ours, leave-one-out",
                    [(c.by_leave_one_out.mean, c.by_leave_one_out.deviation) for c in cells],
                ),
                (-0.2, ORANGE, "D", "paper", [(p.mean, p.deviation) for p in paper]),
            ):
                means, bars = np.array(points).T
                drawn = {"fmt": marker, "color": color, "markersize": 4, "elinewidth": 1, "label": label}
                axis.errorbar(means, y + shift, xerr=bars, **drawn)
            top = max(
                1.05, max(c.best_on_test.mean + c.best_on_test.deviation for c in cells), max(p.mean for p in paper)
            )
            axis.set(title=f"{TITLES[dataset]}, {setting}", yticks=y, xlim=(0, min(1.08 * top, 2.6)))
            axis.set_yticklabels(METHODS if j == 0 else [])
            axis.set_xlabel("test NRMSE" if i else "")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _convergence(plt: Any, evidence: Evidence) -> Any:
    figure, axes = _panels(plt, 2, len(CONVERGENCE), 2.7)
    for j, dataset in enumerate(CONVERGENCE):
        for variant, color, label in CONVERGENCE_LINES:
            for i, (stage, name) in enumerate((("clusters", "Clusters"), ("weights", "Weights"))):
                rows = evidence.results.where("convergence", dataset=dataset, variant=variant, stage=stage)
                rounds, values = _histories(rows, excess=stage == "weights")
                scale = np.log10 if stage == "weights" else np.asarray
                mean, deviation = scale(values).mean(axis=0), scale(values).std(axis=0, ddof=1)
                lower, middle, upper = mean - deviation, mean, mean + deviation
                if stage == "weights":
                    lower, middle, upper = 10.0**lower, 10.0**middle, 10.0**upper
                axes[i][j].plot(rounds, middle, color=color, label=label)
                axes[i][j].fill_between(rounds, lower, upper, color=color, alpha=0.15, linewidth=0)
                axes[i][j].set(title=f"{name} on {TITLES[dataset]}", xscale="log")
        axes[1][j].set(yscale="log", xlabel="round")
    axes[0][0].set_ylabel("objective / pooled objective")
    axes[1][0].set_ylabel("relative excess of the objective")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def _histories(rows: list[Row], *, excess: bool) -> tuple[Array, Array]:
    """Rounds, and the ratio of each run's objective to its pooled value, or its excess over 1.

    After its last round a run keeps its last value.
    """
    longest = max(row["round"] for row in rows)
    rounds = np.unique(np.geomspace(1, longest, 60).astype(int)).astype(float)
    curves = []
    for run in group_by(rows, "repetition", "fold").values():
        seen = sorted(run, key=lambda row: row["round"])
        ratio = np.array([row["objective"] / row["objective_pooled"] for row in seen])
        values = np.maximum(ratio - 1.0, SMALLEST_EXCESS) if excess else ratio
        curves.append(np.interp(rounds, [row["round"] for row in seen], values))
    return rounds, np.array(curves)


def _parameters(plt: Any, evidence: Evidence) -> Any:
    datasets = evidence.results.spec("penalties")["datasets"]
    figure, axes = _panels(plt, 2, len(datasets))
    for j, dataset in enumerate(datasets):
        for varied, color, label in (("ridge", ORANGE, "ridge (mu)"), ("weight", BLUE, "consistency (gamma)")):
            _sweep(axes[0][j], grid_rows(evidence, dataset, varied), varied, color, label)
        for parameter, color in (("rho_p", ORANGE), ("rho_s", BLUE)):
            rows = evidence.results.where("penalties", dataset=dataset, parameter=parameter)
            _sweep(axes[1][j], rows, "value", color, parameter)
        for axis in (axes[0][j], axes[1][j]):
            axis.set(title=TITLES[dataset], xscale="log")
        axes[1][j].set_xlabel("value")
    for axis in axes[:, 0]:
        axis.set_ylabel("test NRMSE")
    for axis in axes[:, -1]:
        axis.legend(frameon=False)
    return figure


def _pairs(plt: Any, evidence: Evidence) -> Any:
    return _sweep_panels(plt, evidence, "pairs", xscale="log", xlabel="pairs per agent")


def _agents(plt: Any, evidence: Evidence) -> Any:
    return _sweep_panels(plt, evidence, "agents", xlabel="agents")


def _sweep_panels(plt: Any, evidence: Evidence, name: str, **options: Any) -> Any:
    """One panel per data set of an experiment that varies one number."""
    datasets = evidence.results.spec(name)["datasets"]
    figure, axes = _panels(plt, 1, len(datasets), 2.8)
    for axis, dataset in zip(axes[0], datasets, strict=True):
        _sweep(axis, evidence.results.where(name, dataset=dataset), name, BLUE, "")
        axis.set(title=TITLES[dataset], **options)
    axes[0][0].set_ylabel("test NRMSE")
    return figure


def _rules(plt: Any, evidence: Evidence) -> Any:
    spec = evidence.results.spec("rules")
    figure, axes = _panels(plt, 1, len(spec["datasets"]), 3.0)
    for axis, dataset in zip(axes[0], spec["datasets"], strict=True):
        for count, color in zip(spec["label_counts"], (BLUE, ORANGE, GREEN), strict=False):
            rows = evidence.results.where("rules", dataset=dataset, labels=count)
            _sweep(axis, rows, "rules", color, f"{count} labels")
        axis.set(title=TITLES[dataset], xlabel="rules", xticks=range(2, 21, 3))
    axes[0][0].set_ylabel("test NRMSE")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure


def _owners(plt: Any, evidence: Evidence) -> Any:
    spec = evidence.results.spec("owners")
    figure, axes = _panels(plt, 1, 1, 3.0)
    axis, x = axes[0][0], np.arange(len(spec["datasets"]))
    for k, (partition, color) in enumerate(zip(spec["partitions"], (GRAY, BLUE, ORANGE, GREEN), strict=True)):
        points = [
            mean_curve(evidence.results.where("owners", dataset=d, partition=partition), "agents")
            for d in spec["datasets"]
        ]
        means, bars = (np.array([point[part][0] for point in points]) for part in (1, 2))
        axis.errorbar(x + 0.15 * (k - 1.5), means, yerr=bars, fmt="o", color=color, markersize=4, label=partition)
    axis.set(xticks=x, ylabel="test NRMSE")
    axis.set_xticklabels([TITLES[dataset] for dataset in spec["datasets"]])
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    return figure
