"""Engine over a graph: messages between neighbors only, sums along a spanning tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from typing import Any

from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.ledger import Entry
from dsfr.engines.local.engine import LocalEngine
from dsfr.engines.local.faults import Faults
from dsfr.engines.local.node import Message, Node
from dsfr.engines.topology import check_topology, reachable
from dsfr.storage.bundles import Bundle, from_bytes, payload_bytes, to_bytes


class NetworkEngine(LocalEngine):
    """The reductions of an engine with messages along the edges of a graph only.

    The coordinator runs at one agent, the root. It builds a spanning tree by messages between neighbors (each agent
    takes the sender of the first offer it receives as its parent), sends broadcasts down the tree and receives sums up
    the tree: a parent sees the sums of its children's subtrees. When agents leave or return, a new tree is built;
    agents that the root cannot reach are absent. `GossipEngine` needs no root.

    Parameters
    ----------
    shards : mapping or sequence
        Shard of each agent, by name or in order.
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
        self._neighbors = check_topology(topology, self.agents)
        self._nodes = {name: Node(agent, self._neighbors[name]) for name, agent in self._agents.items()}
        self._root = self.agents[0] if root is None else root
        if self._root not in self._nodes:
            raise ValueError(f"root={root!r} is not among the agents {sorted(self._agents)}")
        self._in_tree: frozenset[str] = frozenset()

    @property
    def links(self) -> dict[str, tuple[str, ...]]:
        """The neighbors of every agent."""
        return self._neighbors

    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        result = self._over_tree(task, verb, broadcast)
        if verb != "gather":
            return list(result.bundles)
        contributions = dict(zip(result.contributors, result.bundles, strict=True))
        return [contributions[name] for name in self.agents if contributions.get(name)]

    def _over_tree(self, task: str, verb: str, broadcast: Bundle) -> Message:
        entry, reachable = self._begin(task, verb, self._reachable)
        seconds = self._grow_tree(entry, reachable)
        for name in reachable:
            self._catch_up(name, entry)
        root = self._nodes[self._root]
        ran, took = self._deliver_all(entry, root.start(task, verb, from_bytes(to_bytes(broadcast))))
        self.ledger.seconds += seconds + took
        result = root.result()
        if len(result.contributors) < len(reachable):
            self._in_tree = frozenset()  # a message was lost: build another tree in the next round
        self._end(entry, broadcast, [self._root, *ran], [n for n in self.agents if n in result.contributors])
        return result

    def _reachable(self, absent: frozenset[str]) -> list[str]:
        """Agents that messages from the root can reach, in their order."""
        if not absent:
            return list(self.agents)
        found = reachable(self._neighbors, self._root, absent) if self._root not in absent else set()
        return [name for name in self.agents if name in found]

    def _grow_tree(self, entry: Entry, reachable: Sequence[str]) -> float:
        """Build a new spanning tree if the reachable agents have changed; the seconds it took."""
        if frozenset(reachable) == self._in_tree:
            return 0.0
        for node in self._nodes.values():
            node.leave_tree()
        self._in_tree = frozenset(reachable)
        return self._deliver_all(entry, self._nodes[self._root].found_tree())[1]

    def _catch_up(self, name: str, entry: Entry) -> None:
        for task, missed in self._take_missed(name, entry.task).items():
            self._count_path(entry, name, missed)
            self._agents[name].run(task, missed)

    def _count_path(self, entry: Entry, name: str, bundle: Bundle) -> None:
        """Count a message from the root down to an agent; without a tree there is no message to count."""
        node = self._nodes[name]
        while node.parent is not None:
            entry.count_message(node.parent, node.name, payload_bytes(bundle), up=False)
            node = self._nodes[node.parent]

    def _deliver_all(self, entry: Entry, first: Sequence[Message]) -> tuple[list[str], float]:
        """Deliver messages and their replies until there are no more; the agents that ran a task, and the seconds."""
        tie, now, ran = count(), 0.0, list[str]()
        queue: list[tuple[float, int, Message]] = []

        def post(messages: Sequence[Message]) -> None:
            for message in messages:
                arrives, seconds = self._deliver(entry, message)
                # No agent waits for an offer or an acceptance. A parent waits for sums, so it is notified of lost ones.
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
            # Absent agents do not answer offers.
            post(node.receive(message) if node.name in self._in_tree else [])
        return ran, now

    def _deliver(self, entry: Entry, message: Message) -> tuple[Message | None, float]:
        """The message as it arrives, copied, or None if it is lost; and the seconds it took."""
        arrived, seconds = self._send(entry, message)
        if not arrived:
            return None, seconds
        copied = tuple(from_bytes(to_bytes(bundle)) for bundle in message.bundles)
        return replace(message, bundles=copied), seconds

    def _send(self, entry: Entry, message: Message) -> tuple[bool, float]:
        """Send a message along its link and count every try; whether it arrived, and the seconds it took."""
        self._check_link(message.sender, message.receiver)
        arrived, tries, seconds = self._faults.send()
        for _ in range(tries):
            n_bytes = sum(map(payload_bytes, message.bundles))
            entry.count_message(message.sender, message.receiver, n_bytes, up=message.kind == "up")
        return arrived, seconds

    def _check_link(self, sender: str, receiver: str) -> None:
        if receiver not in self._nodes[sender].neighbors:
            raise EngineError(f"agent {sender!r} tried to send to {receiver!r}, but there is no link")


def _lost(message: Message) -> Message:
    """Notification of a parent that no sum will arrive from a child."""
    if message.kind == "down":
        return Message(message.receiver, message.sender, "lost")
    return Message(message.sender, message.receiver, "lost")
