"""One data holder, as an object of its own: its shard, its memory, and the tasks that it can do."""

from __future__ import annotations

from typing import Any

from dsfr.engines.contract import EngineError, Tasks
from dsfr.storage.bundles import Bundle, check_bundle, from_bytes, to_bytes


class Agent:
    """Runs tasks on its own shard and keeps its memory from one to the next.

    With ``serialize``, whatever goes in, comes out or is kept passes through its serialised form, as it would between
    machines.
    """

    def __init__(self, name: str, shard: Any, tasks: Tasks, *, serialize: bool) -> None:
        self.name = name
        self._shard = shard
        self._tasks = tasks
        self._memory: Bundle = {}
        self._serialize = serialize

    def run(self, task: str, broadcast: Bundle) -> Bundle:
        """The agent's contribution to a task."""
        if task not in self._tasks:
            raise EngineError(f"unknown task {task!r}; this engine has {', '.join(sorted(self._tasks))}")
        memory, contribution = self._tasks[task](self._shard, self._memory, self._carry(broadcast))
        check_bundle(contribution)
        self._memory = self._carry(memory)
        return self._carry(contribution)

    @property
    def memory(self) -> Bundle:
        """What the agent remembers."""
        return self._memory

    def restore(self, memory: Bundle) -> None:
        """Go on with a memory of an earlier time."""
        self._memory = self._carry(memory)

    def _carry(self, bundle: Bundle) -> Bundle:
        return from_bytes(to_bytes(bundle)) if self._serialize else bundle


def make_agents(shards: Any, tasks: Tasks, *, serialize: bool = False) -> dict[str, Agent]:
    """One agent per shard, by name; shards without names are numbered.

    Raises
    ------
    ValueError
        If there is no shard.
    """
    if not shards:
        raise ValueError("shards is empty: training needs at least one agent")
    if hasattr(shards, "items"):
        named = {str(name): shard for name, shard in shards.items()}
    else:
        named = {str(number): shard for number, shard in enumerate(shards)}
    return {name: Agent(name, shard, tasks, serialize=serialize) for name, shard in named.items()}
