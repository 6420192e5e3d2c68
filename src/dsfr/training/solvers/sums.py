"""The pooled solution from sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from dsfr.training.component import one_of, parameter
from dsfr.training.legs import Leg, Shape
from dsfr.training.solvers.solver import IterativeSolver
from dsfr.training.weights.problem import Problem, Solution
from dsfr.training.weights.summed import summed_weights


def statistics_legs(shape: Shape) -> Iterator[Leg]:
    """One round of summed statistics."""
    answered = {"unlabeled_gram"} if shape.settings.unlabeled is not None else set[str]()
    yield shape.leg("statistics", 1, sent=shape.problem, answered=answered)


@dataclass(frozen=True, kw_only=True, repr=False)
class Sums(IterativeSolver):
    """Exact sums: agents add up their statistics, which give the pooled solution in one round.

    Agents that are away are not waited for: their rows are not in the sums that follow either.

    Parameters
    ----------
    tol : float, default=1e-4
        Clustering stops when no center would move by more than ``tol``.
    max_rounds : int, default=10000
        Most rounds of clustering.
    acceleration : {"l-bfgs", None}, default="l-bfgs"
        Steps of the clustering: L-BFGS steps on its objective, or the textbook's alternating steps.
    """

    shorthand: ClassVar[str] = "sums"
    shares_statistics: ClassVar[bool] = True
    usual_rounds: ClassVar[tuple[int, int]] = (10, 1)
    rounds_to_wait: ClassVar[int] = 0

    acceleration: str | None = parameter("l-bfgs", one_of("l-bfgs", None))

    @property
    def accelerates_clustering(self) -> bool:
        """Whether pooled fuzzy c-means takes L-BFGS steps."""
        return self.acceleration is not None

    def agree_weights(self, problem: Problem) -> Solution:
        """Weights from one round of summed statistics."""
        return summed_weights(problem)

    def weight_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """One round of statistics."""
        return statistics_legs(shape)
