"""Weights along conjugate directions: agents tell gradients, and the coordinator does the rest.

The objective is quadratic, so that gradients can be combined (`residual_extrapolation`): every round measures the one
at a step beyond the best point in all that was asked so far, in a metric that the coordinator makes of the rules. How
many rounds that takes depends on the pooled problem alone, and not on how many agents there are or who has which rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo, relative_error_bound
from dsfr.core.consensus.preconditioner import Metric, expected_curvature
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.solve.cholesky import solve_factored
from dsfr.core.solve.residual_extrapolation import Span
from dsfr.core.solve.statistics import Quadratic
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.fixed_point import forget
from dsfr.training.messages import pack, scalar, unpack, unpack_basis
from dsfr.training.rounds import WEIGHTS, Observer, Patience
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings
from dsfr.training.shard import Purpose, Shard
from dsfr.training.weights.statistics import own_statistics

MOST_POINTS = 200
"""Points that are combined; more than the weights of most models."""
FLOOR = 1e-10
"""Least curvature of the metric, relative to the mean: it must be definite, however small the ridge."""


def first_gradient(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): compute the own statistics and keep them; gradient and objective for weights of zero."""
    own = own_statistics(shard, memory, broadcast).quadratic(float(broadcast["unlabeled_weight"]))
    return {**forget(memory), **pack(own)}, gradient_of(own, np.zeros_like(own.moment))


def weight_gradient(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): gradient and objective for some weights."""
    return memory, gradient_of(unpack(Quadratic, memory), broadcast["weights"])


def gradient_of(quadratic: Quadratic, weights: Array) -> Bundle:
    """What an agent tells of its own objective."""
    return {"gradient": quadratic.gradient(weights), "objective": scalar(quadratic.value(weights))}


def conjugate_weights(
    engine: Engine,
    settings: Settings,
    population: Population,
    broadcast: Bundle,
    shares: Array | None,
    observe: Observer,
) -> tuple[Array, bool]:
    """Agreed weights, and whether they are within ``tol``."""
    basis = unpack_basis(broadcast)
    with single_threaded_blas():
        # Of wavelets nothing tells where the rows are, and a metric for rows anywhere is worse than none.
        metric = Metric(np.sqrt(population.target.n) * np.eye(basis.n_outputs))
        if isinstance(basis, Rules):
            metric = metric_of_rules(
                basis,
                shares,
                n_labeled=population.target.n,
                n_pairs=weighted_pairs(settings, population, engine.n_agents),
                ridge=settings.ridge,
                concentration=settings.mix_concentration,
                seed=settings.seed,
            )
        told = {**broadcast, "unlabeled_weight": scalar(settings.unlabeled_weight)}
        return _Search(engine, settings, observe, metric).run(told)


@dataclass(slots=True)
class _Search:
    """The coordinator's side; stops on the gradient of the pooled objective, which bounds the error of the weights."""

    engine: Engine
    settings: Settings
    observe: Observer
    metric: Metric
    span: Span = field(default_factory=lambda: Span(MOST_POINTS))
    answered: frozenset[str] = frozenset()
    """Whose gradients they are."""
    round: int = 0
    patience: Patience = field(init=False)

    def __post_init__(self) -> None:
        self.patience = Patience(self.engine)

    def run(self, told: Bundle) -> tuple[Array, bool]:
        """Ask for gradients until one says that its point is within ``tol``, or there have been enough."""
        self._note(np.zeros(len(self.metric.root)), self.engine.sum("first_gradient", told))
        while not (self._is_within(*self.span.best()) and self.patience.ends()):
            if self.round == self.settings.max_rounds:
                return self.span.extrapolated()[0], False
            point = self._next()
            self._note(point, self.engine.sum("weight_gradient", {"weights": point}))
        return self.span.best()[0], True

    def _note(self, point: Array, sums: Bundle) -> None:
        """One more round: a point, its gradient with that of the ridge, and what to tell of it."""
        if self.answered != (present := frozenset(self.engine.present)):
            self.span.clear()  # gradients of others than those who were there before are of another objective
            self.answered = present
        ridge = self.settings.ridge
        gradient = sums["gradient"] + ridge * point
        self.span.add(point, gradient)
        self.round += 1
        objective = float(sums["objective"]) + ridge / 2 * float(point @ point)
        bound = relative_error_bound(gradient, point, ridge)
        self.observe(RoundInfo(WEIGHTS, self.round, objective, 0.0, 0.0, bound))

    def _next(self) -> Array:
        """The best of all combinations if it should be within ``tol``, else a step on from there."""
        known = self.span.best()
        if self._is_within(*known):
            return known[0]  # waiting for who is away
        point, gradient = self.span.extrapolated()
        # If rounding spoils what it promises, it is still a better point to combine.
        promising = self._is_within(point, gradient)
        return point if promising else point - solve_factored(self.metric.root, gradient)

    def _is_within(self, point: Array, gradient: Array) -> bool:
        return relative_error_bound(gradient, point, self.settings.ridge) <= self.settings.tol


def metric_of_rules(
    rules: Rules,
    shares: Array | None,
    *,
    n_labeled: float,
    n_pairs: float,
    ridge: float,
    concentration: float,
    seed: int,
) -> Metric:
    """The metric of the curvature to expect for so many labelled rows and weighted pairs, and the ridge."""
    rng = np.random.default_rng([seed, 0, Purpose.METRIC])
    curvature = expected_curvature(rules, shares, n_labeled, n_pairs, concentration, rng)
    floor = FLOOR * float(np.trace(curvature)) / rules.n_outputs
    return Metric.of(curvature + (ridge + floor) * np.eye(rules.n_outputs))


def weighted_pairs(settings: Settings, population: Population, n_agents: int) -> float:
    """Interpolated pairs of all agents, times the weight that the objective gives them."""
    if settings.unlabeled != "icr":
        return 0.0
    as_rows = population.n_samples - population.target.n
    return settings.consistency * (as_rows if settings.n_pairs is None else n_agents * float(settings.n_pairs))
