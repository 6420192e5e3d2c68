"""Base class of engines: the verbs of the contract from one method, and the hooks of checkpoints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dsfr.engines.agent import Agent
from dsfr.engines.checkpoint.memory import read_memory, write_memory
from dsfr.engines.ledger import Ledger
from dsfr.storage.bundles import Bundle


class BaseEngine(ABC):
    """Verbs and properties of an engine; a subclass runs rounds.

    A subclass implements `_run_round`. If its agents are not `Agent` objects of this process, it also overrides
    `own_agents`, `save_memories` and `load_memories`, which checkpoints use.

    Parameters
    ----------
    names : sequence of str
        Names of all agents.
    agents : mapping
        The agents of this process, by name.
    ledger : Ledger, default=None
        By default one that counts every agent.
    """

    def __init__(self, names: Sequence[str], agents: Mapping[str, Agent], ledger: Ledger | None = None) -> None:
        self._names = tuple(names)
        self._agents = agents
        self.ledger = Ledger(self._names) if ledger is None else ledger

    @abstractmethod
    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        """Run a task on every agent and count the messages in the ledger.

        Returns
        -------
        list of Bundle
            Verb ``"sum"`` or ``"max"``: the reduced contribution alone. ``"gather"``: the non-empty contributions, in
            the order of the agents.
        """

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum of the contributions of all agents."""
        return self._run_round(task, "sum", broadcast)[0]

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum of the contributions of all agents."""
        return self._run_round(task, "max", broadcast)[0]

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """Every non-empty contribution, in the order of the agents."""
        return self._run_round(task, "gather", broadcast)

    @property
    def n_agents(self) -> int:
        """Number of agents, present or absent."""
        return len(self._names)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents."""
        return self._names

    @property
    def present(self) -> tuple[str, ...]:
        """Names of the agents whose contributions the last result includes: all, unless a subclass says otherwise."""
        return self._names

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of the agents of this process, whose memories it keeps."""
        return tuple(self._agents)

    @property
    def has_coordinator(self) -> bool:
        """Whether one process receives the reductions and sends broadcasts; else every agent receives them."""
        return True

    @property
    def only_sums(self) -> bool:
        """Whether sums alone leave the agents: maxima and gathered contributions are refused."""
        return False

    @property
    def stated_labels(self) -> int | None:
        """Labels that agents have stated to each other, by which they limit weights; None if they have not."""
        return None

    @property
    def deterministic(self) -> bool:
        """Whether a round that runs again gives the same result; a checkpoint needs it."""
        return True

    def min_over_processes(self, number: int) -> int:
        """Minimum of a number over all processes of this training: the number itself if there is one process."""
        return number

    def save_memories(self, path_of: Callable[[str], Path]) -> None:
        """Write the memory of every own agent to its path."""
        for name, agent in self._agents.items():
            write_memory(path_of(name), agent.memory)

    def load_memories(self, path_of: Callable[[str], Path]) -> None:
        """Restore the memory of every own agent from its path."""
        for name, agent in self._agents.items():
            agent.restore(read_memory(path_of(name)))
