"""The paper's real tables, read from the folder that ``DSFR_DATA_HOME`` names."""

import os
import sys
from pathlib import Path

import numpy as np

MISSED = 3
"""Exit code of a benchmark that ran to its end and missed what it should reach; a crash has another."""


def data_home() -> Path | None:
    """The folder of the data sets, if there is one."""
    home = os.environ.get("DSFR_DATA_HOME")
    return Path(home) if home and Path(home).is_dir() else None


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and target (the last column) of one table."""
    home = data_home()
    if home is None:
        sys.exit("DSFR_DATA_HOME must name the folder with airfoil.csv.gz, ccpp.csv.gz, ...")
    values = np.loadtxt(home / f"{name}.csv.gz", delimiter=",", skiprows=1)
    return values[:, :-1], values[:, -1]
