"""Weights by consensus ADMM (DICR): agents solve their own problems, and agree on one solution round by round.

Agents and coordinator speak in coordinates of a metric that all of them compute from the rules (`dsfr.core.metric`),
unless there are no rules or a number is given for the penalty: then coordinates are the weights, as in the paper. The
coordinator knows the pooled gradient at every consensus that it has tried, and tries the best point in all that these
span.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from numbers import Real

import numpy as np

from dsfr.bundles import Bundle
from dsfr.core.arrays import Array
from dsfr.core.consensus import (
    RidgeConsensus,
    RoundInfo,
    balanced_penalty,
    curvature_penalty,
    dual_residual,
    local_weights,
    relative_error_bound,
    rescaled,
    spectral_penalty,
)
from dsfr.core.extrapolation import Span
from dsfr.core.linear import cholesky
from dsfr.core.metric import Metric, expected_curvature
from dsfr.core.statistics import Quadratic
from dsfr.engines import Engine
from dsfr.protocol.clusters import Observer
from dsfr.protocol.iteration import WAIT_FOR_ABSENT, Iteration, forget, recall, remember
from dsfr.protocol.packing import pack, scalar, unpack, unpack_basis
from dsfr.protocol.settings import Settings
from dsfr.protocol.shard import Purpose, Shard
from dsfr.protocol.statistics import own_statistics, pair_gram
from dsfr.protocol.survey import Population
from dsfr.protocol.threads import single_threaded_blas

STAGE = "weights"
MEMORY = 40
"""Rounds that acceleration combines."""
MOST_POINTS = 200
"""Points that extrapolation combines; more than the weights of most models."""
MAX_BALANCING = 200
"""Rounds in which residual balancing may change the penalty: for ever, it need not converge."""
FLOOR = 1e-10
"""Least curvature of the metric, relative to the mean: it must be definite, however small the ridge."""


def prepare_weights(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): compute the own statistics and keep them; tell only how strongly they are curved."""
    own = own_statistics(shard, memory, broadcast)
    metric = _metric(broadcast, int(memory["seed"]))
    quadratic = own.quadratic(float(broadcast["unlabeled_weight"]))
    kept = {**forget(memory), **broadcast, **pack(quadratic), "gram": own.gram, "root": metric.root}
    return kept, _extent(quadratic.curvature, metric if "ridge_share" in broadcast else None)


def weight_consensus(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): one round of DICR, paper Algorithm 2; consensus and state are coordinates of the metric.

    Gradient and objective are those of the consensus, so that their sums belong to the pooled problem. They are with
    respect to the weights, because coordinates would add their own rounding to what must become very small.
    """
    if "redraw" in broadcast:
        memory = _redraw_pairs(shard, memory, int(broadcast["redraw"]))
    consensus, penalty = broadcast["consensus"], float(broadcast["penalty"])
    state = recall(memory, broadcast)
    if state is None:
        state = np.zeros_like(consensus)
    state = rescaled(state, consensus, float(memory.get("penalty", broadcast["penalty"])) / penalty)
    memory = _factorized(memory, penalty)
    quadratic, metric = unpack(Quadratic, memory), Metric(memory["root"])
    pull = penalty * metric.pull(2.0 * consensus - state)
    copy = metric.coordinates(local_weights(memory["factor"], quadratic.moment, pull))
    image = state + float(broadcast["relaxation"]) * (copy - consensus)
    memory, products = remember(memory, broadcast, state, image)
    contribution = {
        "image": image,
        "products": products,
        **_slope(quadratic, metric.weights(consensus)),
        "primal_square": scalar(np.sum((copy - consensus) ** 2)),
    }
    return memory, contribution


def weight_gradient(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): gradient and objective for some weights, and nothing else."""
    return memory, _slope(unpack(Quadratic, memory), broadcast["weights"])


def consensus_weights(
    engine: Engine, settings: Settings, population: Population, broadcast: Bundle, observe: Observer
) -> tuple[Array, bool]:
    """Agreed weights, and whether they are within ``tol``."""
    told = {**broadcast, "unlabeled_weight": scalar(settings.unlabeled_weight)}
    # Of wavelets nothing tells where the rows are, and a metric for rows anywhere is worse than none.
    if not isinstance(settings.penalty, Real) and settings.basis == "rules":
        told |= _typical_agent(settings, population, engine.n_agents)
    extent = engine.sum("prepare_weights", told)
    penalty = _start_penalty(settings, extent, len(engine.present))
    with single_threaded_blas():
        return _Solve(engine, settings, observe, _metric(told, settings.seed), penalty).run()


