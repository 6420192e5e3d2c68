"""Quantiles of all features, by counting in two rounds: where ramps may start and end."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.knots import (
    N_THRESHOLDS,
    first_thresholds,
    is_two_valued,
    knots_of,
    padded,
    second_thresholds,
)
from dsfr.core.features.quantile_curves import Distribution
from dsfr.core.scaling.affine import Ranges
from dsfr.core.scaling.quantiles import counts_below
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.distillation.taught import KEPT_TEACHER, taught_rows
from dsfr.training.scaling.grid_counts import agree_grid_counts
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array, at_least
from dsfr.training.tasks.fields import ASCENDING
from dsfr.training.tasks.registry import task


@task(
    verb="max",
    stage="distillation",
    reveals="Extremes of single rows, within the limits of robust scaling: lowest and highest value of every feature.",
    broadcast={},
    contributes={"high": array("d"), "minus_low": array("d")},
)
def feature_extremes(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (max): lowest and highest value of every feature."""
    ranges = Ranges.none(shard.n_features)
    for X, _ in shard.batches():
        ranges |= Ranges.of(X)
    return memory, {"high": ranges.high, "minus_low": -ranges.low}


@task(
    verb="sum",
    stage="distillation",
    reveals="The distribution of every feature, one column at a time: how many values lie below thresholds.",
    broadcast={"thresholds": array("d", N_THRESHOLDS, rules=(ASCENDING,))},
    contributes={"counts": array("d", N_THRESHOLDS, rules=(at_least(0.0),))},
    needs=KEPT_TEACHER,
)
def feature_counts(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): how many values of each feature lie at or below each threshold."""
    thresholds = broadcast["thresholds"]
    counts = np.zeros_like(thresholds)
    for X, _ in taught_rows(shard, memory).batches():
        for j in range(shard.n_features):
            counts[j] += counts_below(X[:, j].astype(np.float64), thresholds[j])
    return memory, {"counts": counts}


def agree_knots(engine: Engine, ranges: Ranges) -> tuple[Array, list[int]]:
    """Knots of every feature, shape (d, knots), and which features have two values.

    Where sums alone leave the agents, knots lie on the grid of the declared ranges.
    """
    if engine.only_sums:
        return _grid_knots(agree_grid_counts(engine, ranges))
    seen = engine.max("feature_extremes", {})
    first = first_thresholds(-seen["minus_low"], seen["high"])
    counts = engine.sum("feature_counts", {"thresholds": first})["counts"]
    second = second_thresholds(first, counts)
    finer = engine.sum("feature_counts", {"thresholds": second})["counts"]
    binary = [j for j, counted in enumerate(counts) if is_two_valued(counted)]
    knots = np.stack([knots_of(*pair) for pair in zip(second, finer, strict=True)])
    for j in binary:
        knots[j] = padded(first[j, [0, -1]])
    return knots, binary


def _grid_knots(found: Distribution) -> tuple[Array, list[int]]:
    columns = [np.unique(values, return_index=True) for values in found.thresholds.T]
    pairs = [(values, counts[places]) for (values, places), counts in zip(columns, found.counts.T, strict=True)]
    for _, counts in pairs:
        counts[-1] = found.counts[-1, 0]
    binary = [j for j, (values, counts) in enumerate(pairs) if len(values) > 1 and is_two_valued(counts)]
    knots = np.stack([knots_of(*pair) for pair in pairs])
    for j in binary:
        knots[j] = padded(pairs[j][0][[0, -1]])
    return knots, binary
