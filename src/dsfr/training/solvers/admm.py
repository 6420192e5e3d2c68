"""Consensus ADMM for clusters (DFCM) and weights (DICR), the paper's solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, ClassVar

from dsfr.core.arrays import Array
from dsfr.engines import Engine
from dsfr.training.clustering import dfcm, paper_dfcm
from dsfr.training.component import TRUE_OR_FALSE, Rule, number, one_of, parameter
from dsfr.training.legs import Leg, Shape
from dsfr.training.penalties import UnlabeledPenalty
from dsfr.training.rounds import Observer
from dsfr.training.scaling.survey import Population
from dsfr.training.solvers.solver import IterativeSolver
from dsfr.training.weights import dicr, paper_dicr
from dsfr.training.weights.problem import Problem, Solution

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

_POSITIVE = number(0, "a number > 0")


@dataclass(frozen=True, kw_only=True, repr=False)
class ADMM(IterativeSolver):
    """Consensus ADMM: agents solve their own problems and agree on one solution round by round.

    Clusters are agreed on by DFCM and weights by DICR, the paper's Algorithms 1 and 2. ``ADMM(acceleration=None,
    penalty=0.1, cluster_penalty=0.1, refresh_pairs=True, stopping="paper")`` is the iteration of the paper's
    experiments.

    Parameters
    ----------
    penalty : float, "balanced" or None, default=None
        ADMM penalty of the weights (rho_p). None: from the curvatures of the agents' problems, preconditioned by the
        rules. "balanced": from there, doubled or halved when one residual is ten times the other.
    cluster_penalty : float, default=None
        ADMM penalty of the clustering (rho_s). None: the mean membership mass of a cluster at an agent, doubled
        whenever the agents stop getting closer.
    relaxation : float, default=1.0
        Over-relaxation of the weights, between 0 and 2; 1 is none.
    acceleration : {"anderson", None}, default="anderson"
        Anderson acceleration from sums over agents, or plain ADMM.
    refresh_pairs : bool, default=False
        Draw new pairs in every round, as the paper's Algorithm 2 prints it. The target then moves, and the solve runs
        until ``max_rounds``.
    stopping : {"certificate", "paper"}, default="certificate"
        "certificate": stop when agents agree and a step of the pooled clustering would move no center, and when the
        gradient of the pooled problem proves the accuracy of the weights. "paper": stop by the paper's tests (30) and
        (31), squared differences of iterates for each agent and cluster. They say nothing of the distance to the
        solution, so ``termination_`` is then "paper_tests" and not "converged". Agents announce their own centers,
        weights and duals, which the coordinator sees one by one; acceleration must be None and both penalties numbers.
    local_shift : {"penalty", "ridge"}, default="penalty"
        What is added to the diagonal of an agent's system: rho_p, as the derivation from eq. (32) gives it; or mu, as
        eq. (37) prints it, whose fixed point is another one unless both are equal (with ``stopping="paper"`` only).
    tol : float, default=1e-4
        Stop when agents agree and no center would move, both to ``tol``, and when the weights are provably within
        ``tol`` (relative) of the pooled solution; with ``stopping="paper"`` the threshold of its tests.
    max_rounds : int, default=10000
        Most rounds of clustering, and most rounds of solving.
    """

    shorthand: ClassVar[str] = "admm"
    usual_rounds: ClassVar[tuple[int, int]] = (20, 20)

    penalty: float | str | None = parameter(
        None,
        Rule(
            lambda value: value is None or value == "balanced" or _POSITIVE.holds(value),
            "a number > 0 (the paper uses 0.1), 'balanced', or None for one from the curvature of the problem",
        ),
    )
    cluster_penalty: float | None = parameter(
        None,
        number(0, "a number > 0 (the paper uses 0.1), or None to follow the mean cluster mass", or_none=True),
    )
    relaxation: float = parameter(
        1.0,
        Rule(lambda value: _POSITIVE.holds(value) and value < 2, "a number > 0 and < 2; 1 is plain ADMM, 1.6 is usual"),
    )
    acceleration: str | None = parameter("anderson", one_of("anderson", None))
    refresh_pairs: bool = parameter(False, TRUE_OR_FALSE)
    stopping: str = parameter("certificate", one_of("certificate", "paper"))
    local_shift: str = parameter("penalty", one_of("penalty", "ridge"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.is_printed:
            if self.local_shift != "penalty":
                raise ValueError(
                    "local_shift='ridge' must go with stopping='paper': its fixed point has no certificate"
                )
            return
        if self.acceleration is not None or self.relaxation != 1 or None in (self.fixed_penalty, self.cluster_penalty):
            raise ValueError(
                f"stopping='paper' must go with acceleration=None, relaxation=1 and numbers for penalty and "
                f"cluster_penalty (the paper uses 0.1), not with acceleration={self.acceleration!r}, "
                f"relaxation={self.relaxation!r}, penalty={self.penalty!r}, cluster_penalty={self.cluster_penalty!r}"
            )

    @property
    def is_printed(self) -> bool:
        """Whether rounds and stopping tests are those that the paper prints."""
        return self.stopping == "paper"

    @property
    def ending(self) -> str:
        """The paper's tests do not measure the distance to the solution."""
        return "paper_tests" if self.is_printed else super().ending

    @property
    def accelerates_clustering(self) -> bool:
        """Whether a single agent takes L-BFGS steps, and not the textbook's."""
        return self.acceleration is not None

    @property
    def fixed_penalty(self) -> float | None:
        """The ADMM penalty of the weights, if it is a number."""
        return float(self.penalty) if isinstance(self.penalty, Real) else None

    def accepts(self) -> Mapping[str, Rule]:
        """No tuning and no uncertainty; and with ``refresh_pairs`` a penalty whose pairs are drawn."""
        redrawn = Rule(_is_drawn, "a penalty of drawn pairs such as 'icr', because refresh_pairs=True draws them again")
        return {**super().accepts(), **({"unlabeled": redrawn} if self.refresh_pairs else {})}

    def agree_centers(
        self, engine: Engine, settings: Settings, population: Population, start: Array, observe: Observer
    ) -> tuple[Array, bool]:
        """Centers by DFCM."""
        if self.is_printed:
            return paper_dfcm.paper_centers(engine, self, start, observe)
        return dfcm.consensus_centers(engine, settings.n_rules, self, population, start, observe)

    def agree_weights(self, problem: Problem) -> Solution:
        """Weights by DICR."""
        if self.is_printed:
            return Solution(*paper_dicr.paper_weights(problem, self))
        return Solution(*dicr.consensus_weights(problem, self))

    def unused_by_one_agent(self) -> str:
        """New pairs need rounds."""
        if not self.refresh_pairs or self.is_printed:  # the paper's centralised method has a closed form
            return ""
        return (
            "refresh_pairs=True had no effect: a single agent solves for the weights once, so pairs are drawn once. "
            "Use several agents, or leave it out."
        )

    def unconverged(self, stage: str, bound: float) -> str:
        """What to tell of a stage that did not pass the paper's tests, or did not reach ``tol``."""
        if not self.is_printed:
            return super().unconverged(stage, bound)
        return (
            f"the {stage} did not pass the paper's tests with tol={self.tol:g} within max_rounds={self.max_rounds} "
            f"(the larger of both squared differences is {bound:.1e}). They do not measure the distance to the "
            "solution; for a measured one take stopping='certificate'."
        )

    def center_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """Messages of DFCM."""
        if self.is_printed:
            yield shape.leg("dfcm_round", rounds)
            return
        memory = dfcm.MEMORY if self.acceleration else 0
        yield shape.leg("cluster_consensus", rounds, n_mixed=_mean_mix(rounds, memory), exact=memory == 0)

    def weight_legs(self, shape: Shape, rounds: int) -> Iterator[Leg]:
        """Messages of DICR."""
        preconditioned = self.fixed_penalty is None and shape.has_rules
        sent, answered = ({"ridge_share"}, {"size"}) if preconditioned else (set[str](), set[str]())
        yield shape.leg("prepare_weights", 1, sent=shape.problem | sent, answered=answered)
        redraw = {"redraw"} if self.refresh_pairs else set[str]()
        if self.is_printed:
            yield shape.leg("dicr_round", rounds, sent=redraw)
            return
        memory = dicr.MEMORY if self.acceleration and not self.refresh_pairs else 0
        n_mixed = _mean_mix(rounds, memory)
        yield shape.leg("weight_consensus", rounds, sent=redraw, n_mixed=n_mixed, exact=memory == 0)


def _is_drawn(penalty: UnlabeledPenalty | None) -> bool:
    return penalty is not None and penalty.is_drawn


def _mean_mix(rounds: int, memory: int) -> int:
    """Weights of past images in a message, on average: one more every round until the memory is full."""
    lengths = [min(number, memory + 1) for number in range(1, rounds + 1)]
    return round(sum(lengths) / max(len(lengths), 1))
