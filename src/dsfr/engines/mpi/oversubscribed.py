"""Sums over oversubscribed ranks (more ranks on a machine than cores) through sockets, on which a process can sleep.

MPI waits by polling. With a core for every rank that is fastest; with fewer cores, polling ranks keep the core from the
rank they wait for, even if they yield. A rank that sleeps in the kernel until its message arrives takes no core and is
woken once per sum.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np

from dsfr.engines.contract import EngineError
from dsfr.engines.flattening import Vector
from dsfr.engines.reduction import REDUCTIONS

_NUMBER = 8
"""Bytes of an integer: the number of a rank that connects, and the length before a vector."""
_MAX_PATH = 90
"""Characters of a folder such that the path of a socket in it is valid on every system."""
_PROGRESS_SECONDS = 0.005
"""Time after which a waiting rank lets MPI progress its own messages."""
_CONNECT_SECONDS = 60.0
"""Time in which the ranks of a machine must connect."""
NO_FOLDER = "the ranks of this machine cannot connect: no folder for a socket; set TMPDIR to a writable folder"


def count_cores(machine: Any, maximum: Any) -> int:
    """Number of cores that the ranks of a machine may use together; each rank may be bound to some of them."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    own = os.sched_getaffinity(0)
    n_numbers = np.empty(1, dtype=np.int64)
    machine.Allreduce(np.array([max(own) + 1], dtype=np.int64), n_numbers, maximum)
    usable = np.empty(int(n_numbers[0]), dtype=np.uint8)
    machine.Allreduce(np.array([core in own for core in range(len(usable))], dtype=np.uint8), usable, maximum)
    return int(usable.sum())


@dataclass(frozen=True, slots=True)
class SocketPair:
    """Two sockets to another rank, one per direction.

    With a single socket, a rank that waits on it would also be woken when its own message is read. MPI does not
    progress its messages while a rank sleeps, and another rank may wait for them: so a waiting rank calls ``progress``
    from time to time.
    """

    rank: int
    incoming: socket.socket
    outgoing: socket.socket
    progress: Callable[[], Any]

    def send(self, message: bytes) -> None:
        """Send all of a message."""
        n_sent = 0
        while n_sent < len(message):
            try:
                n_sent += self.outgoing.send(memoryview(message)[n_sent:])
            except TimeoutError:
                self.progress()
            except OSError:
                raise self._gone() from None

    def receive(self, length: int) -> Vector:
        """Wait for a vector of the given length."""
        message = bytearray(_NUMBER + 8 * length)
        n_read = self._read(message, 0, _NUMBER)
        n_numbers = int.from_bytes(message[:_NUMBER], "little")
        if n_numbers != length:
            raise EngineError(f"ranks add vectors of {n_numbers} and {length} numbers: give all the same settings")
        self._read(message, n_read, len(message))
        return np.frombuffer(message, dtype=np.float64, offset=_NUMBER)

    def close(self) -> None:
        """Close both sockets."""
        self.incoming.close()
        self.outgoing.close()

    def _gone(self) -> EngineError:
        return EngineError(f"rank {self.rank} is gone: it was killed, or has failed")

    def _read(self, message: bytearray, n_read: int, n_needed: int) -> int:
        """Read what is available, and at least until there are ``n_needed`` bytes; the number of bytes read."""
        while n_read < n_needed:
            try:
                n_new = self.incoming.recv_into(memoryview(message)[n_read:])
            except TimeoutError:
                self.progress()
                continue
            except OSError:
                n_new = 0
            if n_new == 0:
                raise self._gone()
            n_read += n_new
        return n_read


