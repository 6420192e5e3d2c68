"""Sums over an agent's own rows, each counted for a cluster by its membership."""

from __future__ import annotations

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import ClusterSums, ClusterVariances
from dsfr.core.scaling.affine import Ranges
from dsfr.storage.bundles import Bundle
from dsfr.training.messages import pack, unpack
from dsfr.training.shard import Shard


def cluster_sums(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): mass, total and objective of every cluster."""
    return memory, pack(own_sums(shard, memory, broadcast["centers"]))


def cluster_spread(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): spread about the agreed centers, which gives the pooled widths exactly."""
    return memory, pack(own_spread(shard, memory, broadcast["centers"]))


def local_spread(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): local variances about local centers times the number of rows, paper eq. (18) and (19)."""
    spread = own_spread(shard, memory, memory.get("local_centers", broadcast["centers"]))
    weight = shard.n_samples * (spread.mass > 0.0)
    contribution = {"mass": spread.mass, "weight": weight, "square": weight[:, None] * spread.variances}
    return memory, contribution


def own_sums(shard: Shard, memory: Bundle, centers: Array) -> ClusterSums:
    """Sums over an agent's own rows."""
    told = (centers, float(memory["fuzzifier"]), unpack(Ranges, memory))
    parts = (part for X, _ in shard.batches() for part in ClusterSums.parts(X, *told, fast=shard.fast))
    return sum(parts, ClusterSums.none(centers))


def own_spread(shard: Shard, memory: Bundle, centers: Array) -> ClusterVariances:
    """Spread of an agent's own rows about ``centers``."""
    told = (centers, float(memory["fuzzifier"]), unpack(Ranges, memory))
    parts = (part for X, _ in shard.batches() for part in ClusterVariances.parts(X, *told, fast=shard.fast))
    return sum(parts, ClusterVariances.none(centers))
