"""Worker processes with one BLAS thread each; results do not depend on their number."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Self

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from dsfr.paper.experiments.folds import Unit, make_fold
from dsfr.paper.experiments.results import Row
from dsfr.paper.experiments.runners import RUNNERS
from dsfr.paper.experiments.spec import Spec
from dsfr.paper.experiments.table import Choices

Done = tuple[Unit, list[Row], float]
"""A unit, its rows, and its seconds of processor time."""


class Workers:
    """Pool of worker processes; a single job runs in the calling process."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.jobs > 1:
            self._pool = ProcessPoolExecutor(
                self.jobs, multiprocessing.get_context("spawn"), initializer=_start_worker, initargs=(os.getpid(),)
            )
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def compute(self, spec: Spec, units: Sequence[Unit], choices: Choices) -> Iterator[Done]:
        """Compute units and yield each when it is finished, in any order."""
        if self._pool is None:
            with threadpool_limits(1):
                for unit in units:
                    yield compute(spec, unit, choices)
            return
        running: set[Future[Done]] = {self._pool.submit(compute, spec, unit, choices) for unit in units}
        while running:
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                yield future.result()


def compute(spec: Spec, unit: Unit, choices: Choices) -> Done:
    """Compute one unit."""
    start = time.process_time()
    with warnings.catch_warnings():
        # Convergence is stored as a result, so no warning is needed.
        warnings.simplefilter("ignore", ConvergenceWarning)
        rows = RUNNERS[spec.kind](make_fold(spec, unit), spec, choices)
    return unit, rows, time.process_time() - start


def _start_worker(parent: int) -> None:
    """Limit BLAS to one thread, and exit when the parent process ends."""
    threadpool_limits(1)
    threading.Thread(target=_exit_with, args=(parent,), daemon=True).start()


def _exit_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)
