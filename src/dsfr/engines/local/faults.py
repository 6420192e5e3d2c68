"""Simulated faults of a network: absent agents, lost or late messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Absence:
    """An agent that cannot be reached from round ``first`` to round ``last``, both included.

    Rounds are counted from 1: over all tasks, or over those of one ``task`` if it is given. Rounds in which an engine
    waits for agents count too.
    """

    agent: str
    first: int
    last: float = float("inf")
    task: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last:
            raise ValueError(f"an absence from round {self.first} to {self.last}: rounds count from 1, first <= last")

    def covers(self, task: str, task_round: int, any_round: int) -> bool:
        """Whether the agent is absent in this round."""
        if self.task is None:
            return self.first <= any_round <= self.last
        return task == self.task and self.first <= task_round <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Faults to simulate, reproducible by their seed.

    A message that is lost, or that takes longer than ``timeout``, is sent again; after ``tries`` failures its agent is
    absent from the round.
    """

    absences: Sequence[Absence] = ()
    loss: float = 0.0
    """Probability that a message is lost."""
    delay: float = 0.0
    """Mean seconds that a message takes, exponentially distributed. Simulated: the training does not wait."""
    timeout: float = float("inf")
    """Seconds after which a message counts as lost."""
    tries: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.loss < 1.0:
            raise ValueError(f"loss={self.loss} must be a probability >= 0 and < 1")
        if not 0.0 <= self.delay < float("inf"):
            raise ValueError(f"delay={self.delay} must be a number of seconds >= 0")
        if not self.timeout > 0.0:
            raise ValueError(f"timeout={self.timeout} must be a number of seconds > 0")
        if not isinstance(self.tries, (int, np.integer)) or self.tries < 1:
            raise ValueError(f"tries={self.tries} must be a whole number >= 1")
        if not isinstance(self.absences, Sequence) or not all(isinstance(one, Absence) for one in self.absences):
            raise ValueError(f"absences={self.absences!r} must be a list of dsfr.Absence")


class FaultSimulator:
    """Draws the faults of a training: which agents are absent in a round, and what happens to every message."""

    def __init__(self, faults: Faults | None, agents: Sequence[str]) -> None:
        self._faults = faults or Faults()
        unknown = {str(absence.agent) for absence in self._faults.absences} - set(agents)
        if unknown:
            raise ValueError(f"absences of unknown agents {sorted(unknown)}; the agents are {sorted(agents)}")
        self._rng = np.random.default_rng(self._faults.seed)
        self._rounds: dict[str, int] = {}

    @property
    def fault_free(self) -> bool:
        """Whether no fault can happen."""
        return not self._faults.absences and not self._faults.loss and not self._faults.delay

    def begin_round(self, task: str) -> frozenset[str]:
        """Count a round; the agents that are absent in it."""
        self._rounds[task] = self._rounds.get(task, 0) + 1
        counts = self._rounds[task], sum(self._rounds.values())
        return frozenset(str(absence.agent) for absence in self._faults.absences if absence.covers(task, *counts))

    def send(self) -> tuple[bool, int, float]:
        """Send one message: whether it arrives, the number of tries, and the seconds they took."""
        faults, seconds = self._faults, 0.0
        for n_tries in range(1, faults.tries + 1):
            took = self._rng.exponential(faults.delay) if faults.delay else 0.0
            lost = faults.loss > 0.0 and self._rng.random() < faults.loss
            if not lost and took <= faults.timeout:
                return True, n_tries, seconds + took
            # Without a timeout a sender cannot notice a loss: it then takes the mean delay.
            seconds += faults.timeout if np.isfinite(faults.timeout) else faults.delay
        return False, faults.tries, seconds
