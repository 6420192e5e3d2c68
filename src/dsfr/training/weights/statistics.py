"""Summed statistics of an agent's rows: labelled ones, and pairs or neighbors of unlabelled ones."""

from __future__ import annotations

from dataclasses import replace

from dsfr.core.solve.statistics import Statistics
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.penalties import NO_PENALTY, penalty_in
from dsfr.training.scaling.survey import KEPT_SCALING
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array
from dsfr.training.tasks.fields import BASIS_OR_EFFECTS, SCORE, STATISTICS, problem_fields
from dsfr.training.tasks.messages import pack_statistics, scaling_ranges, unpack_basis
from dsfr.training.tasks.registry import remember, task

KEPT_QUADRATIC = remember(__name__, {"curvature": array("p", "p"), "moment": array("p"), "constant": SCORE})
"""The agent's own objective, see `Quadratic`."""
remember(__name__, {"root": array("p", "p")})


@task(
    verb="sum",
    stage="statistics",
    reveals="Everything the model depends on: `A = H'H`, the Gram matrix of the penalty, `b = H'y`. With fewer labels "
    "than weights, nearly the labelled rows.",
    broadcast=problem_fields(BASIS_OR_EFFECTS),
    contributes=STATISTICS,
    needs=KEPT_SCALING,
)
def statistics(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): the agent's part of all statistics."""
    with_penalty = penalty_in(broadcast) != NO_PENALTY
    return memory, pack_statistics(own_statistics(shard, memory, broadcast), with_penalty=with_penalty)


def own_statistics(shard: Shard, memory: Bundle, broadcast: Bundle) -> Statistics:
    """Statistics of an agent's own rows."""
    basis, ranges = unpack_basis(broadcast), scaling_ranges(memory, broadcast)
    mean, scale = float(broadcast["target_mean"]), float(broadcast["target_scale"])
    with single_threaded_blas():
        parts = (
            part
            for X, y, weights in shard.labeled().weighted_batches()
            for part in Statistics.parts(X, (y - mean) / scale, basis, ranges, weights, fast=shard.fast)
        )
        labeled = sum(parts, Statistics.none(basis.n_outputs))
    penalty = penalty_in(broadcast)
    if penalty == NO_PENALTY:
        return labeled
    return replace(labeled, unlabeled_gram=penalty.gram(shard, memory, broadcast, basis))
