"""More ranks on a machine than it has cores: they add up through sockets, on which a process can sleep.

MPI waits by looking again and again. With a core for every rank that is the fastest way; with fewer, those that look
keep from its core the one they wait for, however politely they yield. A rank that sleeps in the kernel until its
message is there costs nothing, and is woken once per sum.
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
import numpy.typing as npt

from dsfr.engines.contract import EngineError
from dsfr.engines.reduction import REDUCTIONS

Vector = npt.NDArray[np.float64]
_NUMBER = 8
"""Bytes of a number: of a rank that introduces itself, and of the length before a vector."""
_LONGEST = 90
"""Letters that the path of a socket may have on every system, and some to spare."""
_LOOK = 0.005
"""Seconds after which a rank that waits lets MPI look after messages of its own that are still on their way."""
_MEETING = 60.0
"""Seconds that the ranks of a machine may take to find each other."""
NO_PLACE = (
    "the ranks of this machine cannot meet: there is no place for a socket; set TMPDIR to a folder that is writable"
)


def count_cores(node: Any, highest: Any) -> int:
    """Cores that the ranks of a machine may use between them; each may be bound to some of them."""
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    own = os.sched_getaffinity(0)
    n_numbers = np.empty(1, dtype=np.int64)
    node.Allreduce(np.array([max(own) + 1], dtype=np.int64), n_numbers, highest)
    usable = np.empty(int(n_numbers[0]), dtype=np.uint8)
    node.Allreduce(np.array([core in own for core in range(len(usable))], dtype=np.uint8), usable, highest)
    return int(usable.sum())


@dataclass(frozen=True, slots=True)
class Link:
    """Two sockets to another rank, because who waits on the one that it writes to is woken when its message is read.

    A rank that sleeps does not send on what MPI has taken over from it, and another may wait for that before it comes
    to a socket: so whoever waits longer calls ``progress`` now and then.
    """

    rank: int
    inwards: socket.socket
    outwards: socket.socket
    progress: Callable[[], Any]

    def send(self, message: bytes) -> None:
        """Send all of a message."""
        n_sent = 0
        while n_sent < len(message):
            try:
                n_sent += self.outwards.send(memoryview(message)[n_sent:])
            except TimeoutError:
                self.progress()
            except OSError:
                raise self._gone() from None

    def receive(self, length: int) -> Vector:
        """Wait for a vector, which must have the given length."""
        message = bytearray(_NUMBER + 8 * length)
        n_read = self._read(message, 0, _NUMBER)
        n_numbers = int.from_bytes(message[:_NUMBER], "little")
        if n_numbers != length:
            raise EngineError(f"ranks add up vectors of {n_numbers} and {length} numbers: give all the same settings")
        self._read(message, n_read, len(message))
        return np.frombuffer(message, dtype=np.float64, offset=_NUMBER)

    def close(self) -> None:
        """Close both."""
        self.inwards.close()
        self.outwards.close()

    def _gone(self) -> EngineError:
        return EngineError(f"rank {self.rank} is gone: it was killed, or has failed")

    def _read(self, message: bytearray, n_read: int, n_needed: int) -> int:
        """Read on, as far as possible and at least until so many bytes are there; how many there are."""
        while n_read < n_needed:
            try:
                n_new = self.inwards.recv_into(memoryview(message)[n_read:])
            except TimeoutError:
                self.progress()
                continue
            except OSError:
                n_new = 0
            if n_new == 0:
                raise self._gone()
            n_read += n_new
        return n_read


class Crowd:
    """The ranks of one machine, linked to their leader, the lowest of them.

    Parameters
    ----------
    rank, leader, size : int
        Numbers of this rank and of the leader, and how many ranks the machine has.
    tell : function
        Gives all of them the text of the leader.
    across : function
        Reduces a vector over the leaders of all machines: ``across(vector, verb)``.
    progress : function
        Lets MPI look after its messages.
    """

    def __init__(
        self,
        rank: int,
        leader: int,
        size: int,
        tell: Callable[[str], str],
        across: Callable[[Vector, str], Vector],
        progress: Callable[[], Any],
    ) -> None:
        self._leads, self._across = rank == leader, across
        self._links = _invite(size - 1, tell, progress) if self._leads else [_join(rank, leader, tell(""), progress)]

    def reduce(self, vector: Vector, verb: str) -> Vector:
        """Elementwise sum or maximum over all ranks, on each machine in their order.

        Raises
        ------
        EngineError
            If a rank is gone, or has a vector of another length.
        """
        if not self._leads:
            self._links[0].send(_message(vector))
            return self._links[0].receive(len(vector))
        total = vector.copy()
        for link in self._links:
            total = REDUCTIONS[verb](total, link.receive(len(vector)))
        total = self._across(total, verb)
        answer = _message(total)
        for link in self._links:
            link.send(answer)
        return total

    def close(self) -> None:
        """Close all links."""
        for link in self._links:
            link.close()


def _message(vector: Vector) -> bytes:
    return len(vector).to_bytes(_NUMBER, "little") + vector.tobytes()


def _invite(n_others: int, tell: Callable[[str], str], progress: Callable[[], Any]) -> list[Link]:
    """As the leader: links to all others, in their order. The socket's file is gone as soon as all are there."""
    with socket.socket(socket.AF_UNIX) as server, _place() as folder:
        path = str(folder / "sums") if folder else ""
        if path:
            server.bind(path)
            server.listen(2 * n_others)
            server.settimeout(_LOOK)
        tell(path)
        if not path:
            raise EngineError(NO_PLACE)
        found = dict(_welcome(server, progress) for _ in range(2 * n_others))
    ranks = sorted(number // 2 for number in found if number % 2)
    return [Link(rank, found[2 * rank], found[2 * rank + 1], progress) for rank in ranks]


def _join(rank: int, leader: int, path: str, progress: Callable[[], Any]) -> Link:
    """As another rank: the link to the leader."""
    if not path:
        raise EngineError(NO_PLACE)
    outwards, inwards = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    for number, link in ((2 * rank, outwards), (2 * rank + 1, inwards)):
        link.connect(path)
        link.sendall(number.to_bytes(_NUMBER, "little"))
        link.settimeout(_LOOK)
    return Link(leader, inwards, outwards, progress)


@contextmanager
def _place() -> Iterator[Path | None]:
    """A folder that only this user may enter, with a short path; None if there is none."""
    folder = None
    for parent in (None, "/tmp"):
        with suppress(OSError):
            folder = Path(mkdtemp(prefix="dsfr-", dir=parent))
            if len(str(folder)) <= _LONGEST:
                break
            folder.rmdir()
            folder = None
    try:
        yield folder
    finally:
        if folder:
            rmtree(folder, ignore_errors=True)


def _welcome(server: socket.socket, progress: Callable[[], Any]) -> tuple[int, socket.socket]:
    """The next one that comes, with the number by which it introduces itself."""
    deadline = time.perf_counter() + _MEETING
    while time.perf_counter() < deadline:
        try:
            link, _ = server.accept()
        except TimeoutError:
            progress()
            continue
        link.settimeout(_MEETING)
        number = int.from_bytes(link.recv(_NUMBER, socket.MSG_WAITALL), "little")
        link.settimeout(_LOOK)
        return number, link
    raise EngineError(f"the ranks of this machine have not met within {_MEETING:.0f} seconds")
