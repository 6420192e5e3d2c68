"""What engines in one process share: agents as objects, faults, waiting for enough of them, catching up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dsfr.engines.agent import make_agents
from dsfr.engines.checkpoint.memory import Hosted
from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.ledger import Entry, Ledger
from dsfr.engines.local.faults import Faults, Weather
from dsfr.storage.bundles import Bundle

MAX_WAIT = 1000
"""Rounds that an engine lets pass until enough agents can be reached."""


class LocalEngine(Hosted):
    """Agents of this process, some of which may be away in some rounds.

    An agent that returns is first given the tasks it has missed, each once and as they were last asked, because later
    tasks build on the memory that earlier ones leave.
    """

    def __init__(
        self,
        shards: Mapping[str, Any] | Sequence[Any],
        tasks: Tasks,
        *,
        serialize: bool,
        faults: Faults | None,
        min_agents: int,
    ) -> None:
        self._agents = make_agents(shards, tasks, serialize=serialize)
        if not isinstance(min_agents, (int, np.integer)) or not 1 <= min_agents <= len(self._agents):
            raise ValueError(f"min_agents={min_agents!r} must be 1 to {len(self._agents)}, the number of agents")
        if not isinstance(faults, Faults | None):
            raise ValueError(f"faults={faults!r} must be a dsfr.Faults, or None")
        self._hosted = self._agents
        self._weather = Weather(faults, list(self._agents))
        self._min_agents = min_agents
        self._missed: dict[str, dict[str, Bundle]] = {name: {} for name in self._agents}
        self._present: tuple[str, ...] = ()
        self.ledger = Ledger()

    @property
    def n_agents(self) -> int:
        """Number of agents, present or not."""
        return len(self._agents)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents."""
        return tuple(self._agents)

    @property
    def present(self) -> tuple[str, ...]:
        """Names of the agents whose answers counted in the last round."""
        return self._present

    @property
    def has_coordinator(self) -> bool:
        """Whether one process knows the reductions and tells agents what to do."""
        return True

    @property
    def repeatable(self) -> bool:
        """Whether a round that is run again gives the same: not so with faults, which go on by chance."""
        return self._weather.calm

    def agree_lowest(self, number: int) -> int:
        """The number itself: there is one process."""
        return number

    def _reachable(self, away: frozenset[str]) -> list[str]:
        """Agents that can be asked in a round, in their order."""
        return [name for name in self._agents if name not in away]

    def _begin(self, task: str, verb: str, find: Callable[[frozenset[str]], list[str]]) -> tuple[Entry, list[str]]:
        """Start a round once enough agents can be reached; ``find`` tells which, given those that are away."""
        for _ in range(MAX_WAIT):
            reachable = find(self._weather.begin_round(task))
            if len(reachable) >= self._min_agents:
                return self.ledger.open(task, verb), reachable
        raise self._too_few(task, reachable)

    def _end(self, entry: Entry, broadcast: Bundle, ran: Sequence[str], present: Sequence[str]) -> None:
        """Note who took part, and what the others have missed."""
        if len(present) < self._min_agents:
            raise self._too_few(entry.task, present)
        self._present = tuple(present)
        for name in present:
            entry.attend(name)
        for name in self._agents.keys() - set(ran):
            self._missed[name].pop(entry.task, None)
            self._missed[name][entry.task] = broadcast

    def _take_missed(self, name: str, task: str) -> dict[str, Bundle]:
        """What an agent has missed before this task, which is then no longer missed."""
        missed, self._missed[name] = self._missed[name], {}
        return {earlier: broadcast for earlier, broadcast in missed.items() if earlier != task}

    def _too_few(self, task: str, present: Sequence[str]) -> EngineError:
        missing = [name for name in self._agents if name not in present]
        remedies = ["bring them back (or the root of the graph, on the way to them)", "send lost messages more often"]
        if self._min_agents > 1:
            remedies.append("train with a smaller min_agents")
        return EngineError(
            f"only {len(present)} of {self.n_agents} agents answered in task {task!r}, and min_agents is "
            f"{self._min_agents}. Missing: {', '.join(missing)}. Remedies: {', '.join(remedies)}."
        )
