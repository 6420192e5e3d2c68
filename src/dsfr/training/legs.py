"""One task of a planned training: how often it runs, and the sizes of its messages."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dsfr.core.density import MOST_CORRELATED
from dsfr.core.features.membership import Gaussian
from dsfr.training.fuzzy_rules import LOCAL_START
from dsfr.training.tasks.declaration import payload
from dsfr.training.tasks.registry import REGISTRY
from dsfr.training.tasks.symbols import Sizes

if TYPE_CHECKING:
    from dsfr.training.settings import Settings


@dataclass(frozen=True, slots=True)
class Leg:
    """One task of a training: how often it runs, and what goes to and comes from an agent each time."""

    task: str
    verb: str
    rounds: int
    bytes_down: int
    bytes_up: int
    everybody_answers: bool = True
    exact: bool = True
    """Whether the sizes are certain; acceleration sends a few numbers more or less."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the sizes of messages depend on."""

    n_features: int
    settings: Settings

    @property
    def has_rules(self) -> bool:
        """Whether there are rules, and not wavelets."""
        return self.settings.basis == "rules"

    @property
    def sizes(self) -> Sizes:
        """Values of the symbols in the shapes of messages."""
        basis = {"k": self.settings.n_rules} if self.has_rules else {"h": self.settings.n_nodes}
        return {"d": self.n_features, "w": len(self.settings.rules.membership.encode()), **basis}

    @property
    def problem(self) -> set[str]:
        """Optional arrays of the problem: those of wavelets, and of the penalty on unlabelled rows."""
        is_gaussian = self.settings.rules.membership == Gaussian.name
        basis = {"dilations"} if not self.has_rules else set[str]() if is_gaussian else {"membership"}
        return basis | set(self.settings.penalty.message())

    def summing_leg(self, task: str) -> Leg:
        """A task that is asked for sums of rows and of their products as well, unless there are too many of them."""
        if self.n_features > MOST_CORRELATED:
            return self.leg(task, 1)
        return self.leg(task, 1, sent={"moments"}, answered={"row_total"})

    def leg(
        self,
        task: str,
        rounds: int,
        *,
        sent: Set[str] = frozenset(),
        answered: Set[str] = frozenset(),
        n_mixed: int = 1,
        exact: bool = True,
        everybody_answers: bool = True,
    ) -> Leg:
        """A task with these optional arrays in its messages, and this number of combined images."""
        declared, sizes = REGISTRY[task], self.sizes | {"r": n_mixed}
        down, up = payload(declared.broadcast, sizes, sent), payload(declared.contributes, sizes, answered)
        return Leg(task, declared.verb, rounds, down, up, everybody_answers, exact)

    def start_leg(self) -> Leg:
        """One agent proposes start centers, or none if they are given or drawn."""
        sent = set(self.settings.rules.weighting())
        leg = self.leg("start_centers", 1, sent=sent, everybody_answers=False)
        return leg if self.settings.rules.init == LOCAL_START else replace(leg, bytes_up=0)

    def survey_legs(self) -> Iterator[Leg]:
        """Ranges, then counts and moments."""
        declared = self.settings.scaling.declared is not None
        sent, answered = ({"declared"}, set[str]()) if declared else (set[str](), {"high"})
        yield self.leg("measure", 1, sent=sent, answered=answered)
        yield self.summing_leg("agree")
