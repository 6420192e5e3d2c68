"""The processes of an MPI job: waiting without burning, agreeing on errors, leaving together."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dsfr.engines.contract import EngineError
from dsfr.engines.mpi.oversubscribed import Crowd, count_cores
from dsfr.engines.mpi.watcher import call_witness, dismiss_witness

T = TypeVar("T")

YIELDING = 0.02
"""Seconds in which a waiting rank offers its core to others and looks again at once; later it sleeps between looks."""
NAP = 5e-4
"""Seconds of such a sleep."""
PATIENCE = 2.0
"""Seconds that a rank which fails waits for the others to fail as well, before it ends the job for all."""
HEARD = 0.5
"""Seconds that the launcher gets to pass on what was printed, before everything ends."""
FAILED = 2
"""Exit code of a job that a rank has ended."""


class RankError(EngineError):
    """What has gone wrong on one rank, as all ranks are told."""

    def __init__(self, message: str, rank: int) -> None:
        super().__init__(message)
        self.rank = rank


def import_mpi() -> Any:
    """The MPI module of mpi4py.

    Raises
    ------
    ImportError
        Saying what to install, if mpi4py or an MPI library is missing.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"engine 'mpi' needs mpi4py and an MPI library ({error}): pip install 'dsfr[mpi-wheel]', or 'dsfr[mpi]' "
            "where there is an MPI already"
        ) from error
    return MPI


class Ranks:
    """A communicator of its own, with the few operations that engines need.

    Blocking calls of MPI spin: with more ranks than cores, those that wait keep those that work from working. So
    everything here is started, and then looked after between offers of the core to others; and where a machine has more
    ranks than cores, sums go through sockets, on which ranks sleep.
    """

    def __init__(self, comm: Any = None) -> None:
        self.mpi = import_mpi()
        call_witness(int(self.mpi.COMM_WORLD.rank))
        self.comm = (self.mpi.COMM_WORLD if comm is None else comm).Dup()
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)
        self._farewell = self.comm.Dup()
        self._node = self.comm.Split_type(self.mpi.COMM_TYPE_SHARED)
        self._cores = count_cores(self._node, self.mpi.MAX)
        self._leaders = self.mpi.COMM_NULL
        self._crowd = self._make_crowd()

    @property
    def crowded(self) -> bool:
        """Whether a machine has more ranks than cores, so that sums go through sockets."""
        return self._crowd is not None

    def share_cores(self) -> None:
        """Let the ranks of a machine share its cores evenly, unless the environment says how many threads to use."""
        if any(name in os.environ for name in ("DSFR_THREADS", "OMP_NUM_THREADS")):
            return
        os.environ["DSFR_THREADS"] = str(max(1, self._cores // int(self._node.size)))

    def wait(self, request: Any) -> None:
        """Wait for an operation."""
        self._until(request.Test)

    def _until(self, done: Callable[[], bool]) -> None:
        start = time.perf_counter()
        while not done():
            if time.perf_counter() - start < YIELDING:
                os.sched_yield()
            else:
                time.sleep(NAP)

    def reduce(self, flat: npt.NDArray[np.float64], verb: str) -> npt.NDArray[np.float64]:
        """Elementwise sum or maximum of the ranks' vectors, on all ranks."""
        return self._crowd.reduce(flat, verb) if self._crowd else self._allreduce(self.comm, flat, verb)

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

    def agree(self, error: Exception | None, numbers: Sequence[int] = ()) -> list[bool]:
        """Raise the same error on all ranks if there is one on any; else whether each number is the same on all.

        Raises
        ------
        RankError
            Naming the first rank with an error, and its cause.
        """
        own = np.array([self.size - self.rank if error else 0, *numbers, *(-number for number in numbers)], dtype=float)
        seen = self.reduce(own, "max")
        if seen[0]:
            self.fail(self.size - int(seen[0]), error)
        n = len(numbers)
        return [bool(high == -minus_low) for high, minus_low in zip(seen[1 : 1 + n], seen[1 + n :], strict=True)]

    def fail(self, rank: int, error: Exception | None) -> None:
        """Raise on all ranks what is wrong on one."""
        told = self.broadcast(cause_of(error) if error and rank == self.rank else "", rank)
        raise RankError(f"rank {rank}: {told}", rank) from error

    def together(self, work: Callable[[], T]) -> T:
        """The result of work on every rank, or the same error on all if it fails on any."""
        result, error = None, None
        try:
            result = work()
        except Exception as caught:
            error = caught
        self.agree(error)
        return result  # type: ignore[return-value]

    def close(self) -> None:
        """Give communicators back, of which MPI has few; all ranks must do so."""
        if self._crowd is not None:
            self._crowd.close()
        for comm in (self._leaders, self._node, self._farewell, self.comm):
            if comm != self.mpi.COMM_NULL:
                comm.Free()

    def _allreduce(self, comm: Any, flat: npt.NDArray[np.float64], verb: str) -> npt.NDArray[np.float64]:
        operation = {"sum": self.mpi.SUM, "max": self.mpi.MAX}[verb]
        result = np.empty_like(flat)
        self.wait(comm.Iallreduce(np.ascontiguousarray(flat), result, operation))
        return result

    def _make_crowd(self) -> Crowd | None:
        """A crowd on every machine if any has more ranks than cores: all must take the same way."""
        crowded = np.array([self._node.size > self._cores], dtype=np.float64)
        if not self._allreduce(self.comm, crowded, "max")[0]:
            return None
        place, first = int(self._node.rank), np.array([self.rank], dtype=np.int64)
        self._node.Bcast(first)
        leaders = self._leaders = self.comm.Split(self.mpi.UNDEFINED if place else 0, self.rank)

        def tell(path: str) -> str:
            return self.gather(path.encode())[int(first[0])].decode()

        def across(flat: npt.NDArray[np.float64], verb: str) -> npt.NDArray[np.float64]:
            return flat if leaders.size == 1 else self._allreduce(leaders, flat, verb)

        return Crowd(self.rank, int(first[0]), int(self._node.size), tell, across, progress=self.comm.Iprobe)

    def leave(self, error: BaseException) -> None:
        """Leave a job that has failed: quietly if all ranks have, else by ending it for all.

        An error that all ranks have met is left to whoever handles errors. One that the others do not know of is
        printed here, because nobody will have another chance: they wait for a message that will not come.
        """
        # Who is only told of an error leaves the one who has it the time to print it.
        told_of = isinstance(error, RankError) and error.rank != self.rank
        deadline = time.perf_counter() + PATIENCE * (2.0 if told_of else 1.0)
        arrived = self._farewell.Ibarrier()
        while not arrived.Test():
            if time.perf_counter() > deadline:
                if not told_of:
                    print(f"Error: rank {self.rank}: {cause_of(error)}", file=sys.stderr, flush=True)
                    time.sleep(HEARD)
                dismiss_witness()
                self.mpi.COMM_WORLD.Abort(FAILED)
                os._exit(FAILED)  # where Abort returns before the launcher has ended this process
            time.sleep(NAP)


def cause_of(error: BaseException) -> str:
    """An error in one line: its text if it was written for people, with its kind before it if not."""
    if isinstance(error, RankError):
        return str(error).removeprefix(f"rank {error.rank}: ")
    if isinstance(error, (ValueError, OSError, EngineError)) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
