"""Weights from one round of summed statistics, tuned by evidence or by leave-one-out if asked for."""

from __future__ import annotations

from dsfr.core.consensus.admm import RoundInfo, relative_error_bound
from dsfr.core.relevance.slope_shrinkage import Shrinkage, constant_features
from dsfr.core.solve.cholesky import solve_factored
from dsfr.core.solve.evidence import Tuned, maximize_evidence
from dsfr.core.solve.statistics import Statistics, ridge_factor
from dsfr.training.rounds import WEIGHTS
from dsfr.training.tasks.messages import unpack_statistics
from dsfr.training.weights.leave_one_out import minimize_left_out
from dsfr.training.weights.problem import Problem, Solution


def summed_weights(problem: Problem) -> Solution:
    """The pooled solution; its ridge and the weight of the penalty are those given, or tuned."""
    settings = problem.settings
    total = unpack_statistics(problem.engine.sum("statistics", problem.broadcast))
    tied = _tied(problem, total)
    seen = total if tied is None else total.mapped(tied.times)
    tuned = _tune(problem, seen)
    weight, ridge = settings.penalty.strength, settings.ridge_value
    if tuned is not None:
        weight, ridge = tuned.unlabeled_weight, tuned.ridge
    quadratic = seen.quadratic(weight)
    factor = ridge_factor(quadratic.curvature, ridge)
    weights = solve_factored(factor, quadratic.moment)
    bound = relative_error_bound(quadratic.gradient(weights) + ridge * weights, weights, ridge)
    objective = quadratic.value(weights) + ridge / 2 * float(weights @ weights)
    problem.observe(RoundInfo(WEIGHTS, 1, objective, 0.0, 0.0, bound))
    lines = weights if tied is None else tied.times(weights)
    return Solution(
        lines, tuned=tuned, statistics=total, unlabeled_weight=weight, ridge=ridge, tied=tied, own_factor=factor
    )


def _tied(problem: Problem, total: Statistics) -> Shrinkage | None:
    """Ties of the lines by relevance, where evidence chooses the ridge; other ways to choose know the lines only."""
    if problem.settings.tune != "evidence" or "stretch" not in problem.broadcast:
        return None
    n_rules = len(problem.broadcast["centers"])
    return Shrinkage.of(problem.broadcast["stretch"], n_rules, constant_features(total, n_rules))


def _tune(problem: Problem, total: Statistics) -> Tuned | None:
    if problem.settings.tune == "loo":
        return minimize_left_out(problem.engine, problem.broadcast, total)
    return maximize_evidence(total) if problem.settings.tune == "evidence" else None
