"""What runs on the workers of a dask cluster; loaded there, so it must not load more than is needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dsfr.engines.checkpoint.memory import read_memory, write_memory
from dsfr.engines.contract import EngineError, Task
from dsfr.engines.reduction import reduce_bundles
from dsfr.storage.bundles import check_bundle, from_bytes, to_bytes


class Recipe:
    """How to make an agent's rows: ``make(*told)``, in the task that needs them, so that they are gone when it ends.

    Not a dataclass, because dask would look for tasks of its own in the fields of one.
    """

    __slots__ = ("make", "told")

    def __init__(self, make: Callable[..., Any], *told: Any) -> None:
        self.make, self.told = make, told

    def __call__(self) -> Any:
        """The rows."""
        return self.make(*self.told)


def run_task(name: str, task: Task, shard: Any, state: tuple[Any, ...], told: bytes) -> tuple[bytes, list[bytes], int]:
    """On a worker: memory and contribution of one agent, serialised, and the bytes of its rows."""
    memory = from_bytes(state[0]) if state[0] else {}
    try:
        shard = shard() if isinstance(shard, Recipe) else shard
        kept, contribution = task(shard, memory, from_bytes(told))
        check_bundle(contribution)
    except ValueError as error:  # bad rows: whoever gave them shall be told so
        raise ValueError(f"agent {name!r}: {str(error).removeprefix(f'agent {name!r}: ')}") from error
    except Exception as error:
        kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
        raise EngineError(f"agent {name!r}: {kind}{error}") from error
    return to_bytes(kept), [to_bytes(contribution)], getattr(shard, "nbytes", 0)


def add_parts(task: str, verb: str, parts: list[tuple[Any, list[bytes], int]]) -> tuple[None, list[bytes], int]:
    """On a worker: contributions of some agents reduced, or put behind one another if they are gathered."""
    contributions = [data for _, found, _ in parts for data in found]
    if verb != "gather":
        contributions = [to_bytes(reduce_bundles(task, verb, [from_bytes(data) for data in contributions]))]
    return None, contributions, sum(n_bytes for _, _, n_bytes in parts)


def save_state(state: tuple[bytes, Any, Any], path: str) -> None:
    """On a worker: put what an agent remembers into a file."""
    write_memory(Path(path), from_bytes(state[0]) if state[0] else {})


def load_state(path: str) -> tuple[bytes, list[bytes], int]:
    """On a worker: what an agent remembers, from a file."""
    return to_bytes(read_memory(Path(path))), [], 0
