"""Centers by consensus ADMM (DFCM): agents cluster their own rows, and agree on the same centers round by round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import ClusterSums
from dsfr.core.consensus.admm import RoundInfo, dual_residual, local_centers, rescaled, stalled
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.clustering.cluster_sums import KNOWN, own_sums
from dsfr.training.fixed_point import KEPT, Iteration, keep_image, kept_fields, recall
from dsfr.training.rounds import CLUSTERS, Observer, Patience
from dsfr.training.scaling.survey import Population
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array, number
from dsfr.training.tasks.fields import CENTERS, CLUSTER_SUMS, ITERATION, POSITIVE, SCORE, WEIGHTING
from dsfr.training.tasks.messages import pack, scalar, unpack
from dsfr.training.tasks.registry import remember, task

if TYPE_CHECKING:
    from dsfr.training.solvers import ADMM

MEMORY = 10
"""Rounds that acceleration combines."""

remember(__name__, {"cluster_penalty": POSITIVE}, transient=True)


@task(
    verb="sum",
    stage="clusters",
    reveals='Averages of groups of rows, every round. With `solver="admm"` for clusters.',
    broadcast={"centers": CENTERS, "penalty": POSITIVE, **ITERATION},
    contributes={
        "image": array("2kd"),
        "products": array("r+1"),
        **CLUSTER_SUMS,
        "lagrangian": number(),
        "primal_square": SCORE,
    },
    needs=KNOWN,
    recalls={**kept_fields("2kd"), "cluster_penalty": POSITIVE, **WEIGHTING},
    remembers=(*KEPT, "local_centers", "cluster_penalty"),
)
def cluster_consensus(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): one round of DFCM, paper Algorithm 1. The state is that of ADMM, and the local centers."""
    consensus, penalty = broadcast["centers"], float(broadcast["penalty"])
    state = recall(memory, broadcast)
    if state is None:
        state = np.stack([consensus, consensus]).ravel()
    x, centers = state.reshape(2, *consensus.shape)
    x = rescaled(x, consensus, float(memory.get("cluster_penalty", broadcast["penalty"])) / penalty)
    sums = own_sums(shard, memory, centers)
    moved = local_centers(sums, consensus, x, penalty)
    image = np.stack([x + moved - consensus, moved]).ravel()
    apart = centers - consensus
    memory, products = keep_image(memory, broadcast, np.stack([x, centers]).ravel(), image)
    contribution = {
        "image": image,
        "products": products,
        **pack(sums),
        "lagrangian": scalar(sums.objective + penalty * (np.vdot(x - consensus, apart) + np.vdot(apart, apart) / 2)),
        "primal_square": scalar(np.sum((moved - consensus) ** 2)),
    }
    return {**memory, "local_centers": moved, "cluster_penalty": broadcast["penalty"]}, contribution


def consensus_centers(
    engine: Engine, n_rules: int, solver: ADMM, population: Population, centers: Array, observe: Observer
) -> tuple[Array, bool]:
    """DFCM; stops when a step of pooled fuzzy c-means would move no center, and agents agree, both to ``tol``."""
    penalty = solver.cluster_penalty
    if penalty is None:  # the mean membership mass of a cluster at an agent
        penalty = population.n_samples / (engine.n_agents * n_rules)
    iteration = Iteration(MEMORY if solver.acceleration else 0)
    previous, residuals, patience = centers, list[float](), Patience(engine)
    for round_number in range(1, solver.max_rounds + 1):
        message = {"centers": centers, "penalty": scalar(penalty), **iteration.message()}
        sums = engine.sum("cluster_consensus", message)
        state_sum = iteration.receive(sums, engine.present, merit=float(sums["lagrangian"]))
        primal = float(np.sqrt(sums["primal_square"]))
        dual = dual_residual(centers, previous, iteration.n_present, penalty)
        pooled = unpack(ClusterSums, sums)
        move = pooled.largest_move(centers, pooled.centers(centers))
        bound = max(move, primal / float(np.sqrt(iteration.n_present * centers.size)))
        observe(RoundInfo(CLUSTERS, round_number, float(sums["objective"]), primal, dual, bound))
        if bound <= solver.tol and patience.ends():
            return centers, True
        residuals.append(primal)
        # Agents that disagree by more than the consensus moves are circling; while it moves on, they only lag behind.
        raised = solver.cluster_penalty is None and stalled(residuals) and primal > 2.0 * dual / penalty
        if raised:
            iteration.restart()
            state_sum, residuals = sums["image"], []
        x_sum = state_sum.reshape(2, *centers.shape)[0]
        previous, centers = centers, x_sum / iteration.n_present
        penalty *= 2.0 if raised else 1.0
    return centers, False
