"""Methods of summing 200 floats over MPI ranks and of waiting, with as many ranks as cores and with many more.

*allreduce*: MPI's own, polled between calls of ``sched_yield``. *messages*: to rank 0 and back, with the same polling.
*window*: in shared memory, with the same polling. *sockets*: to rank 0 and back over Unix sockets, on which ranks
sleep; the numbers are sent through the sockets, or through a shared window. *engine*: a whole round of `MPIEngine`, and
its processor time per rank. All methods alternate in one job; medians are printed.

    python -m benchmarks.waiting
"""

import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import dsfr

N_FLOATS, BLOCKS, PER_BLOCK = 200, 15, 40
RANKS = (2, 4, 16)


class Ways:
    """All methods, on one rank."""

    def __init__(self) -> None:
        from mpi4py import MPI

        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        window = MPI.Win.Allocate_shared(8 * (2 + 2 * N_FLOATS), 8, comm=self.comm)
        places = [np.frombuffer(window.Shared_query(rank)[0], dtype=np.float64) for rank in range(self.size)]
        self.flags, self.numbers = [one[:2] for one in places], [one[2:].reshape(2, -1) for one in places]
        self.flags[self.rank][:] = 0.0
        self.turn = 0
        self.comm.Barrier()
        self.links = self._connect()

    def _connect(self) -> list[socket.socket]:
        folder = tempfile.mkdtemp() if self.rank == 0 else ""
        path = self.comm.bcast(f"{folder}/sums")
        if self.rank:
            self.comm.Barrier()
            link = socket.socket(socket.AF_UNIX)
            link.connect(path)
            link.sendall(self.rank.to_bytes(2, "little"))
            return [link]
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen(self.size)
            self.comm.Barrier()
            links = [server.accept()[0] for _ in range(self.size - 1)]
        shutil.rmtree(folder)
        return sorted(links, key=lambda link: int.from_bytes(link.recv(2, socket.MSG_WAITALL), "little"))

    def allreduce(self, own: np.ndarray) -> np.ndarray:
        """MPI's own."""
        total = np.empty_like(own)
        _wait(self.comm.Iallreduce(own, total))
        return total

    def messages(self, own: np.ndarray) -> np.ndarray:
        """To rank 0 and back."""
        if self.rank:
            total = np.empty_like(own)
            answer = self.comm.Irecv(total, 0)
            _wait(self.comm.Isend(own, 0))
            _wait(answer)
            return total
        parts, total = np.empty((self.size, len(own))), own.copy()
        for rank, part in [(self.comm.Irecv(parts[rank], rank), parts[rank]) for rank in range(1, self.size)]:
            _wait(rank)
            total += part
        for request in [self.comm.Isend(total, rank) for rank in range(1, self.size)]:
            _wait(request)
        return total

    def window(self, own: np.ndarray) -> np.ndarray:
        """In shared memory."""
        return self._shared(own, self._look, self._flag)

    def sockets(self, own: np.ndarray) -> np.ndarray:
        """To rank 0 and back over sockets, sleeping."""
        if self.rank:
            self.links[0].sendall(own)
            return _received(self.links[0], own)
        total = own.copy()
        for link in self.links:
            total += _received(link, own)
        for link in self.links:
            link.sendall(total)
        return total

    def window_and_sockets(self, own: np.ndarray) -> np.ndarray:
        """In shared memory, sleeping on sockets."""
        return self._shared(own, lambda rank: self._link(rank).recv(1), lambda rank: self._link(rank).send(b"."))

    def _link(self, rank: int) -> socket.socket:
        return self.links[max(rank - 1, 0)]

    def _shared(self, own: np.ndarray, wait_for: Callable, wake: Callable) -> np.ndarray:
        """Sum through two alternating slots of the window; the caller decides how to wait."""
        self.turn += 1
        half = self.turn % 2
        self.numbers[self.rank][half] = own
        if self.rank:
            wake(0)
            wait_for(0)
            return self.numbers[0][half].copy()
        total = own.copy()
        for rank in range(1, self.size):
            wait_for(rank)
            total += self.numbers[rank][half]
        self.numbers[0][half] = total
        for rank in range(1, self.size):
            wake(rank)
        return total

    def _flag(self, rank: int) -> None:
        self.flags[self.rank][0] = self.turn

    def _look(self, rank: int) -> None:
        while self.flags[rank][0] != self.turn:
            os.sched_yield()


def _wait(request) -> None:
    while not request.Test():
        os.sched_yield()


def _received(link: socket.socket, like: np.ndarray) -> np.ndarray:
    received = np.empty_like(like)
    link.recv_into(received, received.nbytes, socket.MSG_WAITALL)
    return received


def add_vector(shard: np.ndarray, memory: dict, told: dict) -> tuple[dict, dict]:
    return memory, {"sum": shard + told["x"]}


def measure() -> None:
    """Run on every rank; rank 0 prints medians as JSON."""
    from dsfr.engines.mpi.engine import MPIEngine

    ways = Ways()
    own, told = np.full(N_FLOATS, float(ways.rank)), {"x": np.zeros(N_FLOATS)}
    engine = MPIEngine({str(ways.rank): own}, {"add": add_vector})
    sums: dict[str, Callable] = {
        name: getattr(ways, name) for name in ("allreduce", "messages", "window", "sockets", "window_and_sockets")
    }
    sums["engine"] = lambda vector: engine.sum("add", told)["sum"]
    seconds: dict[str, list[float]] = {name: [] for name in sums}
    processor = []
    for _ in range(BLOCKS):
        for name, add in sums.items():
            assert np.all(add(own) == ways.size * (ways.size - 1) / 2), name
            start, before = time.perf_counter(), _processor_seconds()
            for _ in range(PER_BLOCK):
                add(own)
            seconds[name].append((time.perf_counter() - start) / PER_BLOCK)
            if name == "engine":
                processor.append((_processor_seconds() - before) / PER_BLOCK)
    spent = ways.comm.gather(float(np.median(processor)))
    if ways.rank == 0:
        print(json.dumps({name: float(np.median(values)) for name, values in seconds.items()} | {"spent": spent[1:]}))


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    if sys.argv[1:] == ["--rank"]:
        return measure()
    launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}") or "mpiexec"
    print(f"dsfr {dsfr.__version__}, sums of {N_FLOATS} floats, milliseconds, medians of {BLOCKS} blocks by turns\n")
    print(f"{'ranks':>5}{'allreduce':>11}{'messages':>10}{'window':>8}{'sockets':>9}{'window+sockets':>16}", end="")
    print(f"{'engine':>8}  of it, processor time of a rank")
    for n_ranks in RANKS:
        command = [launcher, "-n", str(n_ranks), sys.executable, "-m", "benchmarks.waiting", "--rank"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
        found = json.loads(done.stdout)
        spent = found.pop("spent")
        widths = (11, 10, 8, 9, 16, 8)
        cells = [f"{1e3 * value:>{width}.3f}" for value, width in zip(found.values(), widths, strict=True)]
        print(f"{n_ranks:>5}{''.join(cells)}  {1e3 * np.median(spent):.3f}", flush=True)
    return None


if __name__ == "__main__":
    main()
