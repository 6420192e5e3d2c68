"""Clusters over agents: start centers from one of them, then sums (exact) or consensus ADMM (DFCM), then widths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dsfr.bundles import Bundle
from dsfr.core.acceleration import Mixing
from dsfr.core.arrays import Array
from dsfr.core.clusters import ClusterSpread, ClusterSums, fuzzy_c_means, seed_centers
from dsfr.core.consensus import RoundInfo, dual_residual, local_centers, rescaled, stalled
from dsfr.core.rules import Rules, rule_widths
from dsfr.core.scaling import Ranges, scale_features
from dsfr.core.slopes import effective_features
from dsfr.engines import Engine, EngineError
from dsfr.protocol.iteration import WAIT_FOR_ABSENT, Iteration, forget, recall, remember
from dsfr.protocol.packing import pack, scalar, unpack
from dsfr.protocol.rows import pick
from dsfr.protocol.settings import Settings
from dsfr.protocol.shard import Purpose, Shard
from dsfr.protocol.survey import Population, has_ticket

STAGE = "clusters"
MEMORY = 10
"""Rounds that acceleration combines."""
MAX_LOCAL_STEPS = 300
"""Steps of the start agent on its own rows: a start needs no more precision than this gives."""

MAX_START_ROWS, SAMPLED_ROWS = 2**15, 2**14
"""Up to so many rows a start is found from all, of longer tables from a sample; the rounds that follow see all rows."""

MAX_ELECTIONS = 10
"""Times that agents are asked who proposes the start, should the chosen one not answer."""

Observer = Callable[[RoundInfo], None]


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


def start_centers(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (gather): fuzzy c-means on the own rows, by the holder of the ticket alone; the others send nothing."""
    told = ("fuzzifier", "low", "high")
    memory = {**forget(memory), **{name: broadcast[name] for name in told if name in broadcast}}
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
        fast=shard.fast,
    )


def start_rows(shard: Shard, seed: int) -> Array:
    """Rows to find a start from: all up to `MAX_START_ROWS`, of more a random `SAMPLED_ROWS`; unscaled."""
    if shard.n_samples <= MAX_START_ROWS:
        return pick(shard.rows, np.arange(shard.n_samples))
    chosen = shard.rng(seed, Purpose.SAMPLE).choice(shard.n_samples, SAMPLED_ROWS, replace=False, shuffle=False)
    return pick(shard.rows, np.sort(chosen))


def cluster_sums(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): mass, total and objective of every cluster."""
    return memory, pack(own_sums(shard, memory, broadcast["centers"]))


def cluster_consensus(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): one round of DFCM, paper Algorithm 1. The state is that of ADMM, and the local centers."""
    consensus, penalty = broadcast["centers"], float(broadcast["penalty"])
    state = recall(memory, broadcast)
    if state is None:
        state = np.stack([consensus, consensus]).ravel()
    x, centers = state.reshape(2, *consensus.shape)
    x = rescaled(x, consensus, float(memory.get("penalty", broadcast["penalty"])) / penalty)
    sums = own_sums(shard, memory, centers)
    moved = local_centers(sums, consensus, x, penalty)
    image = np.stack([x + moved - consensus, moved]).ravel()
    apart = centers - consensus
    memory, products = remember(memory, broadcast, np.stack([x, centers]).ravel(), image)
    contribution = {
        "image": image,
        "products": products,
        **pack(sums),
        "lagrangian": scalar(sums.objective + penalty * (np.vdot(x - consensus, apart) + np.vdot(apart, apart) / 2)),
        "primal_square": scalar(np.sum((moved - consensus) ** 2)),
    }
    return {**memory, "local_centers": moved, "penalty": broadcast["penalty"]}, contribution


def own_sums(shard: Shard, memory: Bundle, centers: Array) -> ClusterSums:
    """Sums over an agent's own rows."""
    told = (centers, float(memory["fuzzifier"]), unpack(Ranges, memory))
    parts = (part for X, _ in shard.batches() for part in ClusterSums.parts(X, *told, fast=shard.fast))
    return sum(parts, ClusterSums.none(centers))


def own_spread(shard: Shard, memory: Bundle, centers: Array) -> ClusterSpread:
    """Spread of an agent's own rows about ``centers``."""
    told = (centers, float(memory["fuzzifier"]), unpack(Ranges, memory))
    parts = (part for X, _ in shard.batches() for part in ClusterSpread.parts(X, *told, fast=shard.fast))
    return sum(parts, ClusterSpread.none(centers))


def cluster_spread(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): spread about the agreed centers, which gives the pooled widths exactly."""
    return memory, pack(own_spread(shard, memory, broadcast["centers"]))


def local_spread(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): local variances about local centers times the number of rows, paper eq. (18) and (19)."""
    spread = own_spread(shard, memory, memory.get("local_centers", broadcast["centers"]))
    weight = shard.n_samples * (spread.mass > 0.0)
    contribution = {"mass": spread.mass, "weight": weight, "square": weight[:, None] * spread.variances}
    return memory, contribution


def agree_rules(
    engine: Engine, settings: Settings, population: Population, observe: Observer, variation: Variation = FIRST
) -> tuple[Rules, Array, bool]:
    """Rules over all agents' rows, each rule's share of the rows, and whether the centers have converged."""
    start = _start(engine, settings, population, variation)
    if settings.sums_only or engine.n_agents == 1:
        centers, converged = _exact_centers(engine, settings, start, observe)
    else:
        centers, converged = _consensus_centers(engine, settings, population, start, observe)
    rules, shares = rules_about(engine, settings, centers, variation.stretch)
    return rules, shares, converged


