"""One task of a planned training: how often it runs, and the sizes of its messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

NUMBER = 8
"""Bytes of a number."""


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


def leg(task: str, verb: str, rounds: int, down: int, up: int, **options: bool) -> Leg:
    """A leg whose messages have so many numbers."""
    return Leg(task, verb, rounds, NUMBER * down, NUMBER * up, **options)


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
    def n_rules(self) -> int:
        """Number of rules."""
        return self.settings.n_rules

    @property
    def centers(self) -> int:
        """Numbers in the centers of all rules."""
        return self.settings.n_rules * self.n_features

    @property
    def cluster_sums(self) -> int:
        """Numbers in the sums of all clusters: masses, totals and the objective."""
        return self.n_rules + self.centers + 1

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.n_rules * (self.n_features + 1) if self.has_rules else self.settings.n_nodes

    @property
    def penalty(self) -> int:
        """Numbers that announce the penalty on unlabelled rows."""
        return sum(array.size for array in self.settings.penalty.message().values())

    @property
    def problem(self) -> int:
        """Numbers that define the problem of the weights: two matrices of the basis, two of the target, penalty."""
        n_units = self.n_rules if self.has_rules else self.settings.n_nodes
        return 2 * n_units * self.n_features + 2 + self.penalty

    def survey_legs(self) -> Iterator[Leg]:
        """First contact: ranges, then counts and moments."""
        d, declared = self.n_features, self.settings.scaling.declared is not None
        yield leg("measure", "max", 1, 2 if declared else 1, 4 if declared else 4 + 2 * d)
        yield leg("agree", "sum", 1, 2 * d + 2, 4)
