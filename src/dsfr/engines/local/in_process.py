"""All agents in this process: the default engine, and the reference that every other engine must equal."""

from __future__ import annotations

from dsfr.engines.ledger import Entry
from dsfr.engines.local.engine import LocalEngine
from dsfr.engines.reduction import reduce_round
from dsfr.storage.bundles import Bundle, payload_bytes


class InProcessEngine(LocalEngine):
    """Runs tasks one agent after another, in the order of the shards.

    Parameters
    ----------
    shards : mapping or sequence
        Shard of each agent, by name or in order. The engine passes a shard to the tasks of its agent and does not read
        it.
    tasks : mapping
        Tasks by name.
    serialize : bool, default=False
        Pass every broadcast, contribution and memory through its serialised form, as a network would.
    faults : Faults, default=None
        Absent agents, and messages that are lost or late.
    min_agents : int, default=1
        A round with fewer contributions is an error; before a round the engine waits until as many are reachable.
    """

    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        return reduce_round(task, verb, self._contributions(task, verb, broadcast))

    def _contributions(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        """Contributions that arrive at the coordinator, in the order of the agents."""
        entry, reachable = self._begin(task, verb, self._reachable)
        contributions, ran, slowest = dict[str, Bundle](), [], 0.0
        for name in reachable:
            down, seconds_down = self._send(entry, None, name, broadcast)
            if not down:
                continue
            ran.append(name)
            contribution = self._run_agent(name, entry, broadcast)
            up, seconds_up = self._send(entry, name, None, contribution) if contribution else (True, 0.0)
            slowest = max(slowest, seconds_down + seconds_up)
            if up:
                contributions[name] = contribution
        self.ledger.seconds += slowest
        self._end(entry, broadcast, ran, list(contributions))
        return list(contributions.values())

    def _run_agent(self, name: str, entry: Entry, broadcast: Bundle) -> Bundle:
        for task, missed in self._take_missed(name, entry.task).items():
            entry.count_message(None, name, payload_bytes(missed), up=False)
            self._agents[name].run(task, missed)
        return self._agents[name].run(entry.task, broadcast)

    def _send(self, entry: Entry, sender: str | None, receiver: str | None, bundle: Bundle) -> tuple[bool, float]:
        """Send a bundle and count every try; whether it arrived, and the seconds it took."""
        if self.n_agents == 1:  # a single agent is its own coordinator and sends nothing
            return True, 0.0
        arrived, tries, seconds = self._faults.send()
        for _ in range(tries):
            entry.count_message(sender, receiver, payload_bytes(bundle), up=sender is not None)
        return arrived, seconds
