"""Read the stored results of all experiments and check that they are complete."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dsfr.paper.experiments.complexity import VALUES
from dsfr.paper.experiments.convergence import VARIANTS
from dsfr.paper.experiments.deviations import DEVIATIONS
from dsfr.paper.experiments.results import ResultsError, Row, read_metadata, read_results

REQUIRED = (
    *("grid", "fits", "admm", "baselines", "convergence", "deviations", "complexity"),
    *("penalties", "pairs", "rules", "agents", "owners"),
)
"""Experiments that the report needs."""
METHODS_PER_FIT = 5
SETTINGS_PER_FIT = 2


@dataclass(frozen=True, slots=True)
class Results:
    """Rows and metadata of all experiments, by the name of the experiment."""

    rows: Mapping[str, list[Row]]
    metadata: Mapping[str, dict[str, Any]]

    @classmethod
    def read(cls, folder: str | Path) -> Results:
        """Results of all experiments in a folder.

        Raises
        ------
        ResultsError
            If an experiment, or a point of one, is missing.
        """
        rows = {name: read_results(folder, name) for name in REQUIRED}
        metadata = {name: read_metadata(Path(folder) / f"{name}.json") for name in REQUIRED}
        for name in REQUIRED:
            check_complete(name, rows[name], metadata[name]["spec"])
        return cls(rows, metadata)

    def spec(self, name: str) -> dict[str, Any]:
        """The spec of an experiment."""
        spec: dict[str, Any] = self.metadata[name]["spec"]
        return spec

    def n_runs(self, experiment: str) -> int:
        """Runs on each data set."""
        return n_runs(self.spec(experiment))

    def where(self, experiment: str, **wanted: Any) -> list[Row]:
        """Rows of an experiment whose columns have these values."""
        return [row for row in self.rows[experiment] if all(row[name] == value for name, value in wanted.items())]


def n_runs(spec: Mapping[str, Any]) -> int:
    """Runs of an experiment on each data set."""
    return int(spec["repetitions"] * spec["test_folds"])


def check_complete(name: str, rows: Iterable[Row], spec: Mapping[str, Any]) -> None:
    """Check that every combination of settings on every data set has all its runs.

    Raises
    ------
    ResultsError
        If runs are missing; the message names the first combination.
    """
    keys, runs, n_points = POINTS[spec["kind"]], n_runs(spec), _n_points(spec)
    # A convergence history is counted by its last round.
    found = Counter((row["dataset"], *(row[key] for key in keys)) for row in rows if row.get("last", True))
    for dataset in spec["datasets"]:
        count = sum(point[0] == dataset for point in found)
        if count != n_points:
            raise ResultsError(f"results of {name!r} have {count} points of {dataset}, not {n_points}")
    for point, count in found.items():
        if count != runs:
            raise ResultsError(f"results of {name!r} have {count} runs of {', '.join(map(str, point))}, not {runs}")


POINTS: dict[str, tuple[str, ...]] = {
    "grid": ("setting", "method", "ridge", "weight"),
    "fits": ("setting", "method"),
    "admm": ("method",),
    "deviations": ("deviation",),
    "complexity": ("parameter", "value", "stage"),
    "baselines": ("method", "alpha"),
    "convergence": ("variant", "stage"),
    "penalties": ("parameter", "value"),
    "pairs": ("pairs",),
    "rules": ("rules", "labels"),
    "agents": ("partition", "agents"),
}
"""Columns that, with the data set, identify one point (combination of settings) of each kind of experiment."""


def _n_points(spec: Mapping[str, Any]) -> int:
    grid, values = len(spec["grid"]), len(spec["values"])
    return {
        "grid": SETTINGS_PER_FIT * (2 * grid + 3 * grid**2),
        "fits": SETTINGS_PER_FIT * METHODS_PER_FIT,
        "admm": METHODS_PER_FIT,
        "deviations": len(DEVIATIONS) + 1,
        "complexity": 2 * (values + sum(map(len, VALUES.values()))),
        "baselines": len(spec["alphas"]) + 3,
        "convergence": 2 * len(VARIANTS),
        "penalties": 2 * grid,
        "pairs": values,
        "rules": values * max(len(spec["label_counts"]), 1),
        "agents": max(values, 1) * len(spec["partitions"]),
    }[spec["kind"]]
