"""Weights over agents: the broadcast of the problem, which the solver takes from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsfr.core.arrays import Array
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.rounds import Observer
from dsfr.training.scaling.survey import Population
from dsfr.training.tasks.messages import scalar
from dsfr.training.weights.problem import Problem, Solution
from dsfr.training.weights.summed import summed_weights

if TYPE_CHECKING:
    from dsfr.training.settings import Settings


def agree_weights(
    engine: Engine,
    settings: Settings,
    basis: Rules | Wavelets,
    population: Population,
    observe: Observer,
    varied: Bundle | None = None,
    shares: Array | None = None,
) -> Solution:
    """Weights that minimise the pooled objective; a single agent's come from its sums, whatever the solver.

    ``varied`` is what agents must know of one of several rule bases; ``shares`` of the rows that rules have, where they
    are known, save some rounds.
    """
    broadcast = {
        **basis.arrays(),
        "target_mean": scalar(population.target_mean),
        "target_scale": scalar(population.target_scale),
        **settings.penalty.message(),
        **(varied or {}),
    }
    problem = Problem(engine, settings, population, broadcast, shares, observe)
    return summed_weights(problem) if engine.n_agents == 1 else settings.solver.agree_weights(problem)
