"""DFCM as the paper prints it: agents announce their centers and duals, and stop by differences of iterates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo, dual_residual, local_centers
from dsfr.core.consensus.iterate_differences import largest_disagreement, largest_dual_change
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.clustering.cluster_sums import KNOWN, own_sums
from dsfr.training.rounds import CLUSTERS, Observer, of_all_agents
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array, optional
from dsfr.training.tasks.fields import CENTERS, POSITIVE, SCORE, WEIGHTING
from dsfr.training.tasks.messages import scalar
from dsfr.training.tasks.registry import remember, task

if TYPE_CHECKING:
    from dsfr.training.solvers import ADMM

remember(__name__, {"center_dual": array("k", "d")}, transient=True)


@task(
    verb="gather",
    stage="clusters",
    reveals="Averages of groups of rows of every agent, seen as they are, every round. With "
    '`ADMM(stopping="paper")`, for clusters.',
    broadcast={"centers": CENTERS, "penalty": POSITIVE},
    contributes={"centers": CENTERS, "dual": array("k", "d"), "objective": SCORE},
    needs=KNOWN,
    # The dual goes on from this agent's centers; centers without a dual are those of an earlier clustering.
    recalls={"local_centers": CENTERS, "center_dual": optional(array("k", "d"), beside="local_centers"), **WEIGHTING},
    remembers=("local_centers", "center_dual"),
)
def dfcm_round(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (gather): one round of paper Algorithm 1: duals (25) of the round before, memberships (5), centers (26)."""
    consensus, penalty = broadcast["centers"], float(broadcast["penalty"])
    centers, dual = consensus, np.zeros_like(consensus)
    if "center_dual" in memory:
        centers = memory["local_centers"]
        dual = memory["center_dual"] + penalty * (centers - consensus)
    sums = own_sums(shard, memory, centers)
    moved = local_centers(sums, consensus, consensus + dual / penalty, penalty)
    contribution = {"centers": moved, "dual": dual, "objective": scalar(sums.objective)}
    return {**memory, "local_centers": moved, "center_dual": dual}, contribution


def paper_centers(engine: Engine, solver: ADMM, centers: Array, observe: Observer) -> tuple[Array, bool]:
    """Global centers (27), and whether the tests (30) and (31) were passed with the threshold ``tol``."""
    penalty, previous = float(solver.cluster_penalty or 0.0), centers
    for number in range(1, solver.max_rounds + 1):
        message = {"centers": centers, "penalty": scalar(penalty)}
        answers = of_all_agents(engine, engine.gather("dfcm_round", message))
        copies, duals = (np.stack([answer[name] for answer in answers]) for name in ("centers", "dual"))
        moved = duals.mean(axis=0) / penalty + copies.mean(axis=0)
        bound = max(largest_disagreement(copies), largest_dual_change(copies, moved, penalty))
        observe(
            RoundInfo(
                CLUSTERS,
                number,
                sum(float(answer["objective"]) for answer in answers),
                float(np.linalg.norm(copies - centers)),
                dual_residual(centers, previous, len(answers), penalty),
                bound,
            )
        )
        previous, centers = centers, moved
        if bound <= solver.tol:
            return centers, True
    return centers, False
