"""One data holder: its shard, its memory, and the tasks that it can run."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsfr.engines.contract import EngineError, Tasks
from dsfr.storage.bundles import Bundle, check_bundle, from_bytes, to_bytes

LASTING = "lasting_"
"""Prefix of what an agent never forgets: an earlier memory that is restored adds to it, and takes nothing away."""


COUNTED = LASTING + "count_"
"""Prefix of lasting numbers that only grow: of two memories, the larger one counts."""


def lasting(memory: Bundle) -> Bundle:
    """The part of a memory that an agent never forgets."""
    return {name: array for name, array in memory.items() if name.startswith(LASTING)}


def restored(earlier: Bundle, present: Bundle) -> Bundle:
    """An earlier memory, with what is lasting of the present one."""
    kept = lasting(present)
    both = (name for name in kept if name.startswith(COUNTED) and name in earlier)
    return {**earlier, **kept, **{name: np.asarray(np.maximum(earlier[name], kept[name])) for name in both}}


class Agent:
    """Runs tasks on its own shard and keeps its memory from one task to the next.

    With ``serialize``, broadcasts, contributions and memory pass through their serialised form, as between machines.
    """

    def __init__(self, name: str, shard: Any, tasks: Tasks, *, serialize: bool = False) -> None:
        self.name = name
        self._shard = shard
        self._tasks = tasks
        self._memory: Bundle = {}
        self._serialize = serialize

    def run(self, task: str, broadcast: Bundle) -> Bundle:
        """The agent's contribution to a task. An exception in the task gets a note that names task and agent."""
        check_task(task, self._tasks)
        try:
            memory, contribution = self._tasks[task](self._shard, self._memory, self._copy(broadcast))
            check_bundle(contribution)
        except EngineError as error:
            raise type(error)(f"agent {self.name!r}: {error}") from error
        except Exception as error:
            error.add_note(f"in task {task!r} of agent {self.name!r}")
            raise
        self._memory = self._copy(memory)
        return self._copy(contribution)

    @property
    def shard(self) -> Any:
        """The agent's shard."""
        return self._shard

    @property
    def memory(self) -> Bundle:
        """The agent's memory."""
        return self._memory

    def restore(self, memory: Bundle) -> None:
        """Replace the memory by an earlier one, but for what is `LASTING` in the present one."""
        self._memory = self._copy(restored(memory, self._memory))

    def _copy(self, bundle: Bundle) -> Bundle:
        return from_bytes(to_bytes(bundle)) if self._serialize else bundle


def check_task(task: str, tasks: Tasks) -> None:
    """Raise an `EngineError` if there is no task of this name."""
    if task not in tasks:
        raise EngineError(f"unknown task {task!r}; this engine has {', '.join(sorted(tasks))}")


def named_shards(shards: Any) -> dict[str, Any]:
    """Shards by name; shards without names are numbered.

    Raises
    ------
    ValueError
        If there is no shard.
    """
    if not shards:
        raise ValueError("shards is empty: training needs at least one agent")
    pairs = shards.items() if hasattr(shards, "items") else enumerate(shards)
    return {str(name): shard for name, shard in pairs}


def make_agents(shards: Any, tasks: Tasks, *, serialize: bool = False) -> dict[str, Agent]:
    """One agent per shard, by name."""
    return {name: Agent(name, shard, tasks, serialize=serialize) for name, shard in named_shards(shards).items()}
