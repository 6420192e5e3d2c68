"""Training without a coordinator: agents talk to their neighbors only, and each ends with a model of its own.

Ranges are flooded; counts, moments and spreads averaged and announced; centers agreed by decentralised ADMM and
announced (see `gossip` for the words): so all agents have the same rules, to the last bit. Weights are
agreed by decentralised ADMM and stay as they are: copies differ within the tolerance.
"""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import ClusterVariances
from dsfr.core.consensus.decentralized import average_step, link_penalty
from dsfr.core.consensus.preconditioner import Preconditioner, expected_curvature
from dsfr.core.features.takagi_sugeno import rule_widths
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import Moments, Ranges
from dsfr.core.solve.cholesky import cholesky, solve_factored
from dsfr.core.solve.statistics import Quadratic
from dsfr.engines import NeighborEngine
from dsfr.storage.bundles import Bundle
from dsfr.training.clustering.cluster_sums import own_spread, own_sums
from dsfr.training.clustering.clusters import local_clustering, start_message
from dsfr.training.decentralized.gossip import (
    Conversation,
    announced,
    copy_round,
    flooded,
    links_of,
    start_copy,
    start_flood,
)
from dsfr.training.messages import pack, scalar, unpack, unpack_basis
from dsfr.training.rounds import CLUSTERS, WEIGHTS, Observer
from dsfr.training.scaling.survey import FirstLook, ask, checked_look, has_ticket, look_of, measure, target_moments
from dsfr.training.settings import Settings
from dsfr.training.shard import Purpose, Shard
from dsfr.training.weights.statistics import AS_MANY_AS_ROWS, own_statistics, penalty_on_unlabeled

TYPICAL = 0.1
"""Share of the expected curvature that the pooled problem is taken to have at least, when errors are estimated."""
AVERAGE_TOL = 1e-8
"""Relative error of averages; everybody then goes on with the same ones, so no more is needed."""
SCARCE = 1e-3
"""Averages are relative to themselves, or to this share of the largest of them."""


def introduce(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): begin to flood what `measure` measures."""
    memory, seen = measure(shard, memory, broadcast)
    return start_flood(memory, _flat(seen))


def flood(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): pass on the largest values heard of."""
    return start_flood(memory, flooded(memory))


def propose(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): take up the ranges; the holder of the ticket announces start centers."""
    declared = Ranges(broadcast["declared_low"], broadcast["declared_high"]) if "declared" in broadcast else None
    look = look_of(_unflat(flooded(memory)), declared)
    memory = {**memory, **look.message(), "ticket": scalar(look.ticket), "fuzzifier": broadcast["fuzzifier"]}
    shape = (int(broadcast["n_rules"]), shard.n_features)
    centers = local_clustering(shard, memory, broadcast) if has_ticket(shard, memory, look.ticket) else None
    return start_flood(memory, announced(centers, shape))


def count(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): take up the start centers; begin to average counts and moments of the target."""
    moments = target_moments(shard, float(memory["target_origin"]), float(memory["target_unit"]))
    own = np.array([shard.n_samples, moments.n, moments.total, moments.square])
    return start_copy({**memory, "centers": flooded(memory), "own": own}, own)


def average(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): one round of averaging."""
    scale = np.abs(memory["value"])
    scale = np.maximum(scale, SCARCE * max(float(scale.max()), 1e-300))
    penalty = _penalty(1.0, broadcast)

    def step(pull: Array, n_links: int) -> Array:
        return average_step(memory["own"], pull, n_links, penalty)

    def error(gradient: Array, apart: Array) -> float:
        return float(np.max((gradient + (1 + int(broadcast["diameter"])) * apart) / scale))

    return copy_round(memory, broadcast, penalty, step, error)


def announce(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): the holder of the ticket announces what it has got."""
    value = memory["value"] if has_ticket(shard, memory, float(memory["ticket"])) else None
    return start_flood(memory, announced(value, memory["value"].shape))


def place_centers(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): take up counts and moments; begin with the start centers."""
    return start_copy({**memory, "counts": flooded(memory)}, memory["centers"])


def neighbor_centers(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): one round of fuzzy c-means with centers pulled towards the neighbors'."""
    centers = memory["value"]
    mass = max(float(memory["counts"][0]), 1.0) / len(centers)
    penalty = _penalty(mass, broadcast)

    def step(pull: Array, n_links: int) -> Array:
        sums = own_sums(shard, memory, centers)
        return (sums.total + pull) / (sums.mass + 2.0 * penalty * n_links)[:, None]

    def error(gradient: Array, apart: Array) -> float:
        return float(np.max(gradient / mass + (1 + int(broadcast["diameter"])) * apart))

    return copy_round(memory, broadcast, penalty, step, error)


