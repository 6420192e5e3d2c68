"""What a solver is: the coordinator's side of agreeing on clusters and on weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dsfr.core.arrays import Array
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.engines import Engine
from dsfr.training.clustering.clusters import agree_rules, summed_centers
from dsfr.training.component import Component, Rule, count, number, only, parameter
from dsfr.training.legs import Leg, Shape
from dsfr.training.rounds import CLUSTERS, WAIT_FOR_ABSENT, Observer
from dsfr.training.scaling.checks import FEW_ROWS, warn_of_many_rules
from dsfr.training.scaling.robust import agree_scaling
from dsfr.training.scaling.survey import Population
from dsfr.training.weights.problem import Problem, Solution

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

MOST_ROUNDS = 10_000


@dataclass(frozen=True, kw_only=True, repr=False)
class Solver(Component):
    """How several agents agree on clusters and on weights; a single agent needs no agreement and no solver.

    A subclass implements `agree_weights`, and declares with `shares_statistics` and `accepts` what it goes with. By
    default centers come from pooled fuzzy c-means.
    """

    argument: ClassVar[str] = "solver"
    shares_statistics: ClassVar[bool] = False
    """Whether the coordinator gets the summed statistics, which tuning and uncertainty need."""
    usual_rounds: ClassVar[tuple[int, int] | None] = None
    """Median rounds of clustering and of solving on the paper's tables, for plans; None: they cannot be planned."""
    gossips: ClassVar[bool] = False
    """Whether agents sum by messages between neighbors, without a coordinator."""
    takes_start: ClassVar[bool] = True
    """Whether clustering begins at start centers that are common to all agents."""
    rounds_to_wait: ClassVar[int] = WAIT_FOR_ABSENT
    """Rounds that clustering waits for agents that are away, once the others have converged."""

    tol: float = parameter(1e-4, number(0, "a number > 0; 1e-4 is usual"))

    @property
    def most_rounds(self) -> int:
        """Most rounds of clustering, and most rounds of solving."""
        return MOST_ROUNDS

    @property
    def ending(self) -> str:
        """What ``termination_`` says of a training of several agents that did not end by ``max_rounds``."""
        return "converged"

    @property
    def accelerates_clustering(self) -> bool:
        """Whether pooled fuzzy c-means takes L-BFGS steps, and not the textbook's."""
        return True

    def accepts(self) -> Mapping[str, Rule]:
        """Rules that this solver has for other settings."""
        if self.shares_statistics:
            return {}
        why = "this solver does not sum the agents' statistics"
        return {"tune": only(None, because=why), "uncertainty": only(False, because=why)}

    def agree_basis(
        self, engine: Engine, settings: Settings, observe: Observer
    ) -> tuple[Population, Rules, Array, bool]:
        """Population, rules, their shares of the rows, and whether clustering has converged."""
        population = agree_scaling(engine, settings)
        warn_of_many_rules(settings, population.n_samples)
        return population, *agree_rules(engine, settings, population, observe)

    def agree_centers(
        self, engine: Engine, settings: Settings, population: Population, start: Array, observe: Observer
    ) -> tuple[Array, bool]:
        """Centers that several agents agree on, from a common start, and whether they have converged."""
        return self.pooled_centers(engine, settings, population, start, observe)

    def pooled_centers(
        self, engine: Engine, settings: Settings, population: Population, start: Array, observe: Observer
    ) -> tuple[Array, bool]:
        """Centers of pooled fuzzy c-means, every step from one sum over agents."""
        # With a row or two per cluster plain steps end at once; empty clusters mislead steps with a memory.
        plain = not self.accelerates_clustering or population.n_samples <= FEW_ROWS * settings.n_rules
        return summed_centers(engine, self, start, observe, plain=plain, sample=population.sample)

    def agree_weights(self, problem: Problem) -> Solution:
        """Weights that several agents agree on."""
        raise NotImplementedError

    def check_engine(self, engine: Engine) -> None:
        """Raise a ValueError if the solver cannot run over this engine."""

    def basis_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """Messages until there are centers."""
        yield from shape.survey_legs()
        yield shape.start_leg()
        yield from self.center_legs(shape, rounds)

    def center_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """Messages of `agree_centers`."""
        yield shape.leg("cluster_sums", rounds)

    def weight_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """Messages of `agree_weights`."""
        raise NotImplementedError

    def unused_by_one_agent(self) -> str:
        """What to tell a single agent of arguments that have no effect on it; empty if there is nothing to tell."""
        return ""

    def unconverged(self, stage: str, bound: float) -> str:
        """What to tell of a stage that ended with this error bound before it reached ``tol``."""
        verdict = "The model is usable" if bound < 0.01 else "The model may be far from the solution"
        refused = " If agents have refused the last steps, more rounds do not help." if stage == CLUSTERS else ""
        remedy = "raise max_rounds" if self.shares_statistics else 'raise max_rounds or take solver="sums"'
        return (
            f"the {stage} did not reach tol={self.tol:g} within max_rounds={self.most_rounds} "
            f"(error bound {bound:.1e}). {verdict}; for a better one {remedy}.{refused}"
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class IterativeSolver(Solver):
    """A solver that goes round by round until ``tol`` is reached."""

    max_rounds: int = parameter(MOST_ROUNDS, count(1, "a whole number >= 1"))

    @property
    def most_rounds(self) -> int:
        """Most rounds of clustering, and most rounds of solving."""
        return self.max_rounds