@dataclass(slots=True)
class _Solve:
    """The coordinator's side; stops on the gradient of the pooled objective, which bounds the error of the weights."""

    engine: Engine
    settings: Settings
    observe: Observer
    metric: Metric
    penalty: float
    consensus: Array = field(init=False)
    """In coordinates of the metric."""
    previous: Array = field(init=False)
    iteration: Iteration = field(init=False)
    span: Span = field(init=False)
    """Points as weights, with their gradients."""
    answered: frozenset[str] = frozenset()
    """Whose gradients they are."""
    agreement: RidgeConsensus = field(init=False)
    round: int = 0
    primal: float = 0.0
    dual: float = 0.0
    absent_rounds: int = 0
    """Rounds waited for agents that are away, after those present have converged."""
    rest: int = 0
    """Rounds to go before the next extrapolated point is tried."""
    last_rest: int = 0

    def __post_init__(self) -> None:
        # New pairs every round are a new map every round: there is nothing to extrapolate.
        accelerated = bool(self.settings.acceleration) and not self._redraws
        self.consensus = self.previous = np.zeros(len(self.metric.root))
        self.iteration = Iteration(MEMORY if accelerated else 0)
        self.span = Span(MOST_POINTS if accelerated else 1)
        self.agreement = RidgeConsensus(self.metric.curvature(self.settings.ridge * np.eye(len(self.consensus))))

    def run(self) -> tuple[Array, bool]:
        """Rounds of ADMM, and of trying what they point at."""
        while self.round < self.settings.max_rounds:
            promising = self._promising()
            if promising is None:
                self._iterate()
            else:
                self._try(promising)
            if self._within() and self._may_stop():
                return self.span.best()[0], True
        best = self.metric.weights(self.consensus) if len(self.span.points) < 2 else self.span.extrapolated()[0]
        return best, False

    def _iterate(self) -> None:
        message = {
            "consensus": self.consensus,
            "penalty": scalar(self.penalty),
            "relaxation": scalar(self.settings.relaxation),
            **self.iteration.message(),
        }
        if self._redraws:
            message["redraw"] = np.asarray(self.round + 1, dtype=np.int64)
        sums = self.engine.sum("weight_consensus", message)
        state_sum = self.iteration.receive(sums, self.engine.present)
        self.primal = float(np.sqrt(sums["primal_square"]))
        self.dual = dual_residual(self.consensus, self.previous, self.iteration.n_present, self.penalty)
        self._note(self.metric.weights(self.consensus), sums)
        self.rest = max(self.rest - 1, 0)
        balanced = self._balanced()
        if balanced != self.penalty:
            self.iteration.restart()
            state_sum = sums["image"]
        moved = self.agreement.of(state_sum, self.iteration.n_present, self.penalty)
        self.previous, self.consensus = self.consensus, moved
        self.penalty = balanced

    def _try(self, point: Array) -> None:
        """Measure the gradient at an extrapolated point: what was expected there is true up to rounding only."""
        smallest = np.linalg.norm(self.span.best()[1])
        sums = self.engine.sum("weight_gradient", {"weights": point})
        self._note(point, sums)
        # Rounding is less harmful about a better point, so another try may follow at once; else more must be known.
        better = np.linalg.norm(self.span.best()[1]) < smallest / 2.0
        self.rest = 0 if better else self.last_rest + 1
        self.last_rest = 2 * self.rest

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
        self.observe(RoundInfo(STAGE, self.round, objective, self.primal, self.dual, bound))

    def _promising(self) -> Array | None:
        """The extrapolated point, if it should be within ``tol`` and no point is that is known."""
        if self.rest or len(self.span.points) < 2 or self._within():
            return None
        point, gradient = self.span.extrapolated()
        return point if self._is_within(point, gradient) else None

    def _within(self) -> bool:
        return self._is_within(*self.span.best())

    def _is_within(self, point: Array, gradient: Array) -> bool:
        return relative_error_bound(gradient, point, self.settings.ridge) <= self.settings.tol

    def _may_stop(self) -> bool:
        """With an agent missing, the gradient is that of the others' objective: a return is worth waiting for."""
        if len(self.engine.present) == self.engine.n_agents or self.absent_rounds == WAIT_FOR_ABSENT:
            return True
        self.absent_rounds += 1
        return False

    def _balanced(self) -> float:
        if self.settings.penalty == "balanced" and 1 < self.round <= MAX_BALANCING:
            return balanced_penalty(self.penalty, self.primal, self.dual)
        return self.penalty

    @property
    def _redraws(self) -> bool:
        return self.settings.refresh_pairs and self.settings.unlabeled == "icr"


