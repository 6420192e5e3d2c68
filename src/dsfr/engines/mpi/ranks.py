"""MPI communicator that sleeps while it waits, and ends the job after an error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from dsfr.engines.flattening import Vector
from dsfr.engines.mpi.collectives import Collectives, RankError, describe_error
from dsfr.engines.mpi.oversubscribed import SocketReduction, count_cores
from dsfr.engines.mpi.watcher import start_watcher, stop_watcher

YIELD_SECONDS = 0.02
"""Time in which a waiting rank yields its core between two tests; afterwards it sleeps between them."""
SLEEP_SECONDS = 5e-4
"""Length of such a sleep."""
ABORT_SECONDS = 2.0
"""Time that a failed rank waits for the other ranks to fail too, before it aborts the job."""
FLUSH_SECONDS = 0.5
"""Time in which the launcher forwards printed text before the job is aborted."""
EXIT_CODE = 2
"""Exit code of an aborted job."""


def import_mpi() -> Any:
    """The MPI module of mpi4py.

    Raises
    ------
    ImportError
        If mpi4py or an MPI library is missing; the message says what to install.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"engine 'mpi' needs mpi4py and an MPI library ({error}): pip install 'dsfr[mpi-wheel]', or 'dsfr[mpi]' "
            "where there is an MPI already"
        ) from error
    return MPI


class Ranks(Collectives):
    """A duplicate of an MPI communicator, with the operations that engines need.

    Blocking calls of MPI poll: with more ranks than cores, waiting ranks would take the cores from working ranks. So
    every operation is non-blocking and is tested between yields and sleeps; and if a machine has more ranks than cores,
    sums use sockets, on which ranks sleep.

    As a context manager it closes its communicators at the end, or ends the job for all ranks after an error.
    """

    def __init__(self, comm: Any = None) -> None:
        self.mpi = import_mpi()
        start_watcher(int(self.mpi.COMM_WORLD.rank))
        self.comm = (self.mpi.COMM_WORLD if comm is None else comm).Dup()
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)
        self._exit_comm = self.comm.Dup()
        self._machine = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED)
        self._open = [self._machine, self._exit_comm, self.comm]
        self._n_cores = count_cores(self._machine, self.mpi.MAX)
        self._sockets = self._make_sockets()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.end_job(error)
        else:
            self.close()

    @property
    def oversubscribed(self) -> bool:
        """Whether a machine has more ranks than cores, so that sums use sockets."""
        return self._sockets is not None

    def share_cores(self) -> None:
        """Divide the cores of a machine among its ranks, unless the environment sets the number of threads."""
        if any(name in os.environ for name in ("DSFR_THREADS", "OMP_NUM_THREADS")):
            return
        os.environ["DSFR_THREADS"] = str(max(1, self._n_cores // int(self._machine.size)))

    def wait(self, request: Any) -> None:
        """Wait for a non-blocking operation."""
        self.wait_until(request.Test)

    def wait_until(self, done: Callable[[], bool]) -> None:
        """Wait until a test is true."""
        start = time.perf_counter()
        while not done():
            if time.perf_counter() - start < YIELD_SECONDS:
                os.sched_yield()
            else:
                time.sleep(SLEEP_SECONDS)

    def reduce(self, vector: Vector, verb: str) -> Vector:
        """Elementwise sum or maximum of the vectors of all ranks, on all ranks."""
        return self._sockets.reduce(vector, verb) if self._sockets else self._allreduce(self.comm, vector, verb)

    def gather(self, data: bytes) -> list[bytes]:
        """The bytes of every rank, on all ranks."""
        sizes = np.empty(self.size, dtype=np.int64)
        self.wait(self.comm.Iallgather(np.array([len(data)], dtype=np.int64), sizes))
        received = np.empty(int(sizes.sum()), dtype=np.uint8)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        own = np.frombuffer(data, dtype=np.uint8)
        self.wait(self.comm.Iallgatherv(own, [received, (sizes.tolist(), starts.tolist()), self.mpi.BYTE]))
        return [received[start : start + size].tobytes() for start, size in zip(starts, sizes, strict=True)]

    def broadcast(self, text: str, root: int) -> str:
        """The text of one rank, on all ranks."""
        data = np.frombuffer(text.encode(), dtype=np.uint8).copy()
        size = np.array([len(data)], dtype=np.int64)
        self.wait(self.comm.Ibcast(size, root))
        if self.rank != root:
            data = np.empty(int(size[0]), dtype=np.uint8)
        self.wait(self.comm.Ibcast(data, root))
        return data.tobytes().decode()

    def graph_comm(self, neighbors: Sequence[int]) -> Any:
        """A communicator for neighborhood collectives with these ranks; `close` frees it."""
        graph = self.comm.Create_dist_graph_adjacent(neighbors, neighbors)
        self._open.insert(0, graph)
        return graph

    def close(self) -> None:
        """Free all communicators, of which MPI has a limited number. All ranks must call it."""
        if self._sockets is not None:
            self._sockets.close()
        while self._open:
            self._open.pop(0).Free()

    def end_job(self, error: BaseException) -> None:
        """After an error: return if all ranks have failed, else abort the job.

        An error that all ranks have met is handled by the caller. Other ranks do not know of an error outside a task,
        and wait for a message that will not come; so it is printed here and the job is aborted.
        """
        # A rank that only received an error waits longer, so that the rank that has it can print it.
        received = isinstance(error, RankError) and error.rank != self.rank
        deadline = time.perf_counter() + ABORT_SECONDS * (2.0 if received else 1.0)
        arrived = self._exit_comm.Ibarrier()
        while not arrived.Test():
            if time.perf_counter() > deadline:
                if not received:
                    print(f"Error: rank {self.rank}: {describe_error(error)}", file=sys.stderr, flush=True)
                    time.sleep(FLUSH_SECONDS)
                stop_watcher()
                self.mpi.COMM_WORLD.Abort(EXIT_CODE)
                os._exit(EXIT_CODE)  # Abort may return before the launcher has ended this process
            time.sleep(SLEEP_SECONDS)

    def _allreduce(self, comm: Any, vector: Vector, verb: str) -> Vector:
        operation = {"sum": self.mpi.SUM, "max": self.mpi.MAX}[verb]
        result = np.empty_like(vector)
        self.wait(comm.Iallreduce(np.ascontiguousarray(vector), result, operation))
        return result

    def _make_sockets(self) -> SocketReduction | None:
        """Sockets on every machine if any has more ranks than cores: all machines must use the same operations."""
        oversubscribed = np.array([self._machine.size > self._n_cores], dtype=np.float64)
        if not self._allreduce(self.comm, oversubscribed, "max")[0]:
            return None
        position, leader = int(self._machine.rank), np.array([self.rank], dtype=np.int64)
        self._machine.Bcast(leader)
        leaders = self.comm.Split(self.mpi.UNDEFINED if position else 0, self.rank)
        if leaders != self.mpi.COMM_NULL:
            self._open.insert(0, leaders)

        def share(path: str) -> str:
            return self.gather(path.encode())[int(leader[0])].decode()

        def across(vector: Vector, verb: str) -> Vector:
            return vector if leaders.size == 1 else self._allreduce(leaders, vector, verb)

        return SocketReduction(
            self.rank, int(leader[0]), int(self._machine.size), share, across, progress=self.comm.Iprobe
        )
