"""Training rows, labels and test rows, drawn from a table by its name and a number: the same for every method."""

import zlib
from dataclasses import dataclass

import numpy as np

from benchmarks.tables.catalog import load

MAX_TRAIN, MAX_TEST = 6400, 2500
TEST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Draw:
    """One training table whose targets are known on some rows only (NaN elsewhere), and test rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    seed: int

    @property
    def labeled(self) -> tuple[np.ndarray, np.ndarray]:
        """Features and targets of the labelled rows, all that a supervised method has."""
        known = ~np.isnan(self.y)
        return self.X[known], self.y[known]


def draw_rows(name: str, labels: int | str, number: int) -> Draw | None:
    """Draw `number` of a table, with so many labels ("all": every training row); None if it has fewer rows.

    A quarter of the rows, at most 2,500, is for testing; of the others at most 6,400 are for training. Draws with
    different numbers of labels have the same rows, and more labels include fewer.
    """
    X, y, _ = load(name)
    seed = zlib.crc32(f"{name} {number}".encode())
    order = np.random.default_rng(seed).permutation(len(y))
    n_test = min(int(TEST_SHARE * len(y)), MAX_TEST)
    test, train = order[:n_test], order[n_test : n_test + MAX_TRAIN]
    n_labels = len(train) if labels == "all" else int(labels)
    if n_labels > len(train):
        return None
    known = np.full(len(train), np.nan)
    known[:n_labels] = y[train[:n_labels]]
    return Draw(X[train], known, X[test], y[test], seed % 2**31)
