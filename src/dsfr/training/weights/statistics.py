"""Summed statistics of an agent's rows: labelled ones, and pairs or neighbors of unlabelled ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.basis import Basis
from dsfr.core.penalties.graph_laplacian import laplacian_gram
from dsfr.core.penalties.interpolation_consistency import POOL_ROWS, PairDraw, gap_gram, near_pairs
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.statistics import Statistics
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.messages import pack_statistics, scalar, told_ranges, unpack_basis
from dsfr.training.rows import collect, pick
from dsfr.training.settings import Settings
from dsfr.training.shard import Purpose, Shard

AS_MANY_AS_ROWS = -1


def statistics(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): the agent's part of all statistics."""
    with_penalty = "n_pairs" in broadcast or "n_neighbors" in broadcast
    return memory, pack_statistics(own_statistics(shard, memory, broadcast), with_penalty=with_penalty)


def penalty_on_unlabeled(settings: Settings) -> Bundle:
    """Which penalty, told by the presence of its numbers."""
    if settings.unlabeled == "icr":
        n_pairs = AS_MANY_AS_ROWS if settings.n_pairs is None else settings.n_pairs
        near = {"near": scalar(1.0)} if settings.pairs == "local" else {}
        return {
            "n_pairs": np.asarray(n_pairs, dtype=np.int64),
            "mix_concentration": scalar(settings.mix_concentration),
            **near,
        }
    if settings.unlabeled == "graph":
        n_neighbors = 0 if settings.graph == "full" else settings.n_neighbors
        return {"n_neighbors": np.asarray(n_neighbors, dtype=np.int64)}
    return {}


def own_statistics(shard: Shard, memory: Bundle, broadcast: Bundle) -> Statistics:
    """Statistics of an agent's own rows."""
    basis, ranges = unpack_basis(broadcast), told_ranges(memory, broadcast)
    mean, scale = float(broadcast["target_mean"]), float(broadcast["target_scale"])
    with single_threaded_blas():
        parts = (
            part
            for X, y in shard.batches()
            for part in Statistics.parts(X, (y - mean) / scale, basis, ranges, fast=shard.fast)
        )
        labeled = sum(parts, Statistics.none(basis.n_outputs))
        if "n_pairs" in broadcast:
            return replace(labeled, unlabeled_gram=pair_gram(shard, memory, broadcast, basis))
    if "n_neighbors" in broadcast:
        X = scale_features(collect(shard.rows)[0], ranges)
        gram = laplacian_gram(X, basis, n_neighbors=int(broadcast["n_neighbors"]) or None)
        return replace(labeled, unlabeled_gram=gram)
    return labeled


def pair_gram(shard: Shard, memory: Bundle, told: Bundle, basis: Basis, repeat: int = 0) -> Array:
    """``B'B`` of freshly drawn pairs: their numbers are drawn first, so that one pass finds the rows."""
    n_pairs, n_unlabeled = int(told["n_pairs"]), shard.n_samples - shard.rows.n_labeled
    draw = PairDraw(None if n_pairs == AS_MANY_AS_ROWS else n_pairs, float(told["mix_concentration"]))
    rng = shard.rng(int(memory["seed"]), Purpose.PAIRS, repeat or int(told.get("variation", 0)))
    pairs = draw.pairs(n_unlabeled, rng)
    near = "near" in told and n_unlabeled > 0
    pool = rng.integers(n_unlabeled, size=POOL_ROWS) if near else np.empty(0, dtype=np.int64)
    wanted, pairs, pool = pairs.compact(pool)
    X = scale_features(pick(shard.rows, wanted, unlabeled=True), told_ranges(memory, told))
    factor = draw.weight(n_unlabeled)
    if near:
        pairs, rescaling = near_pairs(X, pairs, pool, told.get("stretch"))
        factor *= rescaling
    return factor * gap_gram(X, pairs, basis)
