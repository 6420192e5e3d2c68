"""Weights over agents: one round of summed statistics (exact) or consensus ADMM (DICR)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from dsfr.bundles import Bundle
from dsfr.core.arrays import Array
from dsfr.core.consensus import (
    RoundInfo,
    balanced_penalty,
    consensus_of,
    dual_residual,
    local_weights,
    relative_error_bound,
    rescaled,
    spectral_penalty,
)
from dsfr.core.consistency import POOL_ROWS, PairDraw, gap_gram, near_pairs
from dsfr.core.evidence import Tuned, maximize_evidence
from dsfr.core.features import Basis
from dsfr.core.graph import laplacian_gram
from dsfr.core.linear import cholesky
from dsfr.core.rules import Rules
from dsfr.core.scaling import Moments, scale_features
from dsfr.core.statistics import Quadratic, Statistics, solve_weights
from dsfr.core.ties import ties, untied_factor
from dsfr.core.wavelets import Wavelets
from dsfr.engines import Engine
from dsfr.protocol.choosing import minimize_left_out
from dsfr.protocol.clusters import Observer
from dsfr.protocol.iteration import WAIT_FOR_ABSENT, Iteration, forget, recall, remember
from dsfr.protocol.packing import (
    pack,
    pack_statistics,
    scalar,
    told_ranges,
    unpack,
    unpack_basis,
    unpack_statistics,
)
from dsfr.protocol.rows import collect, pick
from dsfr.protocol.settings import Settings
from dsfr.protocol.shard import Purpose, Shard
from dsfr.protocol.threads import single_threaded_blas

STAGE = "weights"
MEMORY = 20
"""Rounds that acceleration combines."""
MAX_BALANCING = 200
"""Rounds in which residual balancing may change the penalty: for ever, it need not converge."""
AS_MANY_AS_ROWS = -1


def statistics(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): the agent's part of all statistics."""
    with_penalty = "n_pairs" in broadcast or "n_neighbors" in broadcast
    return memory, pack_statistics(own_statistics(shard, memory, broadcast), with_penalty=with_penalty)


def prepare_weights(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): compute the own statistics and keep them; tell only between which curvatures they lie."""
    own = own_statistics(shard, memory, broadcast)
    quadratic = own.quadratic(float(broadcast["unlabeled_weight"]))
    curvatures = np.linalg.eigvalsh(quadratic.curvature)
    kept = {**forget(memory), **broadcast, **pack(quadratic), "gram": own.gram}
    contribution = {
        "largest": scalar(max(curvatures[-1], 0.0)),
        "smallest": scalar(max(curvatures[0], 0.0)),
    }
    return kept, contribution


def weight_consensus(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): one round of DICR, paper Algorithm 2.

    Gradient and objective are those of the consensus, so that their sums belong to the pooled problem.
    """
    if "redraw" in broadcast:
        memory = _redraw_pairs(shard, memory, int(broadcast["redraw"]))
    consensus, penalty = broadcast["consensus"], float(broadcast["penalty"])
    state = recall(memory, broadcast)
    if state is None:
        state = np.zeros_like(consensus)
    state = rescaled(state, consensus, float(memory.get("penalty", broadcast["penalty"])) / penalty)
    memory = _factorized(memory, penalty)
    quadratic = unpack(Quadratic, memory)
    weights = local_weights(memory["factor"], quadratic.moment, consensus, state, penalty)
    image = state + float(broadcast["relaxation"]) * (weights - consensus)
    memory, products = remember(memory, broadcast, state, image)
    contribution = {
        "image": image,
        "products": products,
        "gradient": quadratic.gradient(consensus),
        "objective": scalar(quadratic.value(consensus)),
        "primal_square": scalar(np.sum((weights - consensus) ** 2)),
    }
    return memory, contribution


@dataclass(frozen=True, slots=True)
class Solution:
    """Agreed weights."""

    weights: Array
    converged: bool = True
    tuned: Tuned | None = None
    """What was chosen from the labels, if anything was."""
    statistics: Statistics | None = None
    """The sums that the weights come from, if they do."""
    unlabeled_weight: float = 0.0
    ridge: float = 0.0
    tied: Array | None = None
    """Maps the weights that the ridge sees to those of the lines, see `dsfr.core.ties`; None: they are the same."""

    def factor(self) -> Array:
        """Upper Cholesky factor of the system that was solved.

        Raises
        ------
        ValueError
            If agents did not share their statistics.
        """
        if self.statistics is None:
            raise ValueError("only weights from summed statistics have a system to factor: take solver='exact'")
        seen = self.statistics if self.tied is None else self.statistics.mapped(self.tied)
        curvature = seen.quadratic(self.unlabeled_weight).curvature
        factor = cholesky(curvature + self.ridge * np.eye(len(self.weights)))
        return factor if self.tied is None else untied_factor(factor, self.tied)


def agree_weights(
    engine: Engine,
    settings: Settings,
    basis: Rules | Wavelets,
    target: Moments,
    observe: Observer,
    varied: Bundle | None = None,
) -> Solution:
    """Weights that minimise the pooled objective; ``varied`` is what agents must know of one of several rule bases."""
    broadcast = {
        **basis.arrays(),
        "target_mean": scalar(target.mean),
        "target_scale": scalar(target.deviation),
        **penalty_on_unlabeled(settings),
        **(varied or {}),
    }
    if settings.sums_for_weights or engine.n_agents == 1:
        return _exact_weights(engine, settings, broadcast, observe)
    return _consensus_weights(engine, settings, broadcast, basis.n_outputs, observe)