def rules_about(
    engine: Engine, settings: Settings, centers: Array, stretch: Array | None = None
) -> tuple[Rules, Array]:
    """Rules with these (stretched) centers and widths from all agents' rows, and each rule's share of the rows."""
    stretch = np.ones(centers.shape[1]) if stretch is None else stretch
    spread = _agree_spread(engine, settings, centers)
    # The mean of squared distances over features, not their sum, is the same as sets that are wider by this factor.
    factor = np.sqrt(effective_features(stretch)) if settings.firing == "mean" else 1.0
    widths = rule_widths(spread.variances, settings.width_scale * factor)
    return Rules(centers / stretch, widths / stretch), spread.mass / spread.mass.sum()


def start_message(settings: Settings, ticket: float, max_steps: int = MAX_LOCAL_STEPS) -> Bundle:
    """What an agent must know to cluster its own rows."""
    return {
        "ticket": scalar(ticket),
        "n_rules": np.asarray(settings.n_rules, dtype=np.int64),
        "fuzzifier": scalar(settings.fuzzifier),
        "tol": scalar(settings.tol),
        "max_steps": np.asarray(max_steps, dtype=np.int64),
    }


def _start(engine: Engine, settings: Settings, population: Population, variation: Variation = FIRST) -> Array:
    # A lone agent's rows are all rows: the steps that follow are its clustering, and the history shows them.
    max_steps = 0 if engine.n_agents == 1 else MAX_LOCAL_STEPS
    ticket = population.ticket
    for _ in range(MAX_ELECTIONS):
        message = start_message(settings, ticket, max_steps) | variation.message(population.ranges)
        answers = engine.gather("start_centers", message)
        if answers:
            return answers[0]["centers"]
        # The holder of the highest ticket has gone: let those who are there draw again.
        ticket = float(engine.max("draw_ticket", {})["ticket"])
    raise EngineError(f"no agent proposed start centers in {MAX_ELECTIONS} rounds: agents come and go too fast")


def _exact_centers(engine: Engine, settings: Settings, centers: Array, observe: Observer) -> tuple[Array, bool]:
    """Pooled fuzzy c-means: each step from one sum over agents, accelerated unless that is switched off."""
    mixing = Mixing.start(MEMORY if settings.acceleration else 0)
    images, gaps = np.empty((0, centers.size)), np.empty((0, centers.size))
    for round_number in range(1, settings.max_rounds + 1):
        sums = unpack(ClusterSums, engine.sum("cluster_sums", {"centers": centers}))
        moved = sums.centers(centers)
        gap = (moved - centers).ravel()
        move = float(np.abs(gap).max())
        observe(RoundInfo(STAGE, round_number, sums.objective, 0.0, 0.0, move))
        if move <= settings.tol:
            return moved, True
        images, gaps = np.vstack([images, moved.ravel()]), np.vstack([gaps, gap])
        mixing, mix = mixing.advance(gaps @ gap, merit=sums.objective)
        images, gaps = images[-len(mix) :], gaps[-len(mix) :]
        centers = (mix @ images).reshape(centers.shape)
    return moved, False


def _consensus_centers(
    engine: Engine, settings: Settings, population: Population, centers: Array, observe: Observer
) -> tuple[Array, bool]:
    """DFCM; stops when a step of pooled fuzzy c-means would move no center, and agents agree, both to ``tol``."""
    penalty = _cluster_penalty(engine, settings, population)
    iteration = Iteration(MEMORY if settings.acceleration else 0)
    previous, residuals, patience = centers, list[float](), WAIT_FOR_ABSENT
    for round_number in range(1, settings.max_rounds + 1):
        message = {"centers": centers, "penalty": scalar(penalty), **iteration.message()}
        sums = engine.sum("cluster_consensus", message)
        state_sum = iteration.receive(sums, engine.present, merit=float(sums["lagrangian"]))
        primal = float(np.sqrt(sums["primal_square"]))
        dual = dual_residual(centers, previous, iteration.n_present, penalty)
        move = float(np.abs(unpack(ClusterSums, sums).centers(centers) - centers).max())
        bound = max(move, primal / float(np.sqrt(iteration.n_present * centers.size)))
        observe(RoundInfo(STAGE, round_number, float(sums["objective"]), primal, dual, bound))
        if bound <= settings.tol:
            if iteration.n_present == engine.n_agents or patience == 0:
                return centers, True
            patience -= 1
        residuals.append(primal)
        # Agents that disagree by more than the consensus moves are circling; while it moves on, they only lag behind.
        raised = settings.cluster_penalty is None and stalled(residuals) and primal > 2.0 * dual / penalty
        if raised:
            iteration.restart()
            state_sum, residuals = sums["image"], []
        x_sum = state_sum.reshape(2, *centers.shape)[0]
        previous, centers = centers, x_sum / iteration.n_present
        penalty *= 2.0 if raised else 1.0
    return centers, False


def _cluster_penalty(engine: Engine, settings: Settings, population: Population) -> float:
    """The paper's ``rho_s``; by default it starts at the mean membership mass of a cluster at an agent."""
    if settings.cluster_penalty is not None:
        return settings.cluster_penalty
    return population.n_samples / (engine.n_agents * settings.n_rules)


def _agree_spread(engine: Engine, settings: Settings, centers: Array) -> ClusterSpread:
    if settings.width_pooling == "exact":
        return unpack(ClusterSpread, engine.sum("cluster_spread", {"centers": centers}))
    pooled = engine.sum("local_spread", {"centers": centers})
    weight = np.maximum(pooled["weight"], 1.0)
    return ClusterSpread(pooled["mass"], pooled["mass"][:, None] * pooled["square"] / weight[:, None])
