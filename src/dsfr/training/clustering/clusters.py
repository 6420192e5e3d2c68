"""Clusters over agents: start centers from one of them, then the solver's steps, then widths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import MAX_STEP, ClusterSums, ClusterVariances, fuzzy_c_means, seed_centers
from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.features.takagi_sugeno import Rules, rule_widths
from dsfr.core.relevance.slopes import effective_features
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.core.solve.lbfgs import LBFGS
from dsfr.engines import Engine, EngineError, RefusedError
from dsfr.storage.bundles import Bundle
from dsfr.training.clustering.cluster_sums import KEPT_WEIGHTING, KNOWN
from dsfr.training.clustering.starts import drawn_start
from dsfr.training.rounds import CLUSTERS, Observer, Patience
from dsfr.training.scaling.survey import KEPT_SCALING, Population, has_ticket
from dsfr.training.shard import Purpose, Shard
from dsfr.training.tasks.fields import CENTERS, MAX_STEPS, RANGES_OR_KEPT, START, VARIATION
from dsfr.training.tasks.messages import ask_sample, pack, scalar, unpack
from dsfr.training.tasks.registry import forget, task

if TYPE_CHECKING:
    from dsfr.training.settings import Settings
    from dsfr.training.solvers import Solver

MEMORY = 10
"""Steps that the descent learns from."""
MAX_START_ROWS, SAMPLED_ROWS = 2**15, 2**14
"""Up to so many rows a start is found from all, of longer tables from a sample; the rounds that follow see all rows."""

NOBODY = 0.0
"""A ticket that no agent with rows draws: with it, agents learn how to cluster and nobody proposes a start."""
MAX_ELECTIONS = 10
"""Times that agents are asked who proposes the start, should the chosen one not answer."""
FEW_ROWS_APART = "differences"
"""Rule by which agents refuse a sum that differs from an earlier one by few of their rows."""


@dataclass(frozen=True, slots=True)
class Variation:
    """What sets one of several rule bases apart from the first."""

    number: int = 0
    """Random streams are its own."""
    stretch: Array | None = None
    """Factor on every scaled feature while clustering, the more relevant the larger; None: 1."""

    def message(self, ranges: Ranges) -> Bundle:
        """What the start of the clusters must say; nothing for the first rule base, which is as ever."""
        if self.number == 0 and self.stretch is None:
            return {}
        return {**pack(self.ranges(ranges)), "variation": np.asarray(self.number, dtype=np.int64)}

    def ranges(self, ranges: Ranges) -> Ranges:
        """Ranges to cluster by."""
        return ranges if self.stretch is None else ranges.stretched(self.stretch)


FIRST = Variation()


@task(
    verb="gather",
    stage="start",
    reveals="Centers of clusters of one agent's rows, seen as they are: averages of groups of its rows, and of single "
    "rows where groups are that small.",
    broadcast={**START, **VARIATION, **RANGES_OR_KEPT},
    contributes={"centers": CENTERS},
    needs=KEPT_SCALING,
    remembers=(*KNOWN, *KEPT_WEIGHTING),
    silent=True,
)
def start_centers(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (gather): fuzzy c-means on the own rows, by the holder of the ticket alone; the others send nothing."""
    kept = {name: broadcast[name] for name in (*KNOWN, *KEPT_WEIGHTING) if name in broadcast}
    memory = {**forget(memory), **kept}
    if not has_ticket(shard, memory, float(broadcast["ticket"])):
        return memory, {}
    return memory, {"centers": local_clustering(shard, memory, broadcast)}


def local_clustering(shard: Shard, memory: Bundle, broadcast: Bundle) -> Array:
    """Centers of one agent's rows by fuzzy c-means from a start of its own."""
    seed = int(memory["seed"])
    X = scale_features(start_rows(shard, seed), unpack(Ranges, memory))
    # The first stream is that of the only rule base, the second that of tickets.
    number = int(broadcast.get("variation", 0))
    rng = shard.rng(seed, Purpose.START, repeat=number + 1 if number else 0)
    return fuzzy_c_means(
        X,
        seed_centers(X, int(broadcast["n_rules"]), rng),
        fuzzifier=float(broadcast["fuzzifier"]),
        tol=float(broadcast["tol"]),
        max_rounds=int(broadcast["max_steps"]),
        memory=MEMORY,
        fast=shard.fast,
    )


def start_rows(shard: Shard, seed: int) -> Array:
    """Rows to find a start from: all up to `MAX_START_ROWS`, of more a random `SAMPLED_ROWS`; unscaled."""
    if shard.n_samples <= MAX_START_ROWS:
        return shard.picked(np.arange(shard.n_samples))
    chosen = shard.rng(seed, Purpose.SAMPLE).choice(shard.n_samples, SAMPLED_ROWS, replace=False, shuffle=False)
    return shard.picked(np.sort(chosen))