def _exact_weights(engine: Engine, settings: Settings, broadcast: Bundle, observe: Observer) -> Solution:
    total = unpack_statistics(engine.sum("statistics", broadcast))
    tied = _tied(settings, broadcast)
    seen = total if tied is None else total.mapped(tied)
    tuned = _tune(engine, settings, broadcast, seen)
    weight, ridge = settings.unlabeled_weight, settings.ridge
    if tuned is not None:
        weight, ridge = tuned.unlabeled_weight, tuned.ridge
    quadratic = seen.quadratic(weight)
    weights = solve_weights(quadratic, ridge)
    bound = relative_error_bound(quadratic.gradient(weights) + ridge * weights, weights, ridge)
    objective = quadratic.value(weights) + ridge / 2 * float(weights @ weights)
    observe(RoundInfo(STAGE, 1, objective, 0.0, 0.0, bound))
    lines = weights if tied is None else tied @ weights
    return Solution(lines, tuned=tuned, statistics=total, unlabeled_weight=weight, ridge=ridge, tied=tied)


def _tied(settings: Settings, broadcast: Bundle) -> Array | None:
    """Ties of the lines by relevance, where evidence chooses the ridge; other ways to choose know the lines only."""
    if settings.tune != "evidence" or "stretch" not in broadcast:
        return None
    return ties(broadcast["stretch"], len(broadcast["centers"]))


def _tune(engine: Engine, settings: Settings, broadcast: Bundle, total: Statistics) -> Tuned | None:
    if settings.tune == "loo":
        return minimize_left_out(engine, broadcast, total)
    return maximize_evidence(total) if settings.tune == "evidence" else None


def _consensus_weights(
    engine: Engine, settings: Settings, broadcast: Bundle, n_outputs: int, observe: Observer
) -> Solution:
    told = {**broadcast, "unlabeled_weight": scalar(settings.unlabeled_weight)}
    spectrum = engine.sum("prepare_weights", told)
    penalty = _start_penalty(settings, spectrum, len(engine.present))
    with single_threaded_blas():
        return _consensus_rounds(engine, settings, penalty, np.zeros(n_outputs), observe)


def _consensus_rounds(
    engine: Engine, settings: Settings, penalty: float, consensus: Array, observe: Observer
) -> Solution:
    """DICR; stops on the gradient of the pooled objective at the consensus, which bounds the error of the weights."""
    ridge, redraws = settings.ridge, settings.refresh_pairs and settings.unlabeled == "icr"
    # New pairs every round are a new map every round: there is nothing to extrapolate.
    iteration = Iteration(MEMORY if settings.acceleration and not redraws else 0)
    previous, patience = consensus, WAIT_FOR_ABSENT
    for round_number in range(1, settings.max_rounds + 1):
        message = {"consensus": consensus, "penalty": scalar(penalty), "relaxation": scalar(settings.relaxation)}
        if redraws:
            message["redraw"] = np.asarray(round_number, dtype=np.int64)
        sums = engine.sum("weight_consensus", message | iteration.message())
        state_sum = iteration.receive(sums, engine.present)
        bound = relative_error_bound(sums["gradient"] + ridge * consensus, consensus, ridge)
        objective = float(sums["objective"]) + ridge / 2 * float(consensus @ consensus)
        primal = float(np.sqrt(sums["primal_square"]))
        dual = dual_residual(consensus, previous, iteration.n_present, penalty)
        observe(RoundInfo(STAGE, round_number, objective, primal, dual, bound))
        if bound <= settings.tol:
            # With an agent missing, the gradient is that of the others' objective: a return is worth waiting for.
            if iteration.n_present == engine.n_agents or patience == 0:
                return Solution(consensus)
            patience -= 1
        balanced = penalty
        if settings.penalty == "balanced" and 1 < round_number <= MAX_BALANCING:
            balanced = balanced_penalty(penalty, primal, dual)
        if balanced != penalty:
            iteration.restart()
            state_sum = sums["image"]
        previous, consensus = consensus, consensus_of(state_sum, iteration.n_present, penalty, ridge)
        penalty = balanced
    return Solution(consensus, converged=False)


def _start_penalty(settings: Settings, spectrum: Bundle, n_agents: int) -> float:
    """The paper's ``rho_p`` if it is given, else one from the mean extreme curvatures of the agents' problems."""
    if isinstance(settings.penalty, Real):
        return float(settings.penalty)
    largest, smallest = (float(spectrum[name]) / n_agents for name in ("largest", "smallest"))
    return spectral_penalty(largest or 1.0, smallest, settings.ridge, n_agents)


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
            return replace(labeled, unlabeled_gram=_pair_gram(shard, memory, broadcast, basis))
    if "n_neighbors" in broadcast:
        X = scale_features(collect(shard.rows)[0], ranges)
        gram = laplacian_gram(X, basis, n_neighbors=int(broadcast["n_neighbors"]) or None)
        return replace(labeled, unlabeled_gram=gram)
    return labeled


def _pair_gram(shard: Shard, memory: Bundle, told: Bundle, basis: Basis, repeat: int = 0) -> Array:
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


def _redraw_pairs(shard: Shard, memory: Bundle, round_number: int) -> Bundle:
    """New pairs as Algorithm 2 has them; the factor is of the old ones and goes."""
    gap_gram = _pair_gram(shard, memory, memory, unpack_basis(memory), repeat=round_number)
    curvature = memory["gram"] + float(memory["unlabeled_weight"]) * gap_gram
    kept = {name: array for name, array in memory.items() if name != "factor"}
    return {**kept, "curvature": curvature}


def _factorized(memory: Bundle, penalty: float) -> Bundle:
    if "factor" in memory and float(memory["penalty"]) == penalty:
        return memory
    factor = cholesky(memory["curvature"] + penalty * np.eye(len(memory["moment"])))
    return {**memory, "factor": factor, "penalty": scalar(penalty)}
