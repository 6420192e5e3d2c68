"""Engine without a coordinator: every agent receives every reduction, by messages between neighbors only."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.flattening import flatten, layout_of, unflatten
from dsfr.engines.gossip.rules import Link, SumRule, sum_rule
from dsfr.engines.gossip.summation import KEY_BYTES, Vector, contribution, total
from dsfr.engines.ledger import Entry
from dsfr.engines.local.engine import LocalEngine
from dsfr.engines.local.faults import Faults
from dsfr.engines.reduction import check_layouts
from dsfr.engines.topology import check_topology, diameter, reachable
from dsfr.storage.bundles import Bundle

PATIENCE = 200
"""Rounds that neighbors wait for an agent that is away; then they go on without it."""
MAX_REPEATS = 1000
"""Rounds in which a link between agents that are there may fail before that is an error."""
LEARN = "learn_links"
"""What the rounds are called in which agents learn who is linked to whom."""

Parts = dict[Any, npt.NDArray[Any]]
"""What a message holds, by name."""


class MissingAgentsError(Exception):
    """Agents that have been away for too long."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(", ".join(names))
        self.names = frozenset(names)


class GossipEngine(LocalEngine):
    """The reductions of an engine with no coordinator: all agents end with the same result, to the bit.

    First all agents learn the graph: each passes on the lists of links that it has heard of. Then all know who sends
    what to whom until all have the sum (`dsfr.engines.gossip.rules`). Maxima and gathered contributions are passed on
    as many times as the diameter. Every exchange counts as a round of the ledger.

    An exchange ends when every message has arrived: one that is lost is sent again in the next round, and for an agent
    that is away its neighbors wait. One that has been away for `PATIENCE` rounds is left out for good; the agents that
    are left learn the graph anew and repeat the reduction.

    Parameters
    ----------
    shards, tasks, topology, faults, min_agents
        As in `NetworkEngine`. With fewer than ``min_agents`` agents left, training ends with an error.
    """

    def __init__(
        self,
        shards: Mapping[str, Any] | Sequence[Any],
        tasks: Tasks,
        topology: Mapping[str, Sequence[str]],
        *,
        faults: Faults | None = None,
        min_agents: int = 1,
    ) -> None:
        super().__init__(shards, tasks, serialize=True, faults=faults, min_agents=min_agents)
        self._links = check_topology(topology, self.agents)
        self._diameter = diameter(self._links)
        self._rule: SumRule | None = None
        self._keys: dict[str, dict[str, bytes]] = {}
        self._n_sums = 0
        self._rounds_away = dict.fromkeys(self._agents, 0)

    @property
    def has_coordinator(self) -> bool:
        """False: every agent receives every reduction."""
        return False

    @property
    def links(self) -> dict[str, tuple[str, ...]]:
        """The neighbors of every agent that takes part."""
        return dict(self._links)

    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        """Run a task on all agents that take part; an absent agent runs it too, and sends its contribution later."""
        contributions = {name: self._agents[name].run(task, broadcast) for name in self._links}
        if verb == "gather":
            return self._gather(task, contributions)
        return [self._reduce(task, contributions, self._gossip if verb == "sum" else self._flood)]

    def _gather(self, task: str, contributions: Mapping[str, Bundle]) -> list[Bundle]:
        """All non-empty contributions, in the order of the agents; every agent receives all of them."""

        def spread(task: str) -> Parts:
            own = {name: {(name, item): array for item, array in contributions[name].items()} for name in self._links}
            return self._pass_on(task, "gather", own)

        found: dict[str, Bundle] = {}
        for (name, item), array in self._persist(task, spread).items():
            found.setdefault(name, {})[item] = array
        return [found[name] for name in self._links if name in found]

    def _reduce(
        self,
        task: str,
        contributions: Mapping[str, Bundle],
        combine: Callable[[str, dict[str, Vector]], Vector],
    ) -> Bundle:
        check_layouts(task, list(contributions.values()))
        vectors = {name: flatten(bundle) for name, bundle in contributions.items()}
        found = self._persist(task, lambda task: combine(task, {name: vectors[name] for name in self._links}))
        return unflatten(found, layout_of(next(iter(contributions.values()))))

    def _persist(self, task: str, attempt: Callable[[str], Any]) -> Any:
        """The result of an attempt, repeated without those who turn out to be missing."""
        while True:
            try:
                self._learn_links()
                found = attempt(task)
            except MissingAgentsError as missing:
                self._leave_out(missing.names, task)
            else:
                self._present = tuple(self._links)
                return found

    def _learn_links(self) -> None:
        """Let all agents know all links, and the two ends of every link a secret key."""
        if self._rule is not None:
            return
        order = list(self._agents)
        own = {name: {name: np.isin(order, near).astype(np.uint8)} for name, near in self._links.items()}
        heard = self._pass_on(LEARN, "flood", own)
        known = {name: tuple(n for n, linked in zip(order, heard[name], strict=True) if linked) for name in self._links}
        self._rule = sum_rule(known)
        self._agree_keys()

    def _agree_keys(self) -> None:
        """Every agent sends random bytes to each neighbor: both together are the key of their masks."""
        own = {(name, near): secrets.token_bytes(KEY_BYTES) for name, nearby in self._links.items() for near in nearby}
        received = {}
        if own:
            received = self._exchange(LEARN, "flood", lambda *link: {"key": np.frombuffer(own[link], dtype=np.uint8)})
        self._keys = {}
        for name, nearby in self._links.items():
            pairs = {near: (own[name, near], received[name][near]["key"].tobytes()) for near in nearby}
            self._keys[name] = {near: b"".join(pair if name < near else pair[::-1]) for near, pair in pairs.items()}

    def _gossip(self, task: str, vectors: dict[str, Vector]) -> Vector:
        """The sum of all vectors."""
        assert self._rule is not None
        self._n_sums += 1
        parts = {
            name: self._rule.begin(contribution(name, vector, self._keys[name], self._n_sums, task))
            for name, vector in vectors.items()
        }
        for k, links in enumerate(self._rule.exchanges, start=1):
            messages = {link: {"value": parts[link[0]].message(link[1])} for link in links}
            received = self._exchange(task, "sum", lambda *link: messages[link], links)  # noqa: B023
            for name, heard in received.items():
                parts[name].receive(k, {sender: found["value"] for sender, found in heard.items()})
        return total(_common(task, [part.value for part in parts.values()]), self._links, task)

    def _flood(self, task: str, vectors: dict[str, Vector]) -> Vector:
        """The elementwise maximum of all vectors: everybody passes on the largest numbers it has heard of."""
        for _ in range(self._diameter):
            known = vectors
            received = self._exchange(task, "max", lambda sender, _: {"value": known[sender]})  # noqa: B023
            vectors = {
                name: np.maximum.reduce([vector, *(heard["value"] for heard in received[name].values())])
                for name, vector in vectors.items()
            }
        largest: Vector = _common(task, list(vectors.values()))
        return largest

    def _pass_on(self, task: str, verb: str, own: dict[str, Parts]) -> Parts:
        """What all agents have, at all agents: everybody passes on what it has not passed on yet."""
        known, news = {name: dict(parts) for name, parts in own.items()}, own
        for _ in range(self._diameter):
            sent = news
            received = self._exchange(task, verb, lambda sender, _: sent[sender])  # noqa: B023
            news = {}
            for name in self._links:
                heard = {item: array for parts in received[name].values() for item, array in parts.items()}
                news[name] = {item: array for item, array in heard.items() if item not in known[name]}
                known[name] |= news[name]
        everything = set().union(*known.values())
        if any(set(parts) != everything for parts in known.values()):
            raise EngineError(f"the message of task {task!r} has not reached all agents")
        return next(iter(known.values()))

    def _exchange(
        self, task: str, verb: str, message: Callable[[str, str], Parts], links: Sequence[Link] | None = None
    ) -> dict[str, dict[str, Parts]]:
        """Send over some links, or all, for as many rounds as it takes; what every agent has received, by sender."""
        waiting = links or [(name, near) for name, nearby in self._links.items() for near in nearby]
        received: dict[Link, Parts] = {}
        for _ in range(MAX_REPEATS + PATIENCE):
            entry, away = self.ledger.open(task, verb), self._faults.begin_round(task)
            self._count_absences(away)
            for name in self._links.keys() - away:
                entry.count_present(name)
            received |= self._try(entry, [link for link in waiting if not away.intersection(link)], message)
            waiting = [link for link in waiting if link not in received]
            if not waiting:
                return _by_receiver(received, self._links)
        lost = ", ".join(f"{sender} to {receiver}" for sender, receiver in waiting[:5])
        raise EngineError(
            f"messages were lost in {MAX_REPEATS} rounds of task {task!r}, from {lost}: mend the links, or send lost "
            "messages more often"
        )

    def _try(self, entry: Entry, links: Sequence[Link], message: Callable[[str, str], Parts]) -> dict[Link, Parts]:
        """Send over some links at the same time; what has arrived."""
        arrived, slowest = {}, 0.0
        for link in links:
            parts = message(*link)
            arrives, tries, seconds = self._faults.send()
            slowest = max(slowest, seconds)
            for _ in range(tries):
                entry.count_message(*link, sum(array.nbytes for array in parts.values()), up=True)
            if arrives:
                arrived[link] = {item: array.copy() for item, array in parts.items()}
        self.ledger.seconds += slowest
        return arrived

    def _count_absences(self, away: frozenset[str]) -> None:
        for name in self._links:
            self._rounds_away[name] = self._rounds_away[name] + 1 if name in away else 0
        missing = [name for name in self._links if self._rounds_away[name] > PATIENCE]
        if missing:
            raise MissingAgentsError(missing)

    def _leave_out(self, missing: frozenset[str], task: str) -> None:
        """Go on without some agents, if those that are left can still reach each other."""
        left = {name: near for name, near in self._links.items() if name not in missing}
        self._links = {name: tuple(n for n in near if n not in missing) for name, near in left.items()}
        self._rule = None
        if len(self._links) < self._min_agents:
            raise self._too_few(task, tuple(self._links))
        reached = reachable(self._links, next(iter(self._links)), frozenset())
        if len(reached) < len(self._links):
            cut_off = [name for name in self._links if name not in reached]
            gone = [name for name in self._agents if name not in self._links]
            raise EngineError(
                f"no message from {', '.join(gone)} in {PATIENCE} rounds of task {task!r}, and without them "
                f"{', '.join(cut_off)} cannot reach the others: bring them back, or add links that go around them"
            )
        self._diameter = diameter(self._links)


def _by_receiver(received: Mapping[Link, Parts], links: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Parts]]:
    """What every agent has received, in the order of its neighbors."""
    return {
        name: {near: received[near, name] for near in nearby if (near, name) in received}
        for name, nearby in links.items()
    }


def _common(task: str, copies: list[Any]) -> Any:
    """What all agents have got, which must be the same to the bit."""
    if any(not np.array_equal(copy, copies[0]) for copy in copies[1:]):
        raise EngineError(f"agents have got different results in task {task!r}: a message was changed on its way")
    return copies[0]
