"""Weights by consensus ADMM (DICR): agents solve their own problems, and agree on one solution round by round.

Agents and coordinator use the coordinates of a preconditioner that all of them compute from the rules
(`dsfr.core.consensus.preconditioner`), unless there are no rules or a number is given for the penalty: then coordinates
are the weights, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import (
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
from dsfr.core.consensus.preconditioner import Preconditioner
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.solve.statistics import Quadratic
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.fixed_point import KEPT, Iteration, keep_image, kept_fields, recall
from dsfr.training.rounds import WEIGHTS, Observer, Patience
from dsfr.training.scaling.survey import KEPT_RANGES, KEPT_SCALING
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import above, array, number, optional, whole, within
from dsfr.training.tasks.fields import (
    CURVATURES,
    FAR,
    ITERATION,
    MAX_ROUNDS,
    POSITIVE,
    SCORE,
    TYPICAL_AGENT,
    UNLABELED_WEIGHT,
    problem_fields,
)
from dsfr.training.tasks.messages import KEPT_BASIS, pack, scalar, unpack, unpack_basis
from dsfr.training.tasks.registry import KEYS, forget, task
from dsfr.training.weights.conjugate_residuals import GRADIENT, gradient_of, preconditioner_of_rules, weighted_pairs
from dsfr.training.weights.local_system import KEPT_FACTOR, KEPT_PAIRS, NEEDED_TO_REDRAW, factorized, redraw_pairs
from dsfr.training.weights.problem import Problem
from dsfr.training.weights.statistics import KEPT_QUADRATIC, own_statistics

if TYPE_CHECKING:
    from dsfr.training.solvers import ADMM

MEMORY = 40
"""Rounds that acceleration combines."""
MAX_BALANCING = 200
"""Rounds in which residual balancing may change the penalty: for ever, it need not converge."""


@task(
    verb="sum",
    stage="statistics",
    reveals="How much the agent's rows determine: size and mean curvature of `A_l` in the common preconditioned "
    "coordinates; without a preconditioner, "
    'its extreme eigenvalues. With `solver="admm"` for weights.',
    broadcast=problem_fields({**TYPICAL_AGENT, "unlabeled_weight": UNLABELED_WEIGHT}),
    contributes=CURVATURES,
    needs=KEPT_SCALING,
    remembers=(*KEPT_QUADRATIC, "root", *KEPT_BASIS, *KEPT_PAIRS, *KEPT_RANGES),
)
def prepare_weights(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): compute the own statistics and keep them; tell only how strongly they are curved."""
    own = own_statistics(shard, memory, broadcast)
    preconditioner = _preconditioner(broadcast, int(memory["seed"]))
    quadratic = own.quadratic(float(broadcast["unlabeled_weight"]))
    received = {name: broadcast[name] for name in (*KEPT_BASIS, *KEPT_PAIRS, *KEPT_RANGES) if name in broadcast}
    kept = {**forget(memory), **received, **pack(quadratic), "gram": own.gram, "root": preconditioner.root}
    return kept, _extent(quadratic.curvature, preconditioner if "ridge_share" in broadcast else None)


