"""Sums over an agent's own rows, each counted for a cluster by its membership."""

from __future__ import annotations

from collections.abc import Iterator

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import ClusterSums, ClusterVariances
from dsfr.core.clustering.memberships import Weighting
from dsfr.core.scaling.affine import Ranges
from dsfr.storage.bundles import Bundle
from dsfr.training.scaled import is_small
from dsfr.training.scaling.survey import KEPT_RANGES
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array, at_least, optional
from dsfr.training.tasks.fields import CENTERS, CLUSTER_SUMS, CLUSTER_VARIANCES, SAMPLE, START, WEIGHTING
from dsfr.training.tasks.messages import pack, sample_in, unpack
from dsfr.training.tasks.registry import remember, task

remember(__name__, {"fuzzifier": START["fuzzifier"], "local_centers": CENTERS})
KNOWN = (*KEPT_RANGES, "fuzzifier")
"""What sums over clusters need of an agent's memory."""
KEPT_WEIGHTING = remember(__name__, WEIGHTING)
"""How rows count, where that is not the textbook's way."""


@task(
    verb="sum",
    stage="clusters",
    reveals="Averages of groups of rows: sums of rows weighted by membership.",
    broadcast={"centers": CENTERS, "sample": optional(SAMPLE)},
    contributes=CLUSTER_SUMS,
    needs=KNOWN,
    recalls=KEPT_WEIGHTING,
)
def cluster_sums(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): mass, total and objective of every cluster."""
    return memory, pack(own_sums(shard.sampled(sample_in(broadcast)), memory, broadcast["centers"]))


@task(
    verb="sum",
    stage="widths",
    reveals="Averages and variances of groups of rows.",
    broadcast={"centers": CENTERS},
    contributes=CLUSTER_VARIANCES,
    needs=KNOWN,
    recalls=KEPT_WEIGHTING,
)
def cluster_variances(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): spread about the agreed centers, which gives the pooled widths exactly."""
    return memory, pack(own_spread(shard, memory, broadcast["centers"]))


@task(
    verb="sum",
    stage="widths",
    reveals='Variances of groups of rows and the number of rows. With `width_pooling="paper"`.',
    broadcast={"centers": CENTERS},
    contributes={**CLUSTER_VARIANCES, "weight": array("k", rules=(at_least(0.0),))},
    needs=KNOWN,
    recalls=("local_centers", *KEPT_WEIGHTING),
)
def local_variances(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): local variances about local centers times the number of rows, paper eq. (18) and (19)."""
    spread = own_spread(shard, memory, memory.get("local_centers", broadcast["centers"]))
    weight = float(shard.n_samples) * (spread.mass > 0.0)
    contribution = {"mass": spread.mass, "weight": weight, "square": weight[:, None] * spread.variances}
    return memory, contribution


def own_sums(shard: Shard, memory: Bundle, centers: Array) -> ClusterSums:
    """Sums over an agent's own rows."""
    arguments = (centers, float(memory["fuzzifier"]))
    parts = (
        part
        for X, ranges in _rows_and_ranges(shard, memory)
        for part in ClusterSums.parts(X, *arguments, ranges, weighting_in(memory), fast=shard.fast)
    )
    return sum(parts, ClusterSums.none(centers))


def own_spread(shard: Shard, memory: Bundle, centers: Array) -> ClusterVariances:
    """Spread of an agent's own rows about ``centers``, the last that is asked of clusters."""
    arguments = (centers, float(memory["fuzzifier"]))
    parts = (
        part
        for X, ranges in _rows_and_ranges(shard, memory)
        for part in ClusterVariances.parts(X, *arguments, ranges, weighting_in(memory), fast=shard.fast)
    )
    spread = sum(parts, ClusterVariances.none(centers))
    shard.forget_scaled()
    return spread


def _rows_and_ranges(shard: Shard, memory: Bundle) -> Iterator[tuple[Array, Ranges | None]]:
    """One pass over the rows, and the ranges to scale them by; None where they are scaled.

    Compiled kernels scale on their way. Else scaled rows are kept from one step to the next.
    """
    ranges = unpack(Ranges, memory)
    if shard.fast or not is_small(shard.rows):
        return ((X, ranges) for X, _ in shard.batches())
    return iter([(shard.scaled(ranges), None)])


def weighting_in(memory: Bundle) -> Weighting:
    """How rows count in sums over clusters."""
    exponent = memory.get("membership_exponent")
    return Weighting(None if exponent is None else float(exponent), "nearest_only" in memory)
