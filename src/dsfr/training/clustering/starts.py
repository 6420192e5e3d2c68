"""Start centers where sums alone leave the agents: drawn from the moments of all rows, the best of several draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clustering.normal_starts import N_STARTS, normal_starts
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.clustering.cluster_sums import KNOWN, own_sums
from dsfr.training.scaling.survey import KEPT_SCALING, Population
from dsfr.training.shard import Purpose, Shard
from dsfr.training.tasks.declaration import array, at_least, number, within
from dsfr.training.tasks.fields import FAR, RANGES_OR_KEPT, START, VARIATION
from dsfr.training.tasks.messages import scalar
from dsfr.training.tasks.registry import forget, task

if TYPE_CHECKING:
    from dsfr.training.clustering.clusters import Variation
    from dsfr.training.settings import Settings

LEAST_MASS = 5.0
"""Mass of an agent's rows in every cluster of a start at least, as `Policy.min_mass` has it."""
FEW_ROWS = 1e12
"""Objective of a start with a cluster of fewer."""


@task(
    verb="sum",
    stage="start",
    reveals="Averages of known functions over the agent's rows: the clustering objective at drawn centers, or that a "
    "cluster has few of them. Where sums alone leave the agents.",
    broadcast={
        "starts": array(N_STARTS, "k", "d", rules=(within(-FAR, FAR),)),
        "fuzzifier": START["fuzzifier"],
        "least": number(at_least(0.0)),
        **VARIATION,
        **RANGES_OR_KEPT,
    },
    contributes={"objectives": array(N_STARTS, rules=(at_least(0.0),))},
    needs=KEPT_SCALING,
    remembers=KNOWN,
)
def start_objectives(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): objective of fuzzy c-means at every set of start centers.

    A set with a cluster of few own rows has one that no other has: the objective would be about these rows.
    """
    names = ("fuzzifier", "low", "high")
    memory = {**forget(memory), **{name: broadcast[name] for name in names if name in broadcast}}
    found = [own_sums(shard, memory, centers) for centers in broadcast["starts"]]
    least = float(broadcast["least"])
    objectives = [sums.objective if (sums.mass >= least).all() else FEW_ROWS for sums in found]
    return memory, {"objectives": np.array(objectives)}


def drawn_start(engine: Engine, settings: Settings, population: Population, variation: Variation) -> Array:
    """The best of several sets of centers, which the coordinator draws from the summed moments; shape (k, d)."""
    assert population.moments is not None, "the survey of an engine with sums alone has the moments"
    stretch = np.ones(len(population.ranges.low)) if variation.stretch is None else variation.stretch
    rng = np.random.default_rng([settings.seed, 0, Purpose.START, variation.number])
    starts = normal_starts(population.moments, settings.n_rules, stretch, rng)
    message = {"starts": starts, "fuzzifier": scalar(settings.rules.fuzzifier), "least": scalar(LEAST_MASS)}
    message |= variation.message(population.ranges)
    best: Array = starts[int(engine.sum("start_objectives", message)["objectives"].argmin())]
    return best
