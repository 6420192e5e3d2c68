"""Agents that can talk to their neighbors in a graph only: sums along a spanning tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import count
from typing import Any

from dsfr.engines.breadth_first import circles
from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.ledger import Entry
from dsfr.engines.local.base import LocalEngine
from dsfr.engines.local.faults import Faults
from dsfr.engines.local.node import Message, Node
from dsfr.storage.bundles import Bundle, from_bytes, payload_bytes, to_bytes


class NetworkEngine(LocalEngine):
    """The reductions of an engine with messages along the edges of a graph only.

    One agent, the root, is where the coordinator runs. It builds a spanning tree by messages between neighbors (each
    agent takes the first offer it gets as its parent), sends what it has to say down the tree, and gets sums back up: a
    parent sees the sums of its children's subtrees. When agents leave or return, a new tree is built without or with
    them, and agents that the root cannot reach are missing. `GossipEngine` needs neither root nor tree.

    Parameters
    ----------
    shards : mapping or sequence
        What each agent holds, by name or in order.
    tasks : mapping
        Tasks by name.
    topology : mapping
        The neighbors of every agent, as `dsfr.engines.topology.make_topology` gives them.
    root : str, default=None
        The agent where the coordinator runs; the first one by default.
    faults, min_agents
        As in `InProcessEngine`. The root must be reachable in any round; the engine waits for it.
    """

    def __init__(
        self,
        shards: Mapping[str, Any] | Sequence[Any],
        tasks: Tasks,
        topology: Mapping[str, Sequence[str]],
        *,
        root: str | None = None,
        faults: Faults | None = None,
        min_agents: int = 1,
    ) -> None:
        super().__init__(shards, tasks, serialize=True, faults=faults, min_agents=min_agents)
        if set(topology) != set(self._agents):
            raise ValueError(f"topology is over {sorted(topology)}, but the agents are {sorted(self._agents)}")
        self._nodes = {name: Node(agent, tuple(topology[name])) for name, agent in self._agents.items()}
        self._neighbors = {name: node.neighbors for name, node in self._nodes.items()}
        self._root = self.agents[0] if root is None else root
        if self._root not in self._nodes:
            raise ValueError(f"root={root!r} is not among the agents {sorted(self._agents)}")
        self._in_tree: frozenset[str] = frozenset()

    @property
    def links(self) -> dict[str, tuple[str, ...]]:
        """The neighbors of every agent."""
        return self._neighbors

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum over agents, each parent adding its children's sums to its own contribution."""
        return self._over_tree(task, "sum", broadcast).bundles[0]

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum over agents."""
        return self._over_tree(task, "max", broadcast).bundles[0]

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """All non-empty contributions, relayed by the agents between, in agent order."""
        result = self._over_tree(task, "gather", broadcast)
        contributions = dict(zip(result.contributors, result.bundles, strict=True))
        return [contributions[name] for name in self._agents if contributions.get(name)]

    def _over_tree(self, task: str, verb: str, broadcast: Bundle) -> Message:
        entry, reachable = self._begin(task, verb, self._reachable)
        seconds = self._grow_tree(entry, reachable)
        for name in reachable:
            self._catch_up(name, entry)
        root = self._nodes[self._root]
        told = from_bytes(to_bytes(broadcast))
        ran, took = self._converse(entry, root.start(task, verb, told))
        self.ledger.seconds += seconds + took
        result = root.result()
        if len(result.contributors) < len(reachable):
            self._in_tree = frozenset()  # somebody was lost on the way: look for other ways next time
        self._end(entry, broadcast, [self._root, *ran], [n for n in self.agents if n in result.contributors])
        return result

    def _reachable(self, away: frozenset[str]) -> list[str]:
        """Agents that messages from the root can reach past those that are away."""
        if self._root in away:
            return []
        found = {name for circle in circles(self._neighbors, self._root, away) for name in circle}
        return [name for name in self._agents if name in found]

    def _grow_tree(self, entry: Entry, reachable: Sequence[str]) -> float:
        """A new spanning tree if the agents to reach are not those of the present one; the seconds it took."""
        if frozenset(reachable) == self._in_tree:
            return 0.0
        for node in self._nodes.values():
            node.leave_tree()
        self._in_tree = frozenset(reachable)
        return self._converse(entry, self._nodes[self._root].found_tree())[1]

    def _catch_up(self, name: str, entry: Entry) -> None:
        for task, missed in self._take_missed(name, entry.task).items():
            self._book_path(entry, name, missed)
            self._agents[name].run(task, missed)

    def _book_path(self, entry: Entry, name: str, bundle: Bundle) -> None:
        """Count a message from the root down to an agent; without a tree, the broadcast was there beforehand."""
        node = self._nodes[name]
        while node.parent is not None:
            entry.book(node.parent, node.name, payload_bytes(bundle), up=False)
            node = self._nodes[node.parent]

    def _converse(self, entry: Entry, first: Sequence[Message]) -> tuple[list[str], float]:
        """Deliver messages, and those sent in reply, until there are no more; who ran a task, and after how long."""
        tie, now, ran = count(), 0.0, list[str]()
        queue: list[tuple[float, int, Message]] = []

        def post(messages: Sequence[Message]) -> None:
            for message in messages:
                arrives, seconds = self._deliver(entry, message)
                # Nobody waits for an offer or its acceptance: only sums that will not come must be told of.
                if arrives is not None or message.kind in ("down", "up"):
                    heappush(queue, (now + seconds, next(tie), arrives or _lost(message)))

        post(first)
        while queue:
            now, _, message = heappop(queue)
            node = self._nodes[message.receiver]
            if message.kind == "lost":
                post(node.give_up(message.sender))
                continue
            ran += [node.name] * (message.kind == "down")
            # Offers to agents that are away get no answer.
            post(node.receive(message) if node.name in self._in_tree else [])
        return ran, now

    def _deliver(self, entry: Entry, message: Message) -> tuple[Message | None, float]:
        """The message as it arrives, copied, or None; and how long it took."""
        arrived, seconds = self._carry(entry, message)
        if not arrived:
            return None, seconds
        copied = tuple(from_bytes(to_bytes(bundle)) for bundle in message.bundles)
        told = (message.task, message.verb, message.contributors)
        return Message(message.sender, message.receiver, message.kind, copied, *told), seconds

    def _carry(self, entry: Entry, message: Message) -> tuple[bool, float]:
        """Send a message along its link, booking every try; whether it has arrived, and after how long."""
        self._check_link(message.sender, message.receiver)
        arrived, tries, seconds = self._weather.send()
        for _ in range(tries):
            n_bytes = sum(map(payload_bytes, message.bundles))
            entry.book(message.sender, message.receiver, n_bytes, up=message.kind == "up")
        return arrived, seconds

    def _check_link(self, sender: str, receiver: str) -> None:
        if receiver not in self._nodes[sender].neighbors:
            raise EngineError(f"agent {sender!r} tried to send to {receiver!r}, to which it has no link")


def _lost(message: Message) -> Message:
    """Notice to the parent in the tree that it will hear nothing from a child."""
    if message.kind == "down":
        return Message(message.receiver, message.sender, "lost")
    return Message(message.sender, message.receiver, "lost")