@task(
    verb="sum",
    stage="weights",
    reveals="A vector in the place of weights and a gradient at a point that the coordinator chose, every round; see "
    'below. With `solver="admm"` for weights.',
    broadcast={
        "consensus": array("p", rules=(within(-FAR, FAR),)),
        "penalty": POSITIVE,
        "relaxation": number(above(0.0), within(0.0, 2.0)),
        **ITERATION,
        "redraw": optional(whole(1, MAX_ROUNDS)),
    },
    contributes={"image": array("p"), "products": array("r+1"), **GRADIENT, "primal_square": SCORE},
    needs={**{name: KEYS[name].field for name in (*KEPT_QUADRATIC, "root")}, **NEEDED_TO_REDRAW},
    recalls={
        **kept_fields("p"),
        "weight_penalty": POSITIVE,
        "weight_factor": replace(array("p", "p"), beside="weight_penalty"),
        **{name: KEYS[name].field for name in (*KEPT_BASIS, "near", "stretch", "variation")},
    },
    remembers=(*KEPT, *KEPT_FACTOR, "curvature"),
)
def weight_consensus(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): one round of DICR, paper Algorithm 2; consensus and state are coordinates of the preconditioner.

    Gradient and objective are those of the consensus, so that their sums belong to the pooled problem. They are with
    respect to the weights, because coordinates would add their own rounding to what must become very small.
    """
    if "redraw" in broadcast:
        memory = redraw_pairs(shard, memory, int(broadcast["redraw"]))
    consensus, penalty = broadcast["consensus"], float(broadcast["penalty"])
    state = recall(memory, broadcast)
    if state is None:
        state = np.zeros_like(consensus)
    state = rescaled(state, consensus, float(memory.get("weight_penalty", broadcast["penalty"])) / penalty)
    memory = factorized(memory, penalty)
    quadratic, preconditioner = unpack(Quadratic, memory), Preconditioner(memory["root"])
    pull = penalty * preconditioner.pull(2.0 * consensus - state)
    copy = preconditioner.coordinates(local_weights(memory["weight_factor"], quadratic.moment, pull))
    image = state + float(broadcast["relaxation"]) * (copy - consensus)
    memory, products = keep_image(memory, broadcast, state, image)
    contribution = {
        "image": image,
        "products": products,
        **gradient_of(quadratic, preconditioner.weights(consensus)),
        "primal_square": scalar(np.sum((copy - consensus) ** 2)),
    }
    return memory, contribution


def consensus_weights(problem: Problem, solver: ADMM) -> tuple[Array, bool]:
    """Agreed weights, and whether they are within ``tol``."""
    engine, settings = problem.engine, problem.settings
    broadcast = {**problem.broadcast, "unlabeled_weight": scalar(settings.penalty.strength)}
    # Wavelets do not say where the rows are, and a preconditioner for rows anywhere takes more rounds than none.
    if solver.fixed_penalty is None and settings.basis == "rules":
        broadcast |= _typical_agent(problem)
    extent = engine.sum("prepare_weights", broadcast)
    penalty = solver.fixed_penalty or _start_penalty(extent, settings.ridge_value, len(engine.present))
    with single_threaded_blas():
        preconditioner = _preconditioner(broadcast, settings.seed)
        return _Solve(engine, solver, settings.ridge_value, problem.observe, preconditioner, penalty).run()


@dataclass(slots=True)
class _Solve:
    """The coordinator's side; stops on the gradient of the pooled objective, which bounds the error of the weights."""

    engine: Engine
    solver: ADMM
    ridge: float
    observe: Observer
    preconditioner: Preconditioner
    penalty: float
    consensus: Array = field(init=False)
    """In coordinates of the preconditioner."""
    previous: Array = field(init=False)
    iteration: Iteration = field(init=False)
    agreement: RidgeConsensus = field(init=False)
    round: int = 0
    patience: Patience = field(init=False)

    def __post_init__(self) -> None:
        # New pairs every round are a new map every round: there is nothing to combine.
        accelerated = self.solver.acceleration is not None and not self.solver.refresh_pairs
        self.consensus = self.previous = np.zeros(len(self.preconditioner.root))
        self.iteration = Iteration(MEMORY if accelerated else 0)
        self.patience = Patience(self.engine)
        self.agreement = RidgeConsensus(self.preconditioner.curvature(self.ridge * np.eye(len(self.consensus))))

    def run(self) -> tuple[Array, bool]:
        """Rounds until the consensus is within ``tol``, or there have been enough."""
        while self.round < self.solver.max_rounds:
            self.round += 1
            asked = self.preconditioner.weights(self.consensus)
            if self._iterate(asked) <= self.solver.tol and self.patience.ends():
                return asked, True
        return self.preconditioner.weights(self.consensus), False

    def _iterate(self, asked: Array) -> float:
        """One round; a bound of the relative error of the weights that it began with."""
        message = {
            "consensus": self.consensus,
            "penalty": scalar(self.penalty),
            "relaxation": scalar(self.solver.relaxation),
            **self.iteration.message(),
        }
        if self.solver.refresh_pairs:
            message["redraw"] = np.asarray(self.round, dtype=np.int64)
        sums = self.engine.sum("weight_consensus", message)
        state_sum = self.iteration.receive(sums, self.engine.present)
        primal = float(np.sqrt(sums["primal_square"]))
        dual = dual_residual(self.consensus, self.previous, self.iteration.n_present, self.penalty)
        balanced = self._balanced(primal, dual)
        if balanced != self.penalty:
            self.iteration.restart()
            state_sum = sums["image"]
        moved = self.agreement.of(state_sum, self.iteration.n_present, self.penalty)
        self.previous, self.consensus = self.consensus, moved
        self.penalty = balanced
        return self._tell(asked, sums, primal, dual)

    def _tell(self, asked: Array, sums: Bundle, primal: float, dual: float) -> float:
        objective = float(sums["objective"]) + self.ridge / 2 * float(asked @ asked)
        bound = relative_error_bound(sums["gradient"] + self.ridge * asked, asked, self.ridge)
        self.observe(RoundInfo(WEIGHTS, self.round, objective, primal, dual, bound))
        return bound

    def _balanced(self, primal: float, dual: float) -> float:
        if self.solver.penalty == "balanced" and 1 < self.round <= MAX_BALANCING:
            return balanced_penalty(self.penalty, primal, dual)
        return self.penalty


