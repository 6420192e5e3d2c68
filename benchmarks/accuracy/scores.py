"""Scores as rows of a CSV file: one per table, number of labels, draw and method. Rows are appended, never lost."""

import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "accuracy"
PEERS, BEFORE = RESULTS / "peers.csv", RESULTS / "before.csv"
"""Scores of peers, and of the version that a release is compared with."""
SUMMARIES = Path(os.environ.get("DSFR_SCORES", ROOT / "benchmarks" / "results"))
"""Folder of summaries and pictures; trials name another one with DSFR_SCORES, for their scores too."""
OURS = {name: Path(os.environ.get("DSFR_SCORES", RESULTS)) / f"{name}.csv" for name in ("design", "judged")}
KEYS = ["table", "labels", "draw", "method"]
LEVELS = (80, 90, 95)
"""Percentages of the intervals whose coverage and width are stored."""
COLUMNS = [
    *KEYS,
    "nrmse",
    "seconds",
    *(f"{measure}{level}" for level in LEVELS for measure in ("coverage", "width")),
    "conditions",
    "terms",
    "version",
]


def nrmse(y: np.ndarray, predicted: np.ndarray) -> float:
    """Root mean squared error over the standard deviation of the test targets (with n - 1)."""
    return float(np.sqrt(np.mean((predicted - y) ** 2)) / np.std(y, ddof=1))


def interval_measures(y: np.ndarray, level: int, limits: np.ndarray) -> dict[str, float]:
    """Share of targets within the limits, and their mean distance over the deviation of the targets."""
    lower, upper = limits.T
    covered = np.mean((y >= lower) & (y <= upper))
    return {f"coverage{level}": float(covered), f"width{level}": float(np.mean(upper - lower) / np.std(y, ddof=1))}


def read_scores(path: Path) -> pd.DataFrame:
    """All rows of a file; of rows with the same keys the last one."""
    text = path.read_text() if path.exists() else ",".join(COLUMNS)
    rows = pd.read_csv(io.StringIO(text), dtype={"labels": str, "version": str})
    return rows.astype(dict.fromkeys(COLUMNS[len(KEYS) : -1], float)).drop_duplicates(KEYS, keep="last")


def append_score(path: Path, row: dict[str, Any]) -> None:
    """Add one row, with four significant digits."""
    values = [row.get(column, "") for column in COLUMNS]
    cells = [f"{value:.4g}" if isinstance(value, float) else str(value) for value in values]
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a") as file:
        file.write((",".join(COLUMNS) + "\n" if new else "") + ",".join(cells) + "\n")
