"""The paper's real tables as arrays, for benchmarks."""

import sys

import numpy as np

from dsfr.paper.datasets import DatasetError, load_values

MISSED = 3
"""Exit code of a benchmark that ran to its end and missed a target; a crash has another exit code."""


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and target of one table; exits if it cannot be loaded."""
    try:
        values = load_values(name)
    except DatasetError as error:
        sys.exit(str(error))
    return values.X, values.y
