"""Base class of engines in one process: agents as objects, simulated faults, a minimum number of agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dsfr.engines.agent import make_agents
from dsfr.engines.base import BaseEngine
from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.ledger import Entry
from dsfr.engines.local.faults import Faults, FaultSimulator
from dsfr.storage.bundles import Bundle

MAX_WAIT = 1000
"""Rounds that an engine waits until enough agents are reachable."""


class LocalEngine(BaseEngine):
    """Agents of this process, some of which may be absent in some rounds.

    An agent that returns first runs the tasks it has missed, each once with its last broadcast, because later tasks
    use the memory that earlier ones leave.
    """

    def __init__(
        self,
        shards: Mapping[str, Any] | Sequence[Any],
        tasks: Tasks,
        *,
        serialize: bool = False,
        faults: Faults | None = None,
        min_agents: int = 1,
    ) -> None:
        agents = make_agents(shards, tasks, serialize=serialize)
        super().__init__(list(agents), agents)
        if not isinstance(min_agents, (int, np.integer)) or not 1 <= min_agents <= self.n_agents:
            raise ValueError(f"min_agents={min_agents!r} must be 1 to {self.n_agents}, the number of agents")
        if not isinstance(faults, Faults | None):
            raise ValueError(f"faults={faults!r} must be a dsfr.Faults, or None")
        self._faults = FaultSimulator(faults, self.agents)
        self._min_agents = min_agents
        self._missed: dict[str, dict[str, Bundle]] = {name: {} for name in self.agents}
        self._present: tuple[str, ...] = ()

    @property
    def present(self) -> tuple[str, ...]:
        """Names of the agents whose contributions the last result includes."""
        return self._present

    @property
    def deterministic(self) -> bool:
        """Whether a round that runs again gives the same result: not with faults, which are random."""
        return self._faults.fault_free

    def _reachable(self, absent: frozenset[str]) -> list[str]:
        """Agents that a message can reach in a round, in their order."""
        return [name for name in self.agents if name not in absent]

    def _begin(self, task: str, verb: str, find: Callable[[frozenset[str]], list[str]]) -> tuple[Entry, list[str]]:
        """Start a round once enough agents are reachable; ``find`` returns them, given the absent ones."""
        for _ in range(MAX_WAIT):
            reachable = find(self._faults.begin_round(task))
            if len(reachable) >= self._min_agents:
                return self.ledger.open(task, verb), reachable
        raise self._too_few(task, reachable)

    def _end(self, entry: Entry, broadcast: Bundle, ran: Sequence[str], present: Sequence[str]) -> None:
        """Record who took part, and what the others have missed."""
        if len(present) < self._min_agents:
            raise self._too_few(entry.task, present)
        self._present = tuple(present)
        for name in present:
            entry.count_present(name)
        for name in self._agents.keys() - set(ran):
            self._missed[name].pop(entry.task, None)
            self._missed[name][entry.task] = broadcast

    def _take_missed(self, name: str, task: str) -> dict[str, Bundle]:
        """Remove and return the broadcasts that an agent has missed, except that of the current task."""
        missed, self._missed[name] = self._missed[name], {}
        return {earlier: broadcast for earlier, broadcast in missed.items() if earlier != task}

    def _too_few(self, task: str, present: Sequence[str]) -> EngineError:
        missing = [name for name in self.agents if name not in present]
        remedies = ["bring them back (or, on a graph, the agents that connect them to the root)", "raise Faults.tries"]
        if self._min_agents > 1:
            remedies.append("train with a smaller min_agents")
        return EngineError(
            f"only {len(present)} of {self.n_agents} agents answered in task {task!r}, and min_agents is "
            f"{self._min_agents}. Missing: {', '.join(missing)}. Remedies: {', '.join(remedies)}."
        )
