"""Whether rows are those of an earlier training: what a checkpoint asks before it resumes."""

from __future__ import annotations

import zlib

import numpy as np

from dsfr.storage.bundles import Bundle
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array, at_least
from dsfr.training.tasks.registry import OTHER, task


@task(
    verb="sum",
    stage=OTHER,
    reveals="Whether rows have changed since a checkpoint: number of rows and labels, and a checksum.",
    broadcast={},
    contributes={"rows": array(3, rules=(at_least(0.0),))},
    limited=False,
    distinct=False,
    completed=False,
)
def identify(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): numbers that tell whether these are the rows of an earlier training, and nothing else of them."""
    crc = 0
    for X, y, weights in shard.weighted_batches():
        crc = zlib.crc32(y.tobytes(), zlib.crc32(X.tobytes(), crc))
        crc = crc if weights is None else zlib.crc32(weights.tobytes(), crc)
    return memory, {"rows": np.array([shard.n_samples, shard.n_labeled, crc], dtype=np.float64)}
