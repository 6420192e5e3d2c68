"""A whole training in six rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dsfr.core.arrays import Array
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.engines import Engine
from dsfr.training.clustering.few_rounds import N_REFINEMENTS, few_rounds_rules
from dsfr.training.component import Rule, only
from dsfr.training.legs import Leg, Shape
from dsfr.training.rounds import Observer
from dsfr.training.scaling.checks import warn_of_many_rules
from dsfr.training.scaling.scalings import Scaling
from dsfr.training.scaling.survey import Population
from dsfr.training.solvers.solver import Solver
from dsfr.training.solvers.sums import statistics_legs
from dsfr.training.weights.problem import Problem, Solution
from dsfr.training.weights.summed import summed_weights

if TYPE_CHECKING:
    from dsfr.training.settings import Settings


@dataclass(frozen=True, kw_only=True, repr=False)
class FewRounds(Solver):
    """Six rounds in all, for links where a round costs seconds.

    Every agent clusters its own rows, the local centers (which the coordinator sees one by one) are merged and refined
    twice, and everything else is sums. The centers are not fully converged, and ``termination_`` is
    "fixed_rounds".

    Parameters
    ----------
    tol : float, default=1e-4
        Local clusterings stop when no center would move by more than ``tol``.
    """

    shorthand: ClassVar[str] = "few-rounds"
    shares_statistics: ClassVar[bool] = True
    usual_rounds: ClassVar[tuple[int, int]] = (N_REFINEMENTS, 1)
    rounds_to_wait: ClassVar[int] = 0
    takes_start: ClassVar[bool] = False

    @property
    def ending(self) -> str:
        """Neither the step of the centers nor the distance to the solution decides when it ends."""
        return "fixed_rounds"

    def accepts(self) -> Mapping[str, Rule]:
        """Nothing that takes further rounds."""
        why = "anything else takes further rounds"
        return {
            "tune": only("evidence", None, because=why),
            "scaling": Rule(is_not_robust, f"'range', because {why}"),
            "n_models": only(1, because=why),
            "relevance": only(None, because=why),
            "uncertainty": only(False, because=why),
        }

    def agree_basis(
        self, engine: Engine, settings: Settings, observe: Observer
    ) -> tuple[Population, Rules, Array, bool]:
        """Rules from merged local clusterings, in five rounds; a single agent clusters to the end."""
        if engine.n_agents == 1:
            return super().agree_basis(engine, settings, observe)
        population, rules, shares = few_rounds_rules(engine, settings, observe)
        warn_of_many_rules(settings, population.n_samples)
        return population, rules, shares, True

    def check_engine(self, engine: Engine) -> None:
        """Refuse engines on which local centers cannot be gathered.

        Raises
        ------
        ValueError
            If sums alone leave the agents.
        """
        if engine.only_sums:
            raise ValueError(
                'solver="few-rounds" gathers the centers of every agent, and on this engine sums alone leave them: '
                'take solver="sums"'
            )

    def agree_weights(self, problem: Problem) -> Solution:
        """Weights from one round of summed statistics."""
        return summed_weights(problem)

    def basis_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """Ranges, local centers, and two refinements, the first along with the counts."""
        yield next(shape.survey_legs())
        yield shape.leg("local_clusters", 1, sent=set(shape.settings.rules.weighting()))
        yield shape.summing_leg("count_and_sum")
        yield from self.center_legs(shape, N_REFINEMENTS - 1)

    def weight_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """One round of statistics."""
        return statistics_legs(shape)


def is_not_robust(scaling: Scaling) -> bool:
    """Whether a scaling needs extremes only."""
    return not scaling.is_robust
