"""The whole conversation, from first contact to a predictor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus import RoundInfo
from dsfr.core.evidence import Tuned
from dsfr.core.model import Predictor
from dsfr.core.rules import Rules
from dsfr.core.wavelets import Wavelets
from dsfr.engines import Engine, NeighborEngine, Tasks
from dsfr.protocol import clusters, decentralized, few, survey, weights
from dsfr.protocol.settings import Settings
from dsfr.protocol.shard import Purpose
from dsfr.protocol.threads import single_threaded_blas

TASKS: Tasks = {
    "identify": survey.identify,
    "measure": survey.measure,
    "agree": survey.agree,
    "draw_ticket": survey.draw_ticket,
    "start_centers": clusters.start_centers,
    "cluster_sums": clusters.cluster_sums,
    "cluster_consensus": clusters.cluster_consensus,
    "cluster_spread": clusters.cluster_spread,
    "local_spread": clusters.local_spread,
    "local_clusters": few.local_clusters,
    "count_and_sum": few.count_and_sum,
    "statistics": weights.statistics,
    "prepare_weights": weights.prepare_weights,
    "weight_consensus": weights.weight_consensus,
    "introduce": decentralized.introduce,
    "flood": decentralized.flood,
    "propose": decentralized.propose,
    "count": decentralized.count,
    "average": decentralized.average,
    "announce": decentralized.announce,
    "place_centers": decentralized.place_centers,
    "neighbor_centers": decentralized.neighbor_centers,
    "spread_out": decentralized.spread_out,
    "prepare_copies": decentralized.prepare_copies,
    "start_copies": decentralized.start_copies,
    "neighbor_weights": decentralized.neighbor_weights,
    "tell_copy": decentralized.tell_copy,
}
"""Everything an agent can be asked to do."""


@dataclass(frozen=True, slots=True)
class Training:
    """A trained predictor and how it came about."""

    predictor: Predictor
    history: list[RoundInfo]
    unconverged: tuple[str, ...]
    """Stages that ended at ``max_rounds``."""
    n_samples: int
    n_labeled: int
    tuned: Tuned | None = None
    """Weight, ridge and noise that were chosen by evidence, if asked for."""
    copies: dict[str, Predictor] = field(default_factory=dict)
    """Without a coordinator: the predictor of every agent, of which ``predictor`` is the first."""

    @property
    def termination(self) -> str:
        """``"converged"`` or ``"max_rounds"``."""
        return "max_rounds" if self.unconverged else "converged"


def train(engine: Engine, settings: Settings, on_round: Callable[[RoundInfo], None] | None = None) -> Training:
    """Train over all agents of an engine; ``on_round`` is told of every round of clustering and solving.

    Raises
    ------
    ValueError
        If no agent has a labelled row, the system of the weights is singular, or the engine has no neighbors for a
        decentralised training.
    """
    history: list[RoundInfo] = []

    def observe(info: RoundInfo) -> None:
        history.append(info)
        if on_round is not None:
            on_round(info)

    if settings.solver == "decentralized" and engine.n_agents > 1:
        return _train_copies(engine, settings, history, observe)
    with single_threaded_blas():
        population, basis, shares, clustered = _agree_basis(engine, settings, observe)
    found = weights.agree_weights(engine, settings, basis, population.target, observe)
    target = population.target
    stages = ((clusters.STAGE, clustered), (weights.STAGE, found.converged))
    return Training(
        predictor=Predictor(population.ranges, basis, found.weights, target.mean, target.deviation, shares),
        history=history,
        unconverged=tuple(stage for stage, done in stages if not done),
        n_samples=int(population.n_samples),
        n_labeled=int(target.n),
        tuned=found.tuned,
    )


def _train_copies(
    engine: Engine, settings: Settings, history: list[RoundInfo], observe: Callable[[RoundInfo], None]
) -> Training:
    if not isinstance(engine, NeighborEngine):
        raise ValueError('solver="decentralized" needs to know who is linked to whom: give a topology, such as "ring"')
    with single_threaded_blas():
        models, unconverged = decentralized.train_copies(engine, settings, observe)
    n_samples, n_labeled = np.rint(next(iter(models.values()))["counts"][:2])
    copies = {name: decentralized.predictor_of(model) for name, model in models.items()}
    first = next(iter(copies.values()))
    return Training(first, history, tuple(unconverged), int(n_samples), int(n_labeled), copies=copies)


def _agree_basis(
    engine: Engine, settings: Settings, observe: Callable[[RoundInfo], None]
) -> tuple[survey.Population, Rules | Wavelets, Array, bool]:
    """Population, basis, shares of the rules, and whether clustering has converged (or was not asked to)."""
    if settings.basis == "wavelets":
        population = survey.survey(engine, settings)
        rng = np.random.default_rng([settings.seed, 0, Purpose.NODES])
        return population, Wavelets.draw(settings.n_nodes, len(population.ranges.low), rng), np.empty(0), True
    if settings.rounds == "few" and engine.n_agents > 1:
        return *few.few_rounds_rules(engine, settings, observe), True
    population = survey.survey(engine, settings)
    return population, *clusters.agree_rules(engine, settings, population, observe)
