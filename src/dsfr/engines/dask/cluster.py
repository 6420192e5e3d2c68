"""The dask cluster of a training: connecting to it, its free memory, and whether its workers are stuck."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dsfr.engines.contract import EngineError

CONNECT_SECONDS = 20
TASK_SHARE = 0.125
"""Largest share of a worker's memory for the rows of one task, if they can be read in batches."""
LOOK_SECONDS = 2.0
"""Time between two checks of the workers while waiting for them."""
STUCK_SECONDS = 30.0
"""Time after which workers that are paused and idle count as stuck."""


def import_dask() -> tuple[Any, Any]:
    """The modules ``dask`` and ``distributed``.

    Raises
    ------
    ImportError
        If they are missing; the message says what to install.
    """
    try:
        import dask
        import distributed
    except ImportError as error:
        raise ImportError(f"engine 'dask' needs dask and distributed ({error}): pip install 'dsfr[dask]'") from error
    return dask, distributed


@contextmanager
def cluster_client(scheduler: str | None = None) -> Iterator[Any]:
    """A client of the scheduler at an address; by default of a new cluster on this machine, one worker per core.

    Raises
    ------
    EngineError
        If no scheduler answers at the address.
    """
    _, distributed = import_dask()
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EngineError(
                f"no dask scheduler answers at {scheduler!r} ({error}): start one, or give its address"
            ) from None
        with client:
            yield client
        return
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    settings = {"n_workers": cores, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": logging.ERROR}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        yield client


def workers_of(client: Any) -> list[dict[str, Any]]:
    """The scheduler's information about every worker."""
    found: list[dict[str, Any]] = list(client.scheduler_info(-1)["workers"].values())
    return found


def free_bytes(client: Any) -> int:
    """Free memory of all workers together; 0 if a worker has no memory limit."""
    workers = workers_of(client)
    if not all(worker["memory_limit"] for worker in workers):
        return 0
    return int(sum(max(worker["memory_limit"] - worker["metrics"]["memory"], 0) for worker in workers))


def bytes_per_task(client: Any) -> float:
    """Bytes of rows that one task may hold on the worker with the least memory per thread."""
    rooms = [worker["memory_limit"] / worker["nthreads"] for worker in workers_of(client) if worker["memory_limit"]]
    return TASK_SHARE * min(rooms, default=float("inf"))


def wait_unless_stuck(client: Any, futures: Any) -> None:
    """Wait until all futures are done, or all workers are stuck.

    Dask pauses a worker that uses 80% of its memory. If its memory is full of results for tasks that wait for the same
    worker, it never continues, and dask reports nothing.

    Raises
    ------
    EngineError
        If workers are stuck; the message has the remedies.
    """
    _, distributed = import_dask()
    last_progress = time.monotonic()
    while True:
        try:
            with client.as_current():
                distributed.wait(futures, timeout=LOOK_SECONDS)
            return
        except TimeoutError:
            workers = workers_of(client)
            if not _are_stuck(workers):
                last_progress = time.monotonic()
            elif time.monotonic() - last_progress > STUCK_SECONDS:
                raise _out_of_memory(workers) from None


def _are_stuck(workers: list[dict[str, Any]]) -> bool:
    return bool(workers) and all(worker["status"] == "paused" and not _n_executing(worker) for worker in workers)


def _n_executing(worker: dict[str, Any]) -> int:
    return int(worker["metrics"]["task_counts"].get("executing", 0))


def _out_of_memory(workers: list[dict[str, Any]]) -> EngineError:
    limit = min(worker["memory_limit"] for worker in workers) / 1e6
    return EngineError(
        f"all {len(workers)} workers are paused because their memory is full (the smallest has {limit:.0f} MB): use "
        "smaller partitions or files, fewer threads per worker, or more memory per worker"
    )
