"""Communication as a result: rounds, messages and bytes of every task."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Entry:
    """What one task has sent. Bytes count the numbers themselves, without names, framing or encryption."""

    task: str
    verb: str
    rounds: int = 0
    messages: int = 0
    bytes_down: int = 0
    """From the coordinator to agents."""
    bytes_up: int = 0
    """From agents to the coordinator."""

    @property
    def reveals_single_contributions(self) -> bool:
        """Whether the coordinator saw what single agents contributed."""
        return self.verb == "gather"


@dataclass(slots=True)
class Ledger:
    """Entries in the order in which tasks first ran."""

    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)

    def record(self, task: str, verb: str, *, messages: int, bytes_down: int, bytes_up: int) -> None:
        """Add one round of a task."""
        entry = self.entries.setdefault((task, verb), Entry(task, verb))
        entry.rounds += 1
        entry.messages += messages
        entry.bytes_down += bytes_down
        entry.bytes_up += bytes_up

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

    def __str__(self) -> str:
        header = f"{'task':<18} {'verb':<7} {'rounds':>7} {'messages':>9} {'kB down':>9} {'kB up':>9}"
        lines = [
            f"{entry.task:<18} {entry.verb:<7} {entry.rounds:>7} {entry.messages:>9} "
            f"{entry.bytes_down / 1e3:>9.1f} {entry.bytes_up / 1e3:>9.1f}"
            for entry in self.entries.values()
        ]
        return "\n".join([header, *lines])
