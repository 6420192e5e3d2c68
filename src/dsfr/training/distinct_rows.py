"""The rows of an agent that are left without duplicates, and how to walk through labelled or unlabelled ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import wraps

import numpy as np
import numpy.typing as npt

from dsfr.engines import Task
from dsfr.storage.bundles import Bundle
from dsfr.training.rows import Batch, DistinctRows
from dsfr.training.shard import Shard

NOTES = ("kept_rows", "kept_counts", "label_groups")
"""What agents remember of duplicates."""


def without_duplicates(task: Task) -> Task:
    """The same task on the rows that are left, once duplicates were found."""

    @wraps(task)
    def once(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
        return task(distinct_shard(shard, memory), memory, broadcast)

    return once


def distinct_shard(shard: Shard, memory: Bundle) -> Shard:
    """The shard without the rows that count as duplicates."""
    if "kept_rows" not in memory:
        return shard
    n_samples, n_labeled = memory["kept_counts"].tolist()
    return replace(shard, rows=DistinctRows(shard.rows, memory["kept_rows"], n_samples, n_labeled))


def notes_of(kept: npt.NDArray[np.bool_], labeled: npt.NDArray[np.bool_]) -> Bundle:
    """Which rows are left, and how many; nothing if all are."""
    if kept.all():
        return {}
    counts = np.array([np.count_nonzero(kept), np.count_nonzero(kept & labeled)], dtype=np.int64)
    return {"kept_rows": np.packbits(kept), "kept_counts": counts}


def of_kind(shard: Shard, *, labeled: bool) -> Iterator[Batch]:
    """Labelled rows, or unlabelled ones, batch by batch."""
    for X, y in shard.batches():
        wanted = np.isnan(y) != labeled
        yield (X, y) if wanted.all() else (X[wanted], y[wanted])


def is_labeled(shard: Shard) -> npt.NDArray[np.bool_]:
    """Which rows have a target; shape (n,)."""
    return np.concatenate([np.empty(0, dtype=bool), *(~np.isnan(y) for _, y in shard.batches())])


def labeled_rows(shard: Shard) -> Batch:
    """Labelled rows in memory; only for few."""
    parts = list(of_kind(shard, labeled=True))
    X = np.concatenate([np.empty((0, shard.n_features)), *(part.astype(np.float64) for part, _ in parts)])
    return X, np.concatenate([np.empty(0), *(targets for _, targets in parts)])
