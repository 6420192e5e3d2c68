"""Weights by preconditioned conjugate residuals: agents answer a point with their gradient, the coordinator iterates.

The method and what holds for it are in `dsfr.core.consensus.conjugate_residuals`. The pooled gradient is a sum over
agents, so each round takes one vector from each agent. The number of rounds depends on the pooled problem alone, and
not on how many agents there are or which rows each of them has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo, relative_error_bound
from dsfr.core.consensus.conjugate_residuals import ConjugateResiduals
from dsfr.core.consensus.preconditioner import Preconditioner, expected_curvature
from dsfr.core.features.bases import AnyBasis
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.solve.statistics import Quadratic
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.rounds import WEIGHTS, Observer, Patience
from dsfr.training.scaling.survey import KEPT_SCALING, Population
from dsfr.training.shard import Purpose, Shard
from dsfr.training.tasks.declaration import array, number
from dsfr.training.tasks.fields import UNLABELED_WEIGHT, WEIGHT_VECTOR, problem_fields
from dsfr.training.tasks.messages import pack, scalar, unpack, unpack_basis
from dsfr.training.tasks.registry import forget, task
from dsfr.training.weights.statistics import KEPT_QUADRATIC, own_statistics

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

FLOOR = 1e-10
"""Least curvature of the preconditioner, relative to the mean: it must be definite, however small the ridge."""


GRADIENT = {"gradient": array("p"), "objective": number()}


@task(
    verb="sum",
    stage="statistics",
    reveals="`-b_l`, the gradient for weights of zero, and the sum of the agent's squared targets; see below.",
    broadcast=problem_fields({"unlabeled_weight": UNLABELED_WEIGHT}),
    contributes=GRADIENT,
    needs=KEPT_SCALING,
    remembers=KEPT_QUADRATIC,
)
def first_gradient(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): compute the own statistics and keep them; gradient and objective for weights of zero."""
    own = own_statistics(shard, memory, broadcast).quadratic(float(broadcast["unlabeled_weight"]))
    return {**forget(memory), **pack(own)}, gradient_of(own, np.zeros_like(own.moment))


@task(
    verb="sum",
    stage="weights",
    reveals="A gradient at a point that the coordinator chose, every round; see below.",
    broadcast={"weights": WEIGHT_VECTOR},
    contributes=GRADIENT,
    needs=KEPT_QUADRATIC,
)
def weight_gradient(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): gradient and objective for some weights."""
    return memory, gradient_of(unpack(Quadratic, memory), broadcast["weights"])


def gradient_of(quadratic: Quadratic, weights: Array) -> Bundle:
    """Gradient and value of an agent's own objective."""
    return {"gradient": quadratic.gradient(weights), "objective": scalar(quadratic.value(weights))}


def conjugate_residual_weights(
    engine: Engine,
    settings: Settings,
    population: Population,
    broadcast: Bundle,
    shares: Array | None,
    observe: Observer,
) -> tuple[Array, bool]:
    """Agreed weights, and whether they are within ``tol``."""
    with single_threaded_blas():
        basis = unpack_basis(broadcast)
        preconditioner = preconditioner_of(basis, shares, settings, population, engine.n_agents)
        message = {**broadcast, "unlabeled_weight": scalar(settings.penalty.strength)}
        return _Solve(engine, settings, observe, ConjugateResiduals(preconditioner)).run(message)


@dataclass(slots=True)
class _Solve:
    """The coordinator's side; stops on a measured gradient of the pooled objective, which bounds the error."""

    engine: Engine
    settings: Settings
    observe: Observer
    method: ConjugateResiduals
    answered: frozenset[str] = frozenset()
    """The agents whose gradients the method has."""
    round: int = 0
    patience: Patience = field(init=False)

    def __post_init__(self) -> None:
        self.patience = Patience(self.engine)

    def run(self, message: Bundle) -> tuple[Array, bool]:
        """Measure gradients until one shows that its point is within ``tol``, or ``max_rounds`` are used."""
        self._receive(np.zeros(len(self.method.preconditioner.root)), self.engine.sum("first_gradient", message))
        while not (self._is_within(*self.method.best_measured()) and self.patience.ends()):
            if self.round == self.settings.solver.most_rounds:
                return self.method.iterate()[0], False
            point = self._next()
            self._receive(point, self.engine.sum("weight_gradient", {"weights": point}))
        return self.method.best_measured()[0], True

    def _receive(self, point: Array, sums: Bundle) -> None:
        """Store the pooled gradient at a point, the ridge included, and report the round."""
        if self.answered != (present := frozenset(self.engine.present)):
            self.method.clear()  # the sum over other agents is another objective
            self.answered = present
        ridge = self.settings.ridge_value
        gradient = sums["gradient"] + ridge * point
        self.method.add(point, gradient)
        self.round += 1
        objective = float(sums["objective"]) + ridge / 2 * float(point @ point)
        bound = relative_error_bound(gradient, point, ridge)
        self.observe(RoundInfo(WEIGHTS, self.round, objective, 0.0, 0.0, bound))

    def _next(self) -> Array:
        """A point that is expected to be within ``tol``, so that its gradient is measured; else the next direction."""
        for point, gradient in (self.method.best_measured(), self.method.smallest_gradient()):
            if self._is_within(point, gradient):
                return point  # the first: measured already, while the solve waits for absent agents
        return self.method.next_point()

    def _is_within(self, point: Array, gradient: Array) -> bool:
        return relative_error_bound(gradient, point, self.settings.ridge_value) <= self.settings.solver.tol


def preconditioner_of(
    basis: AnyBasis, shares: Array | None, settings: Settings, population: Population, n_agents: int
) -> Preconditioner:
    """An approximation of the pooled objective's second derivative, from what the coordinator knows."""
    if settings.basis == "wavelets":
        # Wavelets do not say where the rows are, and a preconditioner for rows anywhere takes more rounds than none.
        return Preconditioner(np.sqrt(population.target.n) * np.eye(basis.n_outputs))
    return preconditioner_of_rules(
        basis.rules,
        shares,
        n_labeled=population.target.n,
        n_pairs=weighted_pairs(settings, population, n_agents),
        ridge=settings.ridge_value,
        concentration=settings.penalty.concentration,
        seed=settings.seed,
    )


def preconditioner_of_rules(
    rules: Rules,
    shares: Array | None,
    *,
    n_labeled: float,
    n_pairs: float,
    ridge: float,
    concentration: float,
    seed: int,
) -> Preconditioner:
    """The curvature to expect for so many labelled rows and weighted pairs, and the ridge."""
    rng = np.random.default_rng([seed, 0, Purpose.PRECONDITIONER])
    curvature = expected_curvature(rules, shares, n_labeled, n_pairs, concentration, rng)
    floor = FLOOR * float(np.trace(curvature)) / rules.n_outputs
    return Preconditioner.of(curvature + (ridge + floor) * np.eye(rules.n_outputs))


def weighted_pairs(settings: Settings, population: Population, n_agents: int) -> float:
    """Interpolated pairs of all agents, times the weight that the objective gives them."""
    penalty = settings.penalty
    return penalty.strength * penalty.expected_pairs(population.n_samples - population.n_labeled, n_agents)