class SocketReduction:
    """Reductions over the ranks of one machine, each connected to the leader, the lowest rank.

    Parameters
    ----------
    rank, leader, size : int
        This rank, the leader, and the number of ranks of the machine.
    share : function
        Returns the text of the leader on all ranks.
    across : function
        Reduces a vector over the leaders of all machines: ``across(vector, verb)``.
    progress : function
        Lets MPI progress its messages.
    """

    def __init__(
        self,
        rank: int,
        leader: int,
        size: int,
        share: Callable[[str], str],
        across: Callable[[Vector, str], Vector],
        progress: Callable[[], Any],
    ) -> None:
        self._leads, self._across = rank == leader, across
        if self._leads:
            self._pairs = _accept_all(size - 1, share, progress)
        else:
            self._pairs = [_connect(rank, leader, share(""), progress)]

    def reduce(self, vector: Vector, verb: str) -> Vector:
        """Elementwise sum or maximum over all ranks; on each machine in the order of the ranks.

        Raises
        ------
        EngineError
            If a rank is gone, or has a vector of another length.
        """
        if not self._leads:
            self._pairs[0].send(_message(vector))
            return self._pairs[0].receive(len(vector))
        total = vector.copy()
        for pair in self._pairs:
            total = REDUCTIONS[verb](total, pair.receive(len(vector)))
        total = self._across(total, verb)
        answer = _message(total)
        for pair in self._pairs:
            pair.send(answer)
        return total

    def close(self) -> None:
        """Close all sockets."""
        for pair in self._pairs:
            pair.close()


def _message(vector: Vector) -> bytes:
    return len(vector).to_bytes(_NUMBER, "little") + vector.tobytes()


def _accept_all(n_others: int, share: Callable[[str], str], progress: Callable[[], Any]) -> list[SocketPair]:
    """On the leader: sockets to all others, in the order of the ranks. The socket's file is deleted afterwards."""
    with socket.socket(socket.AF_UNIX) as server, _socket_folder() as folder:
        path = str(folder / "sums") if folder else ""
        if path:
            server.bind(path)
            server.listen(2 * n_others)
            server.settimeout(_PROGRESS_SECONDS)
        share(path)
        if not path:
            raise EngineError(NO_FOLDER)
        found = dict(_accept(server, progress) for _ in range(2 * n_others))
    ranks = sorted(number // 2 for number in found if number % 2)
    return [SocketPair(rank, found[2 * rank], found[2 * rank + 1], progress) for rank in ranks]


def _connect(rank: int, leader: int, path: str, progress: Callable[[], Any]) -> SocketPair:
    """On another rank: sockets to the leader."""
    if not path:
        raise EngineError(NO_FOLDER)
    outgoing, incoming = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    for number, connection in ((2 * rank, outgoing), (2 * rank + 1, incoming)):
        connection.connect(path)
        connection.sendall(number.to_bytes(_NUMBER, "little"))
        connection.settimeout(_PROGRESS_SECONDS)
    return SocketPair(leader, incoming, outgoing, progress)


@contextmanager
def _socket_folder() -> Iterator[Path | None]:
    """A temporary folder of this user with a short path; None if there is none."""
    folder = None
    for parent in (None, "/tmp"):
        with suppress(OSError):
            folder = Path(mkdtemp(prefix="dsfr-", dir=parent))
            if len(str(folder)) <= _MAX_PATH:
                break
            folder.rmdir()
            folder = None
    try:
        yield folder
    finally:
        if folder:
            rmtree(folder, ignore_errors=True)


def _accept(server: socket.socket, progress: Callable[[], Any]) -> tuple[int, socket.socket]:
    """The next connection, and the number that it sends first."""
    deadline = time.perf_counter() + _CONNECT_SECONDS
    while time.perf_counter() < deadline:
        try:
            connection, _ = server.accept()
        except TimeoutError:
            progress()
            continue
        connection.settimeout(_CONNECT_SECONDS)
        number = int.from_bytes(connection.recv(_NUMBER, socket.MSG_WAITALL), "little")
        connection.settimeout(_PROGRESS_SECONDS)
        return number, connection
    raise EngineError(f"the ranks of this machine have not connected within {_CONNECT_SECONDS:.0f} seconds")
