"""Partitions of dask data frames as the rows of agents: what runs on the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dsfr.core.compiled import worthwhile
from dsfr.training.rows import ArrayRows
from dsfr.training.shard import Shard, agent_key

_TARGET = "dsfr target"


def compute_shard(name: str, graph: Mapping[Any, Any], keys: Sequence[Any], names: Sequence[str]) -> Shard:
    """The rows of an agent, from the tasks that make its partitions: all within one, so that nothing else stays.

    Dask would keep what each task has made until the next one runs, on workers that it may have paused meanwhile.
    """
    from dask.local import get_sync

    return make_shard(name, get_sync(dict(graph), list(keys)), names)


def with_target(X: Any, y: Any) -> Any:
    """A partition with its targets as a last column."""
    if len(X) != len(y):
        raise ValueError(f"a partition of X has {len(X)} rows and that of y {len(y)}: take both from one data frame")
    X = X.copy(deep=False)
    X.insert(X.shape[1], _TARGET, y.to_numpy(dtype=np.float64, na_value=np.nan), allow_duplicates=True)
    return X


def make_shard(name: str, parts: Sequence[Any], names: Sequence[str]) -> Shard:
    """The rows of an agent, checked."""
    n_rows = [len(part) for part in parts]
    X, y = np.empty((sum(n_rows), len(names))), np.empty(sum(n_rows))
    for part, end in zip(parts, np.cumsum(n_rows), strict=True):
        # Column by column, because a frame as one array would be one copy more.
        for j in range(len(names)):
            X[end - len(part) : end, j] = part.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan)
        y[end - len(part) : end] = part.iloc[:, -1]
    counts = [int(np.count_nonzero(~np.isfinite(X[:, j]))) for j in range(len(names))]
    if any(counts):
        bad = [f"{feature} ({count} rows)" for feature, count in zip(names, counts, strict=True) if count]
        raise ValueError(f"agent {name!r}: X is missing or infinite in {', '.join(bad)}: fill or drop these rows")
    if np.isinf(y).any():
        raise ValueError(f"agent {name!r}: y contains infinity: targets must be finite, or NaN where unlabelled")
    return Shard(ArrayRows(X, y), agent_key(name), worthwhile(len(y)))
