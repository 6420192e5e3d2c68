"""Node of a graph: an agent that knows the names of its neighbors and reacts to messages only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dsfr.engines.agent import Agent
from dsfr.engines.reduction import reduce_bundles
from dsfr.storage.bundles import Bundle


@dataclass(frozen=True, slots=True)
class Message:
    """A message along one link."""

    sender: str
    receiver: str
    kind: str
    """``"offer"`` and ``"accept"`` build the tree, ``"down"`` and ``"up"`` use it."""
    bundles: tuple[Bundle, ...] = ()
    task: str = ""
    verb: str = ""
    contributors: tuple[str, ...] = ()
    """Agents whose contributions an ``"up"`` message includes; for a gather, one bundle each, in this order."""


@dataclass(slots=True)
class Node:
    """One agent's part in building a spanning tree and in reducing contributions along it."""

    agent: Agent
    neighbors: tuple[str, ...]
    parent: str | None = None
    children: list[str] = field(default_factory=list)
    depth: int = -1
    """Number of links to the root; -1 outside the tree."""
    _task: str = ""
    _verb: str = ""
    _waiting: set[str] = field(default_factory=set)
    _parts: dict[str, Message] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.agent.name

    def leave_tree(self) -> None:
        """Forget the tree."""
        self.parent, self.children, self.depth = None, [], -1

    def found_tree(self) -> list[Message]:
        """Become the root."""
        self.depth = 0
        return self._offers(self.neighbors)

    def receive(self, message: Message) -> list[Message]:
        """React to a message."""
        return {"offer": self._join, "accept": self._adopt, "down": self._start, "up": self._collect}[message.kind](
            message
        )

    def start(self, task: str, verb: str, broadcast: Bundle) -> list[Message]:
        """Run the task, send the broadcast to the children, and answer at once if there are none."""
        self._task, self._verb = task, verb
        self._waiting, self._parts = set(self.children), {}
        own = self.agent.run(task, broadcast)
        self._parts[self.name] = Message(self.name, self.name, "up", (own,), contributors=(self.name,))
        down = [Message(self.name, child, "down", (broadcast,), task, verb) for child in self.children]
        return down + self._answer()

    def give_up(self, child: str) -> list[Message]:
        """Stop waiting for a child that cannot be reached."""
        self._waiting.discard(child)
        return self._answer()

    def result(self) -> Message:
        """Result of the subtree: the own contribution, then those of the children, reduced or listed in this order."""
        parts = [self._parts[name] for name in (self.name, *self.children) if name in self._parts]
        bundles = tuple(bundle for part in parts for bundle in part.bundles)
        if self._verb != "gather":
            bundles = (reduce_bundles(self._task, self._verb, bundles),)
        contributors = tuple(name for part in parts for name in part.contributors)
        return Message(self.name, self.parent or self.name, "up", bundles, contributors=contributors)

    def _join(self, offer: Message) -> list[Message]:
        """Accept the first offer, and make offers to the other neighbors."""
        if self.depth >= 0:
            return []
        self.parent, self.depth = offer.sender, int(offer.bundles[0]["depth"]) + 1
        accepted = Message(self.name, offer.sender, "accept")
        return [accepted, *self._offers([name for name in self.neighbors if name != offer.sender])]

    def _adopt(self, accepted: Message) -> list[Message]:
        self.children = sorted([*self.children, accepted.sender], key=self.neighbors.index)
        return []

    def _start(self, message: Message) -> list[Message]:
        return self.start(message.task, message.verb, message.bundles[0])

    def _collect(self, message: Message) -> list[Message]:
        """Take the result of a child; answer after the last one."""
        self._waiting.discard(message.sender)
        self._parts[message.sender] = message
        return self._answer()

    def _answer(self) -> list[Message]:
        return [self.result()] if not self._waiting and self.parent is not None else []

    def _offers(self, receivers: Sequence[str]) -> list[Message]:
        depth = {"depth": np.asarray(self.depth, dtype=np.int64)}
        return [Message(self.name, receiver, "offer", (depth,)) for receiver in receivers]
