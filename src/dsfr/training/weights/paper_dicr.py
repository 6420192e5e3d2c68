"""DICR as the paper prints it: agents announce their weights and duals, and stop by differences of iterates."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo, dual_residual, local_weights
from dsfr.core.consensus.iterate_differences import largest_disagreement, largest_dual_change
from dsfr.core.solve.statistics import Quadratic
from dsfr.storage.bundles import Bundle
from dsfr.training.rounds import WEIGHTS, of_all_agents
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array, number, optional, whole
from dsfr.training.tasks.fields import MAX_ROUNDS, POSITIVE, WEIGHT_VECTOR
from dsfr.training.tasks.messages import KEPT_BASIS, scalar, unpack, unpack_basis
from dsfr.training.tasks.registry import KEYS, remember, task
from dsfr.training.weights.local_system import KEPT_FACTOR, NEEDED_TO_REDRAW, factorized, redraw_pairs
from dsfr.training.weights.problem import Problem
from dsfr.training.weights.statistics import KEPT_QUADRATIC

if TYPE_CHECKING:
    from dsfr.training.solvers import ADMM

KEPT_COPY = remember(__name__, {"weight_copy": array("p"), "weight_dual": array("p")}, transient=True)


@task(
    verb="gather",
    stage="weights",
    reveals="Weights and duals of every agent, seen as they are, every round: with enough rounds `A_l` and `b_l`, see "
    'below. With `ADMM(stopping="paper")`, for weights.',
    broadcast={
        "consensus": WEIGHT_VECTOR,
        "penalty": POSITIVE,
        "shift": POSITIVE,
        "redraw": optional(whole(1, MAX_ROUNDS)),
    },
    contributes={"weights": array("p"), "dual": array("p"), "objective": number()},
    needs={**{name: KEYS[name].field for name in (*KEPT_QUADRATIC, "root")}, **NEEDED_TO_REDRAW},
    recalls={
        "weight_copy": array("p"),
        "weight_dual": replace(array("p"), beside="weight_copy"),
        "weight_penalty": POSITIVE,
        "weight_factor": replace(array("p", "p"), beside="weight_penalty"),
        **{name: KEYS[name].field for name in (*KEPT_BASIS, "near", "stretch", "variation")},
    },
    remembers=(*KEPT_COPY, *KEPT_FACTOR, "curvature"),
)
def dicr_round(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (gather): one round of paper Algorithm 2: duals (35) of the round before, pairs, weights (36)."""
    if "redraw" in broadcast:
        memory = redraw_pairs(shard, memory, int(broadcast["redraw"]))
    consensus, penalty = broadcast["consensus"], float(broadcast["penalty"])
    dual = np.zeros_like(consensus)
    if "weight_copy" in memory:
        dual = memory["weight_dual"] + penalty * (memory["weight_copy"] - consensus)
    memory = factorized(memory, float(broadcast["shift"]))
    quadratic = unpack(Quadratic, memory)
    weights = local_weights(memory["weight_factor"], quadratic.moment, penalty * consensus - dual)
    contribution = {"weights": weights, "dual": dual, "objective": scalar(quadratic.value(consensus))}
    return {**memory, "weight_copy": weights, "weight_dual": dual}, contribution


def paper_weights(problem: Problem, solver: ADMM) -> tuple[Array, bool]:
    """Global weights (38), and whether the tests (30) and (31), for weights, were passed with the threshold ``tol``.

    The paper prints tests for clusters alone, and gives one threshold for both stages.
    """
    engine, settings = problem.engine, problem.settings
    penalty, ridge = solver.fixed_penalty or 0.0, settings.ridge_value
    # Deviates from eq. (37), which prints mu; its derivation gives rho_p: see docs/adr/0005.
    shift = ridge if solver.local_shift == "ridge" else penalty
    engine.sum("prepare_weights", {**problem.broadcast, "unlabeled_weight": scalar(settings.penalty.strength)})
    consensus = previous = np.zeros(unpack_basis(problem.broadcast).n_outputs)
    for round_number in range(1, solver.max_rounds + 1):
        redraw = {"redraw": np.asarray(round_number, dtype=np.int64)} if solver.refresh_pairs else {}
        message = {"consensus": consensus, "penalty": scalar(penalty), "shift": scalar(shift), **redraw}
        answers = of_all_agents(engine, engine.gather("dicr_round", message))
        copies, duals = (np.stack([answer[name] for answer in answers]) for name in ("weights", "dual"))
        moved = (duals + penalty * copies).sum(axis=0) / (ridge + penalty * len(answers))
        bound = max(largest_disagreement(copies), largest_dual_change(copies, moved, penalty))
        problem.observe(
            RoundInfo(
                WEIGHTS,
                round_number,
                sum(float(answer["objective"]) for answer in answers) + ridge / 2 * float(consensus @ consensus),
                float(np.linalg.norm(copies - consensus)),
                dual_residual(consensus, previous, len(answers), penalty),
                bound,
            )
        )
        previous, consensus = consensus, moved
        if bound <= solver.tol:
            return consensus, True
    return consensus, False