def spread_out(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): take up the centers; begin to average the spread about them."""
    centers = flooded(memory)
    spread = own_spread(shard, memory, centers)
    own = np.column_stack([spread.mass, spread.square])
    return start_copy({**memory, "centers": centers, "own": own}, own)


def prepare_copies(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): take up the spread or draw the wavelets; begin to flood between which curvatures one lies."""
    memory = _with_basis(shard, memory, broadcast)
    told = {**broadcast, **_target(memory), **unpack_basis(memory).arrays()}
    own = own_statistics(shard, memory, told).quadratic(float(broadcast["unlabeled_weight"]))
    # Everybody carries an equal share of the ridge.
    ridge = float(broadcast["ridge"]) / int(broadcast["n_agents"]) * np.eye(len(own.moment))
    metric = Preconditioner.of(_expected_curvature(memory, broadcast) + ridge)
    inside = metric.quadratic(Quadratic(own.curvature + ridge, own.moment, own.constant))
    curvatures = np.maximum(np.linalg.eigvalsh(inside.curvature)[[-1, 0]], np.finfo(np.float64).tiny)
    return start_flood({**memory, **pack(inside), "root": metric.root}, curvatures)


def start_copies(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): take up the extreme curvatures; begin with weights of zero."""
    largest, smallest = flooded(memory)
    memory = {**memory, "curvature_scale": scalar(np.sqrt(largest * smallest))}
    return start_copy(memory, np.zeros_like(memory["moment"]))


def neighbor_weights(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (neighbors): one round of decentralised ADMM for the weights, in coordinates of the metric."""
    penalty = _penalty(float(memory["curvature_scale"]), broadcast)
    size = max(float(np.linalg.norm(memory["value"])), 1e-6)

    def error(gradient: Array, apart: Array) -> float:
        far = float(np.linalg.norm(gradient)) + (1 + int(broadcast["diameter"])) * float(np.linalg.norm(apart))
        return far / (TYPICAL * size)

    factored = _factored(memory, penalty)
    factor, moment = factored["factor"], memory["moment"]
    return copy_round(factored, broadcast, penalty, lambda pull, _: solve_factored(factor, moment + pull), error)


