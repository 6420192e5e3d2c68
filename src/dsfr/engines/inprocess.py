"""All agents in this process: the default engine, and the reference every other one must equal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dsfr.bundles import Bundle, check_bundle, from_bytes, payload_bytes, to_bytes
from dsfr.engines.base import EngineError, Tasks
from dsfr.engines.ledger import Ledger


class InProcessEngine:
    """Runs tasks one agent after another, in the order of the shards.

    Parameters
    ----------
    shards : sequence
        What each agent holds. The engine passes a shard to tasks of its own agent and looks at none.
    tasks : mapping
        Tasks by name.
    serialize : bool, default=False
        Pass every broadcast, contribution and memory through its serialised form, as a network would.
    """

    def __init__(self, shards: Sequence[Any], tasks: Tasks, *, serialize: bool = False) -> None:
        if not shards:
            raise ValueError("shards is empty: training needs at least one agent")
        self._shards = list(shards)
        self._tasks = tasks
        self._memories: list[Bundle] = [{} for _ in self._shards]
        self._serialize = serialize
        self.ledger = Ledger()

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self._shards)

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum over agents, added in agent order."""
        return _reduce(task, self._run(task, "sum", broadcast), np.add)

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum over agents."""
        return _reduce(task, self._run(task, "max", broadcast), np.maximum)

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """All non-empty contributions, in agent order."""
        return [contribution for contribution in self._run(task, "gather", broadcast) if contribution]

    def _run(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        if task not in self._tasks:
            raise EngineError(f"unknown task {task!r}; this engine has {', '.join(sorted(self._tasks))}")
        contributions = [self._run_agent(agent, task, broadcast) for agent in range(self.n_agents)]
        # A lone agent is its own coordinator: nothing is sent.
        sent = self.n_agents > 1
        self.ledger.record(
            task,
            verb,
            messages=sent * (self.n_agents + sum(map(bool, contributions))),
            bytes_down=sent * self.n_agents * payload_bytes(broadcast),
            bytes_up=sent * sum(map(payload_bytes, contributions)),
        )
        return contributions

    def _run_agent(self, agent: int, task: str, broadcast: Bundle) -> Bundle:
        memory, contribution = self._tasks[task](
            self._shards[agent], self._carry(self._memories[agent]), self._carry(broadcast)
        )
        check_bundle(contribution)
        self._memories[agent] = self._carry(memory)
        return self._carry(contribution)

    def _carry(self, bundle: Bundle) -> Bundle:
        return from_bytes(to_bytes(bundle)) if self._serialize else bundle


def _reduce(task: str, contributions: list[Bundle], combine: Callable[..., Any]) -> Bundle:
    result = dict(contributions[0])
    for contribution in contributions[1:]:
        if _shapes(contribution) != _shapes(result):
            raise EngineError(f"agents disagree in task {task!r}: {_shapes(contribution)} against {_shapes(result)}")
        result = {name: np.asarray(combine(result[name], contribution[name])) for name in result}
    return result


def _shapes(bundle: Bundle) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (array.dtype.name, array.shape) for name, array in sorted(bundle.items())}
