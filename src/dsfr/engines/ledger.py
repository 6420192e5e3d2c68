"""Communication as a result: rounds, messages and bytes of every task and every agent."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Traffic:
    """What one agent has sent and received. A message between two agents is in the traffic of both."""

    rounds: int = 0
    """Rounds in which the agent's answer counted."""
    messages: int = 0
    bytes_received: int = 0
    bytes_sent: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.rounds + other.rounds,
            self.messages + other.messages,
            self.bytes_received + other.bytes_received,
            self.bytes_sent + other.bytes_sent,
        )


@dataclass(slots=True)
class Entry:
    """What one task has sent. Bytes count the numbers themselves, without names, framing or encryption."""

    task: str
    verb: str
    rounds: int = 0
    messages: int = 0
    bytes_down: int = 0
    """From the coordinator towards agents."""
    bytes_up: int = 0
    """From agents towards the coordinator, or to neighbors."""
    agents: dict[str, Traffic] = field(default_factory=dict)

    @property
    def reveals_single_contributions(self) -> bool:
        """Whether others saw what single agents contributed, and not only a sum or a maximum."""
        return self.verb == "gather"

    def book(self, sender: str | None, receiver: str | None, n_bytes: int, *, up: bool) -> None:
        """Count one message; None is a coordinator that is no agent."""
        self.messages += 1
        self.bytes_up += n_bytes * up
        self.bytes_down += n_bytes * (not up)
        for agent, sent in ((sender, True), (receiver, False)):
            if agent is not None:
                traffic = self.agents.setdefault(agent, Traffic())
                traffic.messages += 1
                traffic.bytes_sent += n_bytes * sent
                traffic.bytes_received += n_bytes * (not sent)

    def attend(self, agent: str) -> None:
        """Count one round in which an agent's answer counted."""
        self.agents.setdefault(agent, Traffic()).rounds += 1


@dataclass(slots=True)
class Ledger:
    """Entries in the order in which tasks first ran."""

    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    seconds: float = 0.0
    """Time that messages took, on engines that simulate it."""

    def open(self, task: str, verb: str) -> Entry:
        """The entry of a task, with one round more."""
        entry = self.entries.setdefault((task, verb), Entry(task, verb))
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
        """Traffic of every agent, all tasks together, in the order of their names."""
        totals: dict[str, Traffic] = {}
        for entry in self.entries.values():
            for agent, traffic in entry.agents.items():
                totals[agent] = totals.get(agent, Traffic()) + traffic
        return dict(sorted(totals.items()))

    def __str__(self) -> str:
        header = f"{'task':<18} {'verb':<12} {'rounds':>7} {'messages':>9} {'kB down':>9} {'kB up':>9}"
        lines = [
            f"{entry.task:<18} {entry.verb:<12} {entry.rounds:>7} {entry.messages:>9} "
            f"{entry.bytes_down / 1e3:>9.1f} {entry.bytes_up / 1e3:>9.1f}"
            for entry in self.entries.values()
        ]
        return "\n".join([header, *lines])
