"""Weights over agents: one round of summed statistics (exact), conjugate residuals, or consensus ADMM (DICR)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo, relative_error_bound
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.relevance.slope_shrinkage import shrinkage_matrix, unshrunk_factor
from dsfr.core.solve.cholesky import cholesky
from dsfr.core.solve.evidence import Tuned, maximize_evidence
from dsfr.core.solve.statistics import Statistics, solve_weights
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.messages import scalar, unpack_statistics
from dsfr.training.rounds import WEIGHTS, Observer
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings
from dsfr.training.weights.conjugate_residuals import conjugate_residual_weights
from dsfr.training.weights.dicr import consensus_weights
from dsfr.training.weights.leave_one_out import minimize_left_out
from dsfr.training.weights.statistics import penalty_on_unlabeled


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
    """Maps the weights that the ridge sees to those of the lines, see `slope_shrinkage`; None: they are the same."""

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
        return factor if self.tied is None else unshrunk_factor(factor, self.tied)


def agree_weights(
    engine: Engine,
    settings: Settings,
    basis: Rules | Wavelets,
    population: Population,
    observe: Observer,
    varied: Bundle | None = None,
    shares: Array | None = None,
) -> Solution:
    """Weights that minimise the pooled objective.

    ``varied`` is what agents must know of one of several rule bases; ``shares`` of the rows that rules have, where they
    are known, save some rounds.
    """
    broadcast = {
        **basis.arrays(),
        "target_mean": scalar(population.target.mean),
        "target_scale": scalar(population.target.deviation),
        **penalty_on_unlabeled(settings),
        **(varied or {}),
    }
    if settings.sums_for_weights or engine.n_agents == 1:
        return _exact_weights(engine, settings, broadcast, observe)
    if settings.admm_for_weights:
        return Solution(*consensus_weights(engine, settings, population, broadcast, observe))
    return Solution(*conjugate_residual_weights(engine, settings, population, broadcast, shares, observe))


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
    observe(RoundInfo(WEIGHTS, 1, objective, 0.0, 0.0, bound))
    lines = weights if tied is None else tied @ weights
    return Solution(lines, tuned=tuned, statistics=total, unlabeled_weight=weight, ridge=ridge, tied=tied)


def _tied(settings: Settings, broadcast: Bundle) -> Array | None:
    """Ties of the lines by relevance, where evidence chooses the ridge; other ways to choose know the lines only."""
    if settings.tune != "evidence" or "stretch" not in broadcast:
        return None
    return shrinkage_matrix(broadcast["stretch"], len(broadcast["centers"]))


def _tune(engine: Engine, settings: Settings, broadcast: Bundle, total: Statistics) -> Tuned | None:
    if settings.tune == "loo":
        return minimize_left_out(engine, broadcast, total)
    return maximize_evidence(total) if settings.tune == "evidence" else None
