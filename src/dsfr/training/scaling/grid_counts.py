"""The distribution of every feature where sums alone leave the agents: counts on a fixed grid, without few rows."""

from __future__ import annotations

import numpy as np

from dsfr.core.features.quantile_curves import Distribution
from dsfr.core.scaling.affine import Ranges
from dsfr.core.scaling.grid import MOST_VALUES, coarse_counts, grid
from dsfr.core.scaling.quantiles import counts_below
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array, at_least, number
from dsfr.training.tasks.fields import COUNT, RANGES
from dsfr.training.tasks.messages import pack, scalar, unpack
from dsfr.training.tasks.registry import task

LEAST_SPLIT = 5.0
"""Fewest rows of an agent that show between two values of the grid, as `Policy.min_split` has it."""


@task(
    verb="sum",
    stage="averaging",
    reveals="The distribution of every feature, one column at a time: how many values lie below round values of the "
    "declared range, moved so that no fewer than `least` of the agent's rows lie between two of them. Where sums alone "
    "leave the agents.",
    broadcast={**RANGES, "least": number(at_least(1.0))},
    contributes={"counts": array("d", MOST_VALUES, rules=(at_least(0.0),)), "n_samples": COUNT},
)
def grid_counts(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): how many values of each feature lie at or below each value of its grid, coarsely."""
    values = grid(unpack(Ranges, broadcast))
    counts = np.zeros_like(values)
    for X, _ in shard.batches():
        for j in range(shard.n_features):
            counts[j] += counts_below(X[:, j].astype(np.float64), values[j])
    coarse = [coarse_counts(counted, shard.n_samples, float(broadcast["least"])) for counted in counts]
    return memory, {"counts": np.stack(coarse), "n_samples": scalar(shard.n_samples)}


def agree_grid_counts(engine: Engine, ranges: Ranges) -> Distribution:
    """Counts of all rows on the grid of every feature, in one round; the last value is taken to hold all."""
    summed = engine.sum("grid_counts", {**pack(ranges), "least": scalar(LEAST_SPLIT)})
    counts = summed["counts"].T.copy()
    counts[-1] = float(summed["n_samples"])
    return Distribution(grid(ranges).T, counts)
