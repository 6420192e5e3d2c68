"""Engine over a dask cluster: agents are tasks on its workers, sums are trees of tasks.

A round is a graph of pure tasks ``(shard, memory, broadcast) -> (memory, contribution)``. Shards are loaded lazily
(read this file, take that partition), so another worker loads those of a worker that dies. Memories stay on the
workers. They depend on all earlier rounds; to avoid repeating these after a loss, memories are written to files every
few rounds if there is a folder that all workers see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np

from dsfr.engines.agent import check_task, named_shards
from dsfr.engines.base import BaseEngine
from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.dask.cluster import bytes_per_task, free_bytes, import_dask, wait_unless_stuck
from dsfr.engines.dask.worker import EMPTY, LazyShard, load_state, reduce_states, run_task, save_state
from dsfr.engines.ledger import RoundTraffic
from dsfr.storage.bundles import Bundle, from_bytes, payload_bytes, to_bytes

FAN_IN = 8
"""Contributions that one task reduces."""
SAVE_EVERY = 10
"""Rounds between two writes of the memories to files."""
HELD_SHARE = 0.4
"""Workers hold the rows if these need at most this share of the free memory; else every round loads them."""


def file_engine(
    client: Any, paths: Mapping[str, str], tasks: Tasks, read: Callable[[str, str, float], Any]
) -> DaskEngine:
    """An engine over files, each read by ``read(name, path, most_bytes)`` on the worker that needs it."""
    most = bytes_per_task(client)
    return DaskEngine(client, {name: LazyShard(read, name, path, most) for name, path in paths.items()}, tasks)


class DaskEngine(BaseEngine):
    """Reductions over agents on a dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Client of the cluster.
    shards : mapping
        Shard of each agent, by name: `LazyShard` or `dask.delayed.Delayed`, computed on the workers.
    tasks : mapping
        Tasks by name, importable on the workers.
    """

    def __init__(self, client: Any, shards: Mapping[str, Any], tasks: Tasks) -> None:
        self._dask, self._distributed = import_dask()
        self._client, self._tasks, self._shards = client, tasks, named_shards(shards)
        super().__init__(list(self._shards), {})
        self._states: dict[str, Any] = dict.fromkeys(self._shards, EMPTY)
        # A cluster that this client has started is on this machine, so its workers see the same files.
        self._scratch = Path(mkdtemp(prefix="dsfr-")) if client.cluster is not None else None
        if self._scratch is not None:
            finalize(self, rmtree, self._scratch, ignore_errors=True)

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of all agents: the client writes the checkpoint."""
        return self.agents

    def save_memories(self, path_of: Callable[[str], Path]) -> None:
        """Let the workers write the memory of every agent to its path; later rounds read it from there."""
        save = self._dask.delayed(save_state, pure=False)
        self._wait(self._client.compute([save(self._states[name], _path(path_of, name)) for name in self.agents]))
        load = self._dask.delayed(load_state)
        self._states = {name: load(_path(path_of, name)) for name in self.agents}

    def load_memories(self, path_of: Callable[[str], Path]) -> None:
        """Restore the memory of every agent from its path."""
        load = self._dask.delayed(load_state)
        self._states = {name: load(_path(path_of, name), state) for name, state in self._states.items()}

    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        check_task(task, self._tasks)
        run, reduce = (self._dask.delayed(function, pure=False) for function in (run_task, reduce_states))
        sent = self._dask.delayed(to_bytes(broadcast))
        states = {
            name: run(name, task, self._tasks[task], shard, self._states[name], sent)
            for name, shard in self._shards.items()
        }
        level = [reduce(task, verb, group) for group in _groups(list(states.values()))]
        while len(level) > 1:
            level = [reduce(task, verb, group) for group in _groups(level)]
        *persisted, root = self._client.persist([*states.values(), level[0]])
        _, parts, n_bytes = self._wait(self._client.compute(root))
        self._states = dict(zip(states, persisted, strict=True))
        result = [from_bytes(part) for part in parts]
        self._count_round(task, verb, broadcast, result)
        self._hold_or_save(n_bytes)
        return [bundle for bundle in result if bundle] if verb == "gather" else result

    def _hold_or_save(self, n_bytes: int) -> None:
        """After the first round, hold the rows if there is memory for them; every few rounds, save the memories."""
        rounds = self.ledger.rounds
        if rounds == 1 and n_bytes <= HELD_SHARE * free_bytes(self._client):
            self._hold_rows()
        if self._scratch is not None and rounds % SAVE_EVERY == 0:
            paths = {name: self._scratch / f"{number}-{rounds}" for number, name in enumerate(self.agents)}
            self.save_memories(paths.__getitem__)
            for number in range(self.n_agents):
                (self._scratch / f"{number}-{rounds - 2 * SAVE_EVERY}").unlink(missing_ok=True)

    def _hold_rows(self) -> None:
        shards = [
            self._dask.delayed(shard)() if isinstance(shard, LazyShard) else shard for shard in self._shards.values()
        ]
        self._shards = dict(zip(self._shards, self._client.persist(shards), strict=True))

    def _wait(self, futures: Any) -> Any:
        try:
            wait_unless_stuck(self._client, futures)
            return self._client.gather(futures)
        except EngineError:
            raise
        except self._distributed.KilledWorker as error:
            raise EngineError(
                f"several workers died in the same task ({error}): it may need more memory than a worker has; use "
                "smaller files or partitions"
            ) from None
        except (OSError, self._distributed.client.FutureCancelledError) as error:
            raise EngineError(
                f"the cluster was lost ({type(error).__name__}: {error}); with a checkpoint, training can be resumed"
            ) from None

    def _count_round(self, task: str, verb: str, broadcast: Bundle, result: list[Bundle]) -> None:
        """Count the broadcast to every agent and the contribution of every agent."""
        sizes = [payload_bytes(bundle) for bundle in result]
        sent = np.array(sizes * (1 if verb == "gather" else self.n_agents), dtype=np.int64)
        received = np.full(self.n_agents, payload_bytes(broadcast), dtype=np.int64)
        self.ledger.entry(task, verb).count_rounds(RoundTraffic.to_coordinator(received, sent))


def _path(path_of: Callable[[str], Path], name: str) -> str:
    return str(path_of(name).absolute())


def _groups(parts: list[Any]) -> list[list[Any]]:
    return [parts[start : start + FAN_IN] for start in range(0, len(parts), FAN_IN)]
