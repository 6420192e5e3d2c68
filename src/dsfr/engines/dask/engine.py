"""The engine for dask: agents are tasks on the workers of a cluster, sums are trees of tasks, and only sums leave them.

A round is a graph of pure tasks ``(shard, memory, broadcast) -> (memory, contribution)``. Shards are recipes (read this
file, take that partition), so those of a worker that dies are read again elsewhere. What agents remember stays on the
workers; it depends on all earlier rounds, and so that a loss does not mean to repeat them all, it is put into files
every few rounds wherever there is a folder that all workers see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np

from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.dask.cluster import bytes_per_task, free_bytes, import_dask, wait_watchfully
from dsfr.engines.dask.worker import Recipe, add_parts, load_state, run_task, save_state
from dsfr.engines.ledger import Ledger
from dsfr.engines.tally import Exchange, Tally
from dsfr.storage.bundles import Bundle, from_bytes, payload_bytes, to_bytes

FAN_IN = 8
"""Contributions that one task adds up."""
SAVE_EVERY = 10
"""Rounds after which memories are put into files, if there is a folder for them."""
HELD_SHARE = 0.4
"""Rows stay with the workers if they take up at most this share of their free memory; else every round reads them."""


def file_engine(
    client: Any, paths: Mapping[str, str], tasks: Tasks, read: Callable[[str, str, float], Any]
) -> DaskEngine:
    """An engine over files, each read by ``read(name, path, most_bytes)`` on whatever worker it is needed."""
    most = bytes_per_task(client)
    return DaskEngine(client, {name: Recipe(read, name, path, most) for name, path in paths.items()}, tasks)


class DaskEngine:
    """Reductions over agents on a dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    shards : mapping
        What each agent holds, by name: `Recipe` or `dask.delayed.Delayed`, computed on the workers.
    tasks : mapping
        Tasks by name, importable on the workers.
    """

    def __init__(self, client: Any, shards: Mapping[str, Any], tasks: Tasks) -> None:
        if not shards:
            raise ValueError("shards is empty: training needs at least one agent")
        self._dask, self._distributed = import_dask()
        self._client, self._tasks = client, tasks
        self._shards = {str(name): shard for name, shard in shards.items()}
        self._states: dict[str, Any] = dict.fromkeys(self._shards, (b"", b"", 0))
        self._tally, self._rounds, self._decided = Tally(list(self._shards)), 0, False
        # A cluster that this client has started is on this machine, and its workers see the same files.
        self._scratch = Path(mkdtemp(prefix="dsfr-")) if client.cluster is not None else None
        if self._scratch is not None:
            finalize(self, rmtree, self._scratch, ignore_errors=True)

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self._shards)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents."""
        return tuple(self._shards)

    @property
    def present(self) -> tuple[str, ...]:
        """Names of all agents: what a dead worker had is computed again."""
        return self.agents

    @property
    def has_coordinator(self) -> bool:
        """Yes: this process."""
        return True

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of all agents: the client keeps the checkpoint."""
        return self.agents

    @property
    def repeatable(self) -> bool:
        """Whether a round that is run again gives the same."""
        return True

    @property
    def ledger(self) -> Ledger:
        """What has been sent so far: to every agent what it is told, from every agent what it contributes."""
        return self._tally.ledger()

    def agree_lowest(self, number: int) -> int:
        """The number itself: there is one client."""
        return number

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum over agents, added up on the workers."""
        return self._reduce(task, "sum", broadcast)

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum over agents, found on the workers."""
        return self._reduce(task, "max", broadcast)

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """All non-empty contributions, in agent order."""
        parts = self._run(task, "gather", broadcast)
        found = [from_bytes(part) for part in parts]
        self._book(task, "gather", broadcast, [payload_bytes(bundle) for bundle in found])
        return [bundle for bundle in found if bundle]

    def save_memories(self, path_of: Callable[[str], Path]) -> None:
        """Let the workers write every agent's memory to its path, and go on from there."""
        paths = {name: str(path_of(name).absolute()) for name in self._shards}
        save = self._dask.delayed(save_state, pure=False)
        self._wait(self._client.compute([save(self._states[name], path) for name, path in paths.items()]))
        self._states = {name: self._dask.delayed(load_state)(path) for name, path in paths.items()}

    def load_memories(self, path_of: Callable[[str], Path]) -> None:
        """Let every agent go on with the memory at its path."""
        paths = {name: str(path_of(name).absolute()) for name in self._shards}
        self._states = {name: self._dask.delayed(load_state)(path) for name, path in paths.items()}

    def _reduce(self, task: str, verb: str, broadcast: Bundle) -> Bundle:
        parts = self._run(task, verb, broadcast)
        result = from_bytes(parts[0])
        self._book(task, verb, broadcast, [payload_bytes(result)] * self.n_agents)
        return result

    def _run(self, task: str, verb: str, broadcast: Bundle) -> list[bytes]:
        """Run a task on every agent; contributions, reduced on the workers."""
        if task not in self._tasks:
            raise EngineError(f"unknown task {task!r}; this engine has {', '.join(sorted(self._tasks))}")
        run, add = (self._dask.delayed(function, pure=False) for function in (run_task, add_parts))
        told = self._dask.delayed(to_bytes(broadcast))
        found = {
            name: run(name, self._tasks[task], shard, self._states[name], told) for name, shard in self._shards.items()
        }
        level = [add(task, verb, part) for part in _groups(list(found.values()))]
        while len(level) > 1:
            level = [add(task, verb, part) for part in _groups(level)]
        *states, held = self._client.persist([*found.values(), level[0]])
        total = self._client.compute(held)
        parts: list[bytes]
        _, parts, n_bytes = self._wait(total)
        self._states = dict(zip(found, states, strict=True))
        self._rounds += 1
        self._keep_house(n_bytes)
        return parts

    def _keep_house(self, n_bytes: int) -> None:
        """Hold the rows if there is room for them; put memories into files now and then."""
        if not self._decided:
            self._decided = True
            if n_bytes <= HELD_SHARE * free_bytes(self._client):
                self._hold_rows()
        if self._scratch is not None and self._rounds % SAVE_EVERY == 0:
            places = {name: self._scratch / f"{number}-{self._rounds}" for number, name in enumerate(self._shards)}
            self.save_memories(places.__getitem__)
            for number in range(self.n_agents):
                (self._scratch / f"{number}-{self._rounds - 2 * SAVE_EVERY}").unlink(missing_ok=True)

    def _hold_rows(self) -> None:
        recipes = self._shards.values()
        shards = [self._dask.delayed(one)() if isinstance(one, Recipe) else one for one in recipes]
        self._shards = dict(zip(self._shards, self._client.persist(shards), strict=True))

    def _wait(self, futures: Any) -> Any:
        try:
            wait_watchfully(self._client, futures)
            return self._client.gather(futures)
        except EngineError:
            raise
        except self._distributed.KilledWorker as error:
            raise EngineError(
                f"workers died again and again at the same task ({error}): it may need more memory than one has; take "
                "smaller files or partitions"
            ) from None
        except (OSError, self._distributed.client.FutureCancelledError) as error:
            raise EngineError(
                f"the cluster was lost ({type(error).__name__}: {error}); with a checkpoint, training can be resumed"
            ) from None

    def _book(self, task: str, verb: str, broadcast: Bundle, up: list[int]) -> None:
        sent = np.array(up, dtype=np.int64)
        received = np.full(len(up), payload_bytes(broadcast), dtype=np.int64)
        traffic = np.stack([np.full(len(up), 2), sent, received])
        self._tally.add(task, verb, Exchange(traffic, 2 * len(up), int(sent.sum()), int(received.sum())))


def _groups(parts: list[Any]) -> list[list[Any]]:
    return [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