def _extent(curvature: Array, metric: Metric | None) -> Bundle:
    """How strongly a problem is curved: what the penalty is made of."""
    if metric is not None:
        inside = metric.curvature(curvature)
        return {"size": scalar(float(np.linalg.norm(inside))), "mean": scalar(np.trace(inside) / len(inside))}
    extremes = np.maximum(np.linalg.eigvalsh(curvature)[[0, -1]], 0.0)
    return {"smallest": scalar(extremes[0]), "largest": scalar(extremes[1])}


def _start_penalty(settings: Settings, extent: Bundle, n_agents: int) -> float:
    """The paper's ``rho_p`` if it is given, else one from the mean curvatures of the agents' problems."""
    if isinstance(settings.penalty, Real):
        return float(settings.penalty)
    mean = {name: float(total) / n_agents for name, total in extent.items()}
    if "size" in mean:
        return curvature_penalty(mean["size"] or 1.0, mean["mean"] or 1.0)
    return spectral_penalty(mean["largest"] or 1.0, mean["smallest"], settings.ridge, n_agents)


def _metric(told: Bundle, seed: int) -> Metric:
    """The metric that everybody makes of the same message, or the weights as they are if it says nothing of it."""
    if "ridge_share" not in told:
        return Metric.plain(unpack_basis(told).n_outputs)
    needed = (*unpack_basis(told).arrays(), "labeled_each", "pairs_each", "ridge_share", "mix_concentration")
    return _metric_of(tuple((name, told[name].shape, told[name].tobytes()) for name in needed if name in told), seed)


@lru_cache(maxsize=1)
def _metric_of(message: tuple[tuple[str, tuple[int, ...], bytes], ...], seed: int) -> Metric:
    """Made once by all the agents of a process."""
    told = {name: np.frombuffer(numbers).reshape(shape) for name, shape, numbers in message}
    basis = unpack_basis(told)
    curvature = expected_curvature(
        basis,
        shares=None,
        n_labeled=float(told["labeled_each"]),
        n_pairs=float(told["pairs_each"]),
        concentration=float(told.get("mix_concentration", scalar(1.0))),
        rng=np.random.default_rng([seed, 0, Purpose.METRIC]),
    )
    floor = FLOOR * float(np.trace(curvature)) / basis.n_outputs
    return Metric.of(curvature + (float(told["ridge_share"]) + floor) * np.eye(basis.n_outputs))


def _typical_agent(settings: Settings, population: Population, n_agents: int) -> Bundle:
    """Labelled rows, weighted pairs and ridge of an agent if all had the same."""
    n_pairs = 0.0
    if settings.unlabeled == "icr":
        as_rows = (population.n_samples - population.target.n) / n_agents
        n_pairs = as_rows if settings.n_pairs is None else float(settings.n_pairs)
    return {
        "labeled_each": scalar(population.target.n / n_agents),
        "pairs_each": scalar(n_pairs * settings.unlabeled_weight),
        "ridge_share": scalar(settings.ridge / n_agents),
    }


def _slope(quadratic: Quadratic, point: Array) -> Bundle:
    return {"gradient": quadratic.gradient(point), "objective": scalar(quadratic.value(point))}


def _redraw_pairs(shard: Shard, memory: Bundle, round_number: int) -> Bundle:
    """New pairs as Algorithm 2 has them; the factor is of the old ones and goes."""
    gaps = pair_gram(shard, memory, memory, unpack_basis(memory), repeat=round_number)
    curvature = memory["gram"] + float(memory["unlabeled_weight"]) * gaps
    kept = {name: array for name, array in memory.items() if name != "factor"}
    return {**kept, "curvature": curvature}


def _factorized(memory: Bundle, penalty: float) -> Bundle:
    if "factor" in memory and float(memory["penalty"]) == penalty:
        return memory
    factor = cholesky(memory["curvature"] + penalty * Metric(memory["root"]).matrix)
    return {**memory, "factor": factor, "penalty": scalar(penalty)}
