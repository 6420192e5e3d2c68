"""Weights by preconditioned conjugate residuals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from dsfr.training.legs import Leg, Shape
from dsfr.training.solvers.solver import IterativeSolver
from dsfr.training.weights.conjugate_residuals import conjugate_residual_weights
from dsfr.training.weights.problem import Problem, Solution


@dataclass(frozen=True, kw_only=True, repr=False)
class Conjugate(IterativeSolver):
    """Conjugate residuals: agents send gradients, and the coordinator solves the pooled problem from these.

    The rounds depend on the pooled problem, and not on the number of agents or on who has which rows. Clusters come
    from pooled fuzzy c-means with L-BFGS steps.

    Parameters
    ----------
    tol : float, default=1e-4
        Stop when no center would move by more than ``tol``, and when the weights are provably within ``tol`` (relative)
        of the pooled solution.
    max_rounds : int, default=10000
        Most rounds of clustering, and most rounds of solving.
    """

    shorthand: ClassVar[str] = "conjugate"
    usual_rounds: ClassVar[tuple[int, int]] = (10, 20)

    def agree_weights(self, problem: Problem) -> Solution:
        """Weights within ``tol`` of the pooled solution."""
        arguments = (problem.engine, problem.settings, problem.population, problem.broadcast, problem.shares)
        return Solution(*conjugate_residual_weights(*arguments, problem.observe))

    def weight_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """A gradient every round."""
        yield shape.leg("first_gradient", 1, sent=shape.problem)
        yield shape.leg("weight_gradient", rounds - 1)
