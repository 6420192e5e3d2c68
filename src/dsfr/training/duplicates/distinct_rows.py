"""The rows of an agent that are left without duplicates, and how to walk through labelled or unlabelled ones."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import IntArray
from dsfr.storage.bundles import Bundle
from dsfr.training.rows import Batch
from dsfr.training.shard import ForeignMemoryError, Shard
from dsfr.training.tasks.declaration import Field, Fields, optional, within
from dsfr.training.tasks.registry import remember
from dsfr.training.tasks.symbols import MOST

NOTE_FIELDS: Fields = {
    "kept_rows": optional(Field(("b",), dtype="uint8")),
    "kept_counts": Field((2,), (within(0, 2**53),), "int64", beside="kept_rows"),
    "label_groups": optional(Field(("g",), (within(0, MOST["g"] - 1),), "int64")),
}
NOTES = remember(__name__, NOTE_FIELDS)
"""What agents remember of duplicates: which rows are left, how many and how many labelled, and numbers of groups of
labelled rows that are left out together."""


def notes_of(kept: npt.NDArray[np.bool_], labeled: npt.NDArray[np.bool_]) -> Bundle:
    """Which rows are left, and how many; nothing if all are."""
    if kept.all():
        return {}
    counts = np.array([np.count_nonzero(kept), np.count_nonzero(kept & labeled)], dtype=np.int64)
    return {"kept_rows": np.packbits(kept), "kept_counts": counts}


def of_kind(shard: Shard, *, labeled: bool) -> Iterator[Batch]:
    """Labelled rows, or unlabelled ones, batch by batch."""
    if labeled:
        yield from shard.labeled().batches()
        return
    for X, y in shard.batches():
        wanted = np.isnan(y)
        yield (X, y) if wanted.all() else (X[wanted], y[wanted])


def is_labeled(shard: Shard) -> npt.NDArray[np.bool_]:
    """Which rows have a target; shape (n,)."""
    return np.concatenate([np.empty(0, dtype=bool), *(~np.isnan(y) for _, y in shard.batches())])


def labeled_rows(shard: Shard) -> Batch:
    """Labelled rows in memory; only for few."""
    parts = list(of_kind(shard, labeled=True))
    X = np.concatenate([np.empty((0, shard.n_features)), *(part.astype(np.float64) for part, _ in parts)])
    return X, np.concatenate([np.empty(0), *(targets for _, targets in parts)])


def rows_of_groups(groups: IntArray, start: int, stop: int) -> IntArray:
    """Numbers of the groups of consecutive labelled rows.

    Raises
    ------
    ForeignMemoryError
        If there are more rows than numbers.
    """
    if stop > len(groups):
        raise ForeignMemoryError(
            f"'label_groups' is of {len(groups)} labelled rows, and the agent has {stop} or more: train from the start"
        )
    return groups[start:stop]
