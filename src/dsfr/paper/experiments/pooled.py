"""Closed-form solutions for all values of a grid: agents agree on rules and sum their statistics once.

Consensus ADMM converges to the solution of the summed statistics, and every (ridge, weight) of the grid is one small
linear system in them. The statistics come from the training protocol, so that pairs and graphs are those of a full fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from dsfr.core.arrays import Array, IntArray
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.leave_one_out import leave_one_out_residuals
from dsfr.core.solve.statistics import Statistics, solve_weights
from dsfr.engines import InProcessEngine
from dsfr.estimators.metrics import nrmse
from dsfr.paper.experiments.folds import Fold
from dsfr.paper.experiments.spec import Spec
from dsfr.training import TASKS, Conjugate, FuzzyRules, Settings, Sums, make_shards
from dsfr.training.clustering.clusters import agree_rules
from dsfr.training.penalties import UnlabeledPenalty
from dsfr.training.scaling.survey import Population, survey
from dsfr.training.shard import Purpose
from dsfr.training.solvers import Solver
from dsfr.training.weights.weights import agree_weights

Candidate = tuple[float, float]
"""Ridge, and weight of the penalty on unlabelled rows."""


@dataclass(frozen=True, slots=True)
class Agents:
    """Agents of a fold with their engine, settings and the survey of their rows."""

    engine: InProcessEngine
    settings: Settings
    population: Population

    @classmethod
    def of_fold(cls, fold: Fold, spec: Spec, owners: IntArray | None, targets: Array, **options: Any) -> Agents:
        """Agents with these targets; without owners, one agent has all rows."""
        holders = np.zeros(len(targets), dtype=np.int64) if owners is None else owners
        engine = InProcessEngine(list(make_shards(fold.X, targets, holders).values()), TASKS)
        settings = Settings(**shared_settings(spec) | options, seed=protocol_seed(fold))
        return cls(engine, settings, survey(engine, settings))

    def rules(self, solver: Solver | None = None) -> Rules:
        """Rules that the agents agree on, by the solver of the settings or by another one."""
        settings = replace(self.settings, solver=solver or self.settings.solver)
        rules, _, _ = agree_rules(self.engine, settings, self.population, _ignore)
        return rules

    def wavelets(self, n_nodes: int) -> Wavelets:
        """The hidden nodes that a fit would draw."""
        rng = np.random.default_rng([self.settings.seed, 0, Purpose.NODES])
        return Wavelets.draw(n_nodes, len(self.population.ranges.low), rng)

    def statistics(self, basis: Rules | Wavelets, unlabeled: str | None) -> Statistics:
        """Summed statistics of all agents."""
        penalty = None if unlabeled is None else UnlabeledPenalty.resolve(unlabeled)
        settings = replace(self.settings, solver=Sums(), unlabeled=penalty)
        statistics = agree_weights(self.engine, settings, basis, self.population, _ignore).statistics
        assert statistics is not None, "the solver Sums sums statistics"
        return statistics


@dataclass(frozen=True, slots=True)
class Problem:
    """Summed statistics, from which the weights of every candidate follow."""

    population: Population
    basis: Rules | Wavelets
    statistics: Statistics

    def errors(self, fold: Fold, candidates: Sequence[Candidate]) -> list[float]:
        """Test NRMSE of every candidate."""
        mean, scale = self.population.target_mean, self.population.target_scale
        H = self.basis.features(scale_features(fold.X_test, self.population.ranges))
        weights = [solve_weights(self.statistics.quadratic(weight), ridge) for ridge, weight in candidates]
        return [nrmse(fold.y_test, mean + scale * (H @ found)) for found in weights]

    def leave_one_out(self, fold: Fold, targets: Array, candidates: Sequence[Candidate]) -> list[float]:
        """Root mean square of the leave-one-out residuals on the labels, in standard deviations of the target."""
        labeled = ~np.isnan(targets)
        X = scale_features(fold.X[labeled], self.population.ranges)
        y = (targets[labeled] - self.population.target_mean) / self.population.target_scale
        scores = []
        for ridge, weight in candidates:
            residuals = leave_one_out_residuals(X, y, self.basis, self.statistics.quadratic(weight), ridge)
            scores.append(float(np.sqrt(np.mean(residuals**2))))
        return scores


def shared_settings(spec: Spec) -> dict[str, Any]:
    """Settings that all methods have in common."""
    return {
        "n_rules": spec.rules,
        "n_nodes": spec.nodes,
        "rules": FuzzyRules(fuzzifier=spec.fuzzifier),
        "solver": Conjugate(tol=spec.tol),
    }


def protocol_seed(fold: Fold) -> int:
    """Seed that an estimator derives from the fold's random state, so that both draw the same pairs and nodes."""
    return int(check_random_state(fold.seed).randint(2**31 - 1))


def _ignore(_: object) -> None:
    """Observer of rounds that does nothing."""