def tell_copy(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (read): the agent's model."""
    model = {name: memory[name] for name in ("low", "high", "shares")} | unpack_basis(memory).arrays()
    counts = memory["counts"] * int(broadcast["n_agents"])
    found = Preconditioner(memory["root"]).weights(memory["value"])
    return memory, {**model, **_target(memory), "counts": counts, "weights": found}


def train_copies(engine: NeighborEngine, settings: Settings, observe: Observer) -> tuple[dict[str, Bundle], list[str]]:
    """The model of every agent, and the stages that have not converged.

    Raises
    ------
    ValueError
        If no agent has a labelled row, or the system of the weights would be too large.
    EngineError
        If an agent is away while ranges or rules are told on.
    """
    talk = Conversation(engine, settings.max_rounds, observe)
    look = checked_look(_unflat(talk.flood("introduce", ask(settings))), settings)
    talk.flood("propose", ask(settings) | _start(settings) | _declared(settings, look))
    counted = talk.settle("count", "average", {}, AVERAGE_TOL)
    talk.flood("announce")
    clustered = _settle_rules(talk, settings) if settings.basis == "rules" else True
    n_agents: Bundle = {"n_agents": np.asarray(engine.n_agents, dtype=np.int64)}
    talk.flood("prepare_copies", _preparation(settings) | n_agents)
    penalty = {} if settings.penalty is None else {"penalty": scalar(float(settings.penalty))}
    solved = talk.settle("start_copies", "neighbor_weights", penalty, settings.tol, WEIGHTS)
    stages = {CLUSTERS: counted and clustered, WEIGHTS: solved}
    return engine.read("tell_copy", n_agents), [stage for stage, done in stages.items() if not done]


def predictor_of(model: Bundle) -> Predictor:
    """The function that an agent's model is."""
    target = (float(model["target_mean"]), float(model["target_scale"]))
    return Predictor(unpack(Ranges, model), unpack_basis(model), model["weights"], *target, model["shares"])


def _settle_rules(talk: Conversation, settings: Settings) -> bool:
    clustered = talk.settle("place_centers", "neighbor_centers", {}, settings.tol, CLUSTERS)
    talk.flood("announce")
    spread = talk.settle("spread_out", "average", {}, AVERAGE_TOL)
    talk.flood("announce")
    return clustered and spread


def _start(settings: Settings) -> Bundle:
    """Without rules there are no centers to start from; one that nobody uses keeps the messages in shape."""
    if settings.basis == "rules":
        return start_message(settings, 0.0)
    return start_message(settings, 0.0, 0) | {"n_rules": np.asarray(1, dtype=np.int64)}


def _declared(settings: Settings, look: FirstLook) -> Bundle:
    if settings.feature_ranges is None:
        return {}
    return {"declared_low": look.ranges.low, "declared_high": look.ranges.high}


def _preparation(settings: Settings) -> Bundle:
    told = {
        "unlabeled_weight": scalar(settings.unlabeled_weight),
        "ridge": scalar(settings.ridge),
        "width_scale": scalar(settings.width_scale),
        **penalty_on_unlabeled(settings),
    }
    return told if settings.basis == "rules" else told | {"n_nodes": np.asarray(settings.n_nodes, dtype=np.int64)}


def _with_basis(shard: Shard, memory: Bundle, broadcast: Bundle) -> Bundle:
    """Memory with the rules that follow from the announced spread, or with wavelets from the common seed."""
    if "n_nodes" in broadcast:
        rng = np.random.default_rng([int(memory["seed"]), 0, Purpose.NODES])
        wavelets = Wavelets.draw(int(broadcast["n_nodes"]), shard.n_features, rng)
        return {**memory, "counts": flooded(memory), **wavelets.arrays(), "shares": np.empty(0)}
    table = flooded(memory)
    spread = ClusterVariances(table[:, 0], table[:, 1:])
    widths = rule_widths(spread.variances, float(broadcast["width_scale"]))
    return {**memory, "widths": widths, "shares": spread.mass / spread.mass.sum()}


def _target(memory: Bundle) -> Bundle:
    _, n, total, square = memory["counts"]
    moments = Moments(n, total, square, float(memory["target_origin"]), float(memory["target_unit"]))
    return {"target_mean": scalar(moments.mean), "target_scale": scalar(moments.deviation)}


def _expected_curvature(memory: Bundle, broadcast: Bundle) -> Array:
    """The curvature of a typical agent; every agent draws the same rows and gets the same bits."""
    rng = np.random.default_rng([int(memory["seed"]), 0, Purpose.PRECONDITIONER])
    n_samples, n_labeled = memory["counts"][:2]
    n_pairs = 0.0
    if "n_pairs" in broadcast:
        told = int(broadcast["n_pairs"])
        n_pairs = n_samples - n_labeled if told == AS_MANY_AS_ROWS else float(told)
    concentration = float(broadcast.get("mix_concentration", scalar(1.0)))
    weighted = n_pairs * float(broadcast["unlabeled_weight"])
    return expected_curvature(unpack_basis(memory), memory["shares"], n_labeled, weighted, concentration, rng)


def _penalty(curvature: float, broadcast: Bundle) -> float:
    """Penalty of a link: the one that is told, or one for problems of this curvature."""
    usual = link_penalty(curvature, float(broadcast["links_per_agent"]), int(broadcast["diameter"]))
    return float(broadcast.get("penalty", scalar(usual * float(broadcast["stiffness"]))))


def _factored(memory: Bundle, penalty: float) -> Bundle:
    """Memory with the factor of the system for this penalty."""
    shift = scalar(2.0 * penalty * links_of(memory))
    if "factor" in memory and memory["factor_shift"] == shift:
        return memory
    factor = cholesky(memory["curvature"] + shift * np.eye(len(memory["moment"])))
    return {**memory, "factor": factor, "factor_shift": shift}


_MEASURED = ("minus_target_low", "n_features", "target_high", "ticket")


def _flat(seen: Bundle) -> Array:
    """What `measure` contributes as one vector."""
    return np.concatenate([np.ravel(seen[name]) for name in (*_MEASURED, "high", "minus_low") if name in seen])


def _unflat(flat: Array) -> Bundle:
    """What `measure` contributes, from its vector."""
    low, n_features, high, ticket = flat[:4]
    seen = {"minus_target_low": np.array([low]), "target_high": np.array([high])}
    seen |= {"n_features": scalar(n_features), "ticket": scalar(ticket)}
    if len(flat) > 4:
        seen["high"], seen["minus_low"] = flat[4:].reshape(2, -1)
    return seen
