"""Ledger of communication: rounds, messages and bytes of every task and every agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Counts = npt.NDArray[np.int64]
_ROUNDS, _MESSAGES, _RECEIVED, _SENT = range(4)
"""Rows of the counts of an entry, in the order of the fields of `Traffic`."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Traffic of one agent. A message between two agents counts for both."""

    rounds: int = 0
    """Rounds whose result includes the agent's contribution."""
    messages: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0


@dataclass(frozen=True, slots=True)
class RoundTraffic:
    """Traffic of a reduction in which all agents take part: one round, or several without a coordinator."""

    by_agent: Counts
    """Messages, bytes received and bytes sent (rows) of every agent (columns)."""
    messages: int
    bytes_down: int
    bytes_up: int
    rounds: int = 1

    @classmethod
    def to_coordinator(cls, received: Counts, sent: Counts) -> RoundTraffic:
        """A message to every agent, and one back from every agent that contributes, given their bytes."""
        messages = 1 + (sent > 0)
        by_agent = np.stack([messages, received, sent])
        return cls(by_agent, int(messages.sum()), int(received.sum()), int(sent.sum()))


@dataclass(eq=False)
class Entry:
    """Traffic of one task. Bytes count the numbers themselves, without names, framing or encryption."""

    task: str
    verb: str
    columns: Mapping[str, int]
    """Column of every agent in ``counts``."""
    rounds: int = 0
    messages: int = 0
    bytes_down: int = 0
    """From the coordinator to agents."""
    bytes_up: int = 0
    """From agents to the coordinator, or to neighbors."""
    counts: Counts = field(init=False)
    """An array rather than objects: counting a round of a thousand agents is one addition."""

    def __post_init__(self) -> None:
        self.counts = np.zeros((4, len(self.columns)), dtype=np.int64)

    @property
    def reveals_single_contributions(self) -> bool:
        """Whether the coordinator or other agents receive contributions of single agents."""
        return self.verb == "gather"

    @property
    def agents(self) -> dict[str, Traffic]:
        """Traffic of every agent that took part."""
        return _traffic(self.columns, self.counts)

    def count_message(self, sender: str | None, receiver: str | None, n_bytes: int, *, up: bool) -> None:
        """Count one message; None is a coordinator that is not an agent."""
        self.messages += 1
        self.bytes_up += n_bytes * up
        self.bytes_down += n_bytes * (not up)
        for agent, row in ((sender, _SENT), (receiver, _RECEIVED)):
            if agent is not None:
                column = self.columns[agent]
                self.counts[_MESSAGES, column] += 1
                self.counts[row, column] += n_bytes

    def count_present(self, agent: str) -> None:
        """Count one round whose result includes the agent's contribution."""
        self.counts[_ROUNDS, self.columns[agent]] += 1

    def count_rounds(self, traffic: RoundTraffic) -> None:
        """Count the rounds and messages of a reduction in which all agents take part."""
        self.rounds += traffic.rounds
        self.messages += traffic.messages
        self.bytes_down += traffic.bytes_down
        self.bytes_up += traffic.bytes_up
        self.counts[_ROUNDS] += traffic.rounds
        self.counts[_MESSAGES:] += traffic.by_agent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and self._values() == other._values()

    def _values(self) -> tuple[object, ...]:
        totals = (self.rounds, self.messages, self.bytes_down, self.bytes_up)
        return (self.task, self.verb, *totals, self.agents)


@dataclass
class Ledger:
    """Entries in the order in which tasks first ran."""

    names: Sequence[str] = ()
    """Names of the agents whose traffic is counted."""
    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    seconds: float = 0.0
    """Simulated time that messages took; 0 on engines that do not simulate it."""

    def __getstate__(self) -> dict[str, Any]:
        # Files of estimators (skops) hold dictionaries with text as keys alone: entries know their task and verb.
        return {"names": tuple(self.names), "entries": list(self.entries.values()), "seconds": self.seconds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.names, self.seconds = state["names"], state["seconds"]
        self.entries = {(entry.task, entry.verb): entry for entry in state["entries"]}

    def entry(self, task: str, verb: str) -> Entry:
        """The entry of a task; a new one if there is none."""
        entry = self.entries.get((task, verb))
        if entry is None:
            columns = {name: column for column, name in enumerate(self.names)}
            entry = self.entries[task, verb] = Entry(task, verb, columns)
        return entry

    def open(self, task: str, verb: str) -> Entry:
        """The entry of a task, with its number of rounds increased by one."""
        entry = self.entry(task, verb)
        entry.rounds += 1
        return entry

    @property
    def rounds(self) -> int:
        """Rounds of all tasks together."""
        return sum(entry.rounds for entry in self.entries.values())

    @property
    def messages(self) -> int:
        """Messages of all tasks together."""
        return sum(entry.messages for entry in self.entries.values())

    @property
    def bytes(self) -> int:
        """Bytes of all tasks together, both directions."""
        return sum(entry.bytes_down + entry.bytes_up for entry in self.entries.values())

    @property
    def agents(self) -> dict[str, Traffic]:
        """Traffic of every agent, all tasks together, sorted by name."""
        columns = {name: column for column, name in enumerate(self.names)}
        totals = sum((entry.counts for entry in self.entries.values()), np.zeros((4, len(columns)), dtype=np.int64))
        return dict(sorted(_traffic(columns, totals).items()))

    def __str__(self) -> str:
        header = f"{'task':<18} {'verb':<12} {'rounds':>7} {'messages':>9} {'kB down':>9} {'kB up':>9}"
        lines = [
            f"{entry.task:<18} {entry.verb:<12} {entry.rounds:>7} {entry.messages:>9} "
            f"{entry.bytes_down / 1e3:>9.1f} {entry.bytes_up / 1e3:>9.1f}"
            for entry in self.entries.values()
        ]
        return "\n".join([header, *lines])


def _traffic(columns: Mapping[str, int], counts: Counts) -> dict[str, Traffic]:
    rows = counts.T.tolist()
    return {name: Traffic(*rows[column]) for name, column in columns.items() if any(rows[column])}
