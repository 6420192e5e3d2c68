"""Turning a labelled table into the situation of the paper: few labels, several owners."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array


def hide_labels(y: Any, n_labels: int, rng: np.random.Generator) -> Array:
    """Targets with all but ``n_labels`` of the known ones replaced by NaN, chosen at random.

    >>> hidden = hide_labels([1.0, 2.0, 3.0, float("nan")], 2, np.random.default_rng(0))
    >>> int(np.isfinite(hidden).sum())
    2
    """
    hidden = np.array(y, dtype=np.float64)
    labeled = np.flatnonzero(~np.isnan(hidden))
    if not 1 <= n_labels <= len(labeled):
        raise ValueError(f"n_labels={n_labels} must be 1 to {len(labeled)}, the number of labelled rows")
    hidden[rng.permutation(labeled)[n_labels:]] = np.nan
    return hidden


def split_evenly(n_rows: int, n_agents: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """An agent number for every row: random, and as even as it goes.

    >>> np.bincount(split_evenly(7, 3, np.random.default_rng(0))).tolist()
    [3, 2, 2]
    """
    if not 1 <= n_agents <= n_rows:
        raise ValueError(f"n_agents={n_agents} must be 1 to n_samples={n_rows}: every agent needs a row")
    return rng.permutation(np.arange(n_rows) % n_agents)
