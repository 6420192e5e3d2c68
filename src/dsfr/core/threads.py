"""Map over chunks of rows on several threads, with results in the order of the rows."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from dsfr.core.arrays import CHUNK_ROWS, row_blocks

T = TypeVar("T")

MAX_CHUNKS_PER_TASK = 8
"""Chunks per task of the thread pool: few enough for even load and few pending results."""


def each_chunk(work: Callable[[slice], T], n_rows: int, chunk_rows: int = CHUNK_ROWS) -> Iterator[T]:
    """Apply ``work`` to every chunk of rows and yield the results in order, computed in parallel.

    Chunks do not depend on the number of threads, so neither does a sum over them. Few results are in memory at a time.
    """
    chunks = list(row_blocks(n_rows, chunk_rows))
    workers = min(n_threads(), len(chunks))
    if workers < 2:
        yield from map(work, chunks)
        return
    size = min(max(len(chunks) // (4 * workers), 1), MAX_CHUNKS_PER_TASK)
    pool, waiting = _pool(workers, os.getpid()), deque[Future[list[T]]]()
    for run in row_blocks(len(chunks), size):
        waiting.append(pool.submit(_run, work, chunks[run]))
        if len(waiting) > 2 * workers:
            yield from waiting.popleft().result()
    while waiting:
        yield from waiting.popleft().result()


def n_threads() -> int:
    """Number of threads: ``DSFR_THREADS`` or ``OMP_NUM_THREADS`` if set, else the processors of this process."""
    for name in ("DSFR_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdecimal() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(work: Callable[[slice], T], chunks: Sequence[slice]) -> list[T]:
    return [work(chunk) for chunk in chunks]


@cache
def _pool(size: int, process: int) -> ThreadPoolExecutor:
    """Thread pool of this size; keyed by process, because a forked process does not inherit threads."""
    return ThreadPoolExecutor(size, thread_name_prefix="dsfr")
