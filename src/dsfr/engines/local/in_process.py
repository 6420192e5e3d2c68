"""All agents in this process, each asked directly: the default engine, and the reference every other one must equal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dsfr.engines.contract import Tasks
from dsfr.engines.ledger import Entry
from dsfr.engines.local.base import LocalEngine
from dsfr.engines.local.faults import Faults
from dsfr.engines.reduction import reduce_bundles
from dsfr.storage.bundles import Bundle, payload_bytes


class InProcessEngine(LocalEngine):
    """Runs tasks one agent after another, in the order of the shards.

    Parameters
    ----------
    shards : mapping or sequence
        What each agent holds, by name or in order. The engine passes a shard to tasks of its own agent and looks at
        none.
    tasks : mapping
        Tasks by name.
    serialize : bool, default=False
        Pass every broadcast, contribution and memory through its serialised form, as a network would.
    faults : Faults, default=None
        Agents that are away and messages that are lost or late.
    min_agents : int, default=1
        A round with fewer answers is an error; before it starts, the engine waits for as many to be reachable.
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
        super().__init__(shards, tasks, serialize=serialize, faults=faults, min_agents=min_agents)

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum over agents, added in agent order."""
        return reduce_bundles(task, "sum", self._run(task, "sum", broadcast))

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum over agents."""
        return reduce_bundles(task, "max", self._run(task, "max", broadcast))

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """All non-empty contributions, in agent order."""
        return [contribution for contribution in self._run(task, "gather", broadcast) if contribution]

    def _run(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        entry, reachable = self._begin(task, verb, self._reachable)
        contributions, ran, slowest = dict[str, Bundle](), [], 0.0
        for name in reachable:
            down, seconds_down = self._message(entry, None, name, broadcast)
            if not down:
                continue
            ran.append(name)
            contribution = self._run_agent(name, entry, broadcast)
            up, seconds_up = self._message(entry, name, None, contribution) if contribution else (True, 0.0)
            slowest = max(slowest, seconds_down + seconds_up)
            if up:
                contributions[name] = contribution
        self.ledger.seconds += slowest
        self._end(entry, broadcast, ran, list(contributions))
        return list(contributions.values())

    def _run_agent(self, name: str, entry: Entry, broadcast: Bundle) -> Bundle:
        for task, missed in self._take_missed(name, entry.task).items():
            entry.book(None, name, payload_bytes(missed), up=False)
            self._agents[name].run(task, missed)
        return self._agents[name].run(entry.task, broadcast)

    def _message(self, entry: Entry, sender: str | None, receiver: str | None, bundle: Bundle) -> tuple[bool, float]:
        """Send a bundle, booking every try; whether it has arrived, and after how long."""
        if self.n_agents == 1:  # a lone agent is its own coordinator: nothing is sent
            return True, 0.0
        arrived, tries, seconds = self._weather.send()
        for _ in range(tries):
            entry.book(sender, receiver, payload_bytes(bundle), up=sender is not None)
        return arrived, seconds
