"""How many cases a test of faults tries, and where their randomness comes from."""

import os
from collections import Counter
from pathlib import Path

import numpy as np

FACTOR = float(os.environ.get("DSFR_TORTURE", "1"))
"""Factor on the number of cases; ``make torture`` sets it."""
SEED = int(os.environ.get("DSFR_TEST_SEED", "0"))


def n_cases(usual: int) -> int:
    """Number of cases to try where a quick run tries this many."""
    return max(1, round(FACTOR * usual))


def random_of(name: str) -> np.random.Generator:
    """Random numbers of one test, by the seed of the run and the test's name."""
    return np.random.default_rng([SEED, *name.encode()])


def write_rows(path: Path, n_rows: int = 60, offset: float = 0.0) -> Path:
    """A CSV file with three features and a target, a third of it labelled."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.0, 1.0, (n_rows, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + offset
    lines = [
        ",".join(map(repr, row.tolist())) + f",{value if i % 3 == 0 else ''}"
        for i, (row, value) in enumerate(zip(X, y, strict=True))
    ]
    path.write_text("a,b,c,y\n" + "\n".join(lines) + "\n")
    return path


def record(record_property, outcomes: Counter) -> None:
    """Keep the counts of a test's outcomes, for the table of ``make torture``."""
    for outcome, count in outcomes.items():
        record_property(outcome, count)