def _extent(curvature: Array, preconditioner: Preconditioner | None) -> Bundle:
    """How strongly a problem is curved: what the penalty is made of."""
    if preconditioner is not None:
        inside = preconditioner.curvature(curvature)
        return {"size": scalar(float(np.linalg.norm(inside))), "mean": scalar(np.trace(inside) / len(inside))}
    extremes = np.maximum(np.linalg.eigvalsh(curvature)[[0, -1]], 0.0)
    return {"smallest": scalar(extremes[0]), "largest": scalar(extremes[1])}


def _start_penalty(extent: Bundle, ridge: float, n_agents: int) -> float:
    """A penalty from the mean curvatures of the agents' problems."""
    mean = {name: float(total) / n_agents for name, total in extent.items()}
    if "size" in mean:
        return curvature_penalty(mean["size"] or 1.0, mean["mean"] or 1.0)
    return spectral_penalty(mean["largest"] or 1.0, mean["smallest"], ridge, n_agents)


def _preconditioner(broadcast: Bundle, seed: int) -> Preconditioner:
    """The preconditioner that everybody computes from the same message; the identity if it asks for none."""
    if "ridge_share" not in broadcast:
        return Preconditioner.identity(unpack_basis(broadcast).n_outputs)
    needed = (*unpack_basis(broadcast).arrays(), "labeled_each", "pairs_each", "ridge_share", "mix_concentration")
    arrays = {name: broadcast[name] for name in needed if name in broadcast}
    message = tuple((name, array.shape, array.dtype.str, array.tobytes()) for name, array in arrays.items())
    return _preconditioner_of(message, seed)


@lru_cache(maxsize=1)
def _preconditioner_of(message: tuple[tuple[str, tuple[int, ...], str, bytes], ...], seed: int) -> Preconditioner:
    """Made once by all the agents of a process."""
    arrays = {name: np.frombuffer(data, dtype=dtype).reshape(shape) for name, shape, dtype, data in message}
    return preconditioner_of_rules(
        Rules.of_arrays(arrays),
        None,
        n_labeled=float(arrays["labeled_each"]),
        n_pairs=float(arrays["pairs_each"]),
        ridge=float(arrays["ridge_share"]),
        concentration=float(arrays.get("mix_concentration", scalar(1.0))),
        seed=seed,
    )


def _typical_agent(problem: Problem) -> Bundle:
    """Labelled rows, weighted pairs and ridge of an agent if all had the same."""
    settings, population, n_agents = problem.settings, problem.population, problem.engine.n_agents
    return {
        "labeled_each": scalar(population.target.n / n_agents),
        "pairs_each": scalar(weighted_pairs(settings, population, n_agents) / n_agents),
        "ridge_share": scalar(settings.ridge_value / n_agents),
    }
