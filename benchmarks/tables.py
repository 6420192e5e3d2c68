"""The paper's real tables as arrays, for benchmarks."""

import sys

import numpy as np

from dsfr.paper.datasets import DatasetError, load_values

MISSED = 3
"""Exit code of a benchmark that ran to its end and missed what it should reach; a crash has another."""


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and target of one table, or the end of the program."""
    try:
        values = load_values(name)
    except DatasetError as error:
        sys.exit(str(error))
    return values.X, values.y
