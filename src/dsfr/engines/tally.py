"""Counts of what many hosts send, as vectors: noting a round over a thousand of them must not take long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dsfr.engines.ledger import Entry, Ledger, Traffic

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What is sent in one round, or in several of the same kind."""

    traffic: Counts
    """A row each for messages, bytes sent and bytes received, by host."""
    messages: int
    up: int
    down: int
    rounds: int = 1


@dataclass(slots=True)
class Tally:
    """A ledger in the making: rounds, and messages, bytes sent and bytes received of every host, task by task."""

    hosts: Sequence[str]
    _entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    _counts: dict[tuple[str, str], Counts] = field(default_factory=dict)

    def add(self, task: str, verb: str, sent: Exchange) -> None:
        """Count what was sent."""
        entry = self._entries.setdefault((task, verb), Entry(task, verb))
        entry.rounds += sent.rounds
        entry.messages += sent.messages
        entry.bytes_up += sent.up
        entry.bytes_down += sent.down
        if (task, verb) in self._counts:
            self._counts[task, verb] += sent.traffic
        else:
            self._counts[task, verb] = sent.traffic.copy()

    def ledger(self) -> Ledger:
        """What has been counted so far."""
        return Ledger({key: self._told(key) for key in self._entries})

    def _told(self, key: tuple[str, str]) -> Entry:
        entry = self._entries[key]
        columns = zip(self.hosts, self._counts[key].T.tolist(), strict=True)
        agents = {host: Traffic(entry.rounds, messages, got, sent) for host, (messages, sent, got) in columns}
        return Entry(*key, entry.rounds, entry.messages, entry.bytes_down, entry.bytes_up, agents)
