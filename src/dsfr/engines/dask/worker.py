"""Functions that run on the workers of a dask cluster. Workers load this module, so it imports little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from dsfr.engines.agent import Agent, restored
from dsfr.engines.checkpoint.memory import read_memory, write_memory
from dsfr.engines.contract import EngineError, Task
from dsfr.engines.reduction import reduce_bundles
from dsfr.storage.bundles import Bundle, from_bytes, to_bytes


class LazyShard:
    """A shard that is loaded by ``load(*arguments)`` in the task that needs it, and released when that task ends.

    Not a dataclass, because dask would search the fields of one for tasks.
    """

    __slots__ = ("arguments", "load")

    def __init__(self, load: Callable[..., Any], *arguments: Any) -> None:
        self.load, self.arguments = load, arguments

    def __call__(self) -> Any:
        """Load the shard."""
        return self.load(*self.arguments)


State: TypeAlias = tuple[bytes, list[bytes], int]
"""Serialised memory of an agent, its serialised contribution, and the bytes of its shard."""
EMPTY: State = (b"", [], 0)


def run_task(name: str, task: str, function: Task, shard: Any, state: State, broadcast: bytes) -> State:
    """Run a task on one agent."""
    try:
        agent = Agent(name, shard() if isinstance(shard, LazyShard) else shard, {task: function})
        agent.restore(_memory(state))
        contribution = agent.run(task, from_bytes(broadcast))
    except EngineError:
        raise
    except ValueError as error:  # invalid rows: the message names the agent that has them
        raise ValueError(f"agent {name!r}: {str(error).removeprefix(f'agent {name!r}: ')}") from error
    except Exception as error:
        kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
        raise EngineError(f"agent {name!r}: {kind}{error}") from error
    return to_bytes(agent.memory), [to_bytes(contribution)], getattr(agent.shard, "nbytes", 0)


def reduce_states(task: str, verb: str, states: list[State]) -> State:
    """Reduce the contributions of some agents, or list them for a gather."""
    contributions = [data for _, found, _ in states for data in found]
    if verb != "gather":
        contributions = [to_bytes(reduce_bundles(task, verb, [from_bytes(data) for data in contributions]))]
    return b"", contributions, sum(n_bytes for _, _, n_bytes in states)


def save_state(state: State, path: str) -> None:
    """Write the memory of an agent to a file."""
    write_memory(Path(path), _memory(state))


def load_state(path: str, present: State = EMPTY) -> State:
    """The state of an agent, with its memory read from a file, and what is lasting of the present one."""
    return to_bytes(restored(read_memory(Path(path)), _memory(present))), [], 0


def _memory(state: State) -> Bundle:
    return from_bytes(state[0]) if state[0] else {}
