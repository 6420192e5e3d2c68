"""Rules in five rounds, where a round costs seconds: local clusterings, merged once and refined twice.

With the statistics of the weights a whole training takes six rounds: ranges, local centers (gathered), two refinements,
widths, statistics.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import ClusterSums, merge_centers
from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.clustering.cluster_sums import KEPT_WEIGHTING, KNOWN, cluster_sums
from dsfr.training.clustering.clusters import local_clustering, rules_about, start_message
from dsfr.training.rounds import CLUSTERS, Observer
from dsfr.training.scaling.row_sums import ASKED, ROW_SUMS, ask_moments
from dsfr.training.scaling.survey import Population, agree, first_look
from dsfr.training.shard import Purpose, Shard
from dsfr.training.tasks.fields import CENTERS, CLUSTER_SUMS, COUNTS, RANGES, START, TARGET_RANGE
from dsfr.training.tasks.messages import unpack
from dsfr.training.tasks.registry import task

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

N_REFINEMENTS = 2


@task(
    verb="gather",
    stage="start",
    reveals="Centers and masses of clusters of every agent's rows, seen as they are: averages of groups of rows, and "
    'of single rows where groups are that small. With `solver="few-rounds"`.',
    broadcast={**RANGES, **TARGET_RANGE, **START},
    contributes={"centers": CENTERS, "mass": CLUSTER_SUMS["mass"]},
    needs=("seed",),
    remembers=(*KNOWN, *KEPT_WEIGHTING),
    silent=True,
)
def local_clusters(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (gather): centers of the agent's own rows, and how much mass each has."""
    memory = {**memory, **{name: broadcast[name] for name in (*KNOWN, *KEPT_WEIGHTING) if name in broadcast}}
    if shard.n_samples == 0:
        return memory, {}
    centers = local_clustering(shard, memory, broadcast)
    _, sums = cluster_sums(shard, memory, {"centers": centers})
    return memory, {"centers": centers, "mass": sums["mass"]}


@task(
    verb="sum",
    stage="clusters",
    reveals='As `agree` and `cluster_sums`. With `solver="few-rounds"`.',
    broadcast={**RANGES, **TARGET_RANGE, **ASKED, "centers": CENTERS},
    contributes={**COUNTS, **ROW_SUMS, **CLUSTER_SUMS},
    needs=("fuzzifier",),
    recalls=KEPT_WEIGHTING,
    remembers=("low", "high"),
)
def count_and_sum(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): the tasks `agree` and `cluster_sums` in one round."""
    memory, counted = agree(shard, memory, broadcast)
    _, sums = cluster_sums(shard, memory, broadcast)
    return memory, {**counted, **sums}


def few_rounds_rules(engine: Engine, settings: Settings, observe: Observer) -> tuple[Population, Rules, Array]:
    """Population, rules and their shares in five rounds."""
    look = first_look(engine, settings)
    local = engine.gather("local_clusters", {**look.message(), **start_message(settings, look.ticket)})
    centers = merge_centers(
        np.concatenate([part["centers"] for part in local]),
        np.concatenate([part["mass"] for part in local]),
        settings.n_rules,
        settings.rules.fuzzifier,
        np.random.default_rng([settings.seed, 0, Purpose.START]),
    )
    asked = {**look.message(), **ask_moments(centers.shape[1]), "centers": centers}
    sums = engine.sum("count_and_sum", asked)
    population = replace(look.population(sums), keeps_target=settings.scaling.keeps_target)
    for refinement in range(1, N_REFINEMENTS + 1):
        if refinement > 1:
            sums = engine.sum("cluster_sums", {"centers": centers})
        step = unpack(ClusterSums, sums)
        previous, centers = centers, step.centers(centers)
        move = float(np.abs(centers - previous).max())
        observe(RoundInfo(CLUSTERS, refinement, step.objective, 0.0, 0.0, move))
    return population, *rules_about(engine, settings, centers)