def agree_rules(
    engine: Engine, settings: Settings, population: Population, observe: Observer, variation: Variation = FIRST
) -> tuple[Rules, Array, bool]:
    """Rules over all agents' rows, each rule's share of the rows, and whether the centers have converged."""
    start = _start(engine, settings, population, variation)
    if engine.n_agents == 1:
        centers, converged = settings.solver.pooled_centers(engine, settings, population, start, observe)
    else:
        centers, converged = settings.solver.agree_centers(engine, settings, population, start, observe)
    rules, shares = rules_about(engine, settings, centers, variation.stretch)
    return rules, shares, converged


def rules_about(
    engine: Engine, settings: Settings, centers: Array, stretch: Array | None = None
) -> tuple[Rules, Array]:
    """Rules with these (stretched) centers and widths from all agents' rows, and each rule's share of the rows."""
    stretch = np.ones(centers.shape[1]) if stretch is None else stretch
    spread = _agree_spread(engine, settings, centers)
    widths = rule_widths(spread.variances, cluster_scale(settings, stretch))
    rules = Rules(centers / stretch, widths / stretch, settings.rules.membership)
    return rules, spread.mass / spread.mass.sum()


def cluster_scale(settings: Settings, stretch: Array) -> float:
    """Width of a set over the deviation of its cluster.

    The mean of squared distances over features, not their sum, is the same as sets that are wider by the root of the
    number of features that matter.
    """
    wider = np.sqrt(effective_features(stretch)) if settings.rules.firing == "mean" else 1.0
    return float(settings.rules.width_scale * wider)


def start_message(settings: Settings, ticket: float, max_steps: int = MAX_STEPS) -> Bundle:
    """What an agent must know to cluster its own rows."""
    return {
        "ticket": scalar(ticket),
        "n_rules": np.asarray(settings.n_rules, dtype=np.int64),
        "fuzzifier": scalar(settings.rules.fuzzifier),
        "tol": scalar(settings.solver.tol),
        "max_steps": np.asarray(max_steps, dtype=np.int64),
        **settings.rules.weighting(),
    }


def _start(engine: Engine, settings: Settings, population: Population, variation: Variation = FIRST) -> Array:
    given = settings.rules.start(settings.n_rules, population.ranges, settings.seed)
    if given is not None:
        engine.gather("start_centers", start_message(settings, NOBODY) | variation.message(population.ranges))
        return given
    if engine.only_sums:
        return drawn_start(engine, settings, population, variation)
    # A lone agent's rows are all rows: the steps that follow are its clustering, and the history shows them.
    max_steps = 0 if engine.n_agents == 1 else MAX_STEPS
    ticket = population.ticket
    for _ in range(MAX_ELECTIONS):
        message = start_message(settings, ticket, max_steps) | variation.message(population.ranges)
        answers = engine.gather("start_centers", message)
        if answers:
            return answers[0]["centers"]
        # The holder of the highest ticket has gone: let those who are there draw again.
        ticket = float(engine.max("draw_ticket", {})["ticket"])
    raise EngineError(f"no agent proposed start centers in {MAX_ELECTIONS} rounds: agents come and go too fast")


def summed_centers(
    engine: Engine,
    solver: Solver,
    centers: Array,
    observe: Observer,
    *,
    plain: bool = False,
    sample: float | None = None,
) -> tuple[Array, bool]:
    """Pooled fuzzy c-means: each step from one sum over agents, L-BFGS unless it is ``plain``.

    Over a share of the rows, if one is given.

    Stops when a step would move no center by more than ``tol``. Agents may refuse sums that differ from earlier ones by
    few of their rows, as those of the last steps can: the centers before are then as good as can be had. They have
    converged only if the step from them was within ``tol``. Every other refusal is raised.
    """
    descent, present, filled, answered = LBFGS(MEMORY, MAX_STEP), tuple[str, ...](), False, None
    move = np.inf
    patience = Patience(engine, solver.rounds_to_wait)
    for round_number in range(1, solver.most_rounds + 1):
        try:
            sums = unpack(ClusterSums, engine.sum("cluster_sums", {"centers": centers} | ask_sample(sample)))
        except RefusedError as refusal:
            if answered is None or refusal.rule != FEW_ROWS_APART:
                raise
            return answered, bool(move <= solver.tol)
        answered = centers
        if engine.present != present:
            descent.restart()  # sums over others are of another objective
            present = engine.present
        moved = sums.centers(centers)
        move = sums.largest_move(centers, moved)
        observe(RoundInfo(CLUSTERS, round_number, sums.objective, 0.0, 0.0, move))
        if move <= solver.tol and patience.ends():
            if filled or not sums.is_empty.any():
                return moved, True
            # A plain step takes centers of empty clusters to the rows nearest to them, and all go on from there.
            filled, centers = True, moved
            descent.restart()
            continue
        centers = moved if plain else descent.advance(sums.evaluation(centers)).reshape(moved.shape)
    return moved, False


def _agree_spread(engine: Engine, settings: Settings, centers: Array) -> ClusterVariances:
    if settings.rules.width_pooling == "exact":
        return unpack(ClusterVariances, engine.sum("cluster_variances", {"centers": centers}))
    pooled = engine.sum("local_variances", {"centers": centers})
    weight = np.maximum(pooled["weight"], 1.0)
    return ClusterVariances(pooled["mass"], pooled["mass"][:, None] * pooled["square"] / weight[:, None])
