"""Ranks that talk to their neighbors in a graph only, by neighborhood collectives of MPI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.engines.breadth_first import circles
from dsfr.engines.mpi.ranks import Ranks
from dsfr.engines.reduction import REDUCTIONS


class LinkedRanks(Ranks):
    """The operations of `Ranks` with messages along the links of a graph.

    Sums go up a spanning tree from rank 0 and the result comes down, one circle of ranks at a time: twice the depth of
    the tree in steps. Every step is one neighborhood collective, in which most ranks have nothing to send.
    """

    def __init__(self, comm: Any, links: Mapping[int, Sequence[int]]) -> None:
        super().__init__(comm)
        self.neighbors = tuple(sorted(links[self.rank]))
        self._graph = self.comm.Create_dist_graph_adjacent(self.neighbors, self.neighbors)
        named = {str(rank): [str(near) for near in sorted(links[rank])] for rank in sorted(links)}
        self._circles = [{int(name): int(near) for name, near in circle.items()} for circle in circles(named, "0")]

    @property
    def tree(self) -> list[tuple[int, int]]:
        """Every rank but the root, with its parent in the tree."""
        return [link for circle in self._circles[1:] for link in circle.items()]

    def reduce(self, flat: npt.NDArray[Any], verb: str) -> npt.NDArray[Any]:
        """Elementwise sum or maximum of all ranks' vectors, up the tree and down again."""
        total = flat.copy()
        for circle in reversed(self._circles[1:]):
            for part in self._step(circle, total, up=True):
                total = REDUCTIONS[verb](total, part)
        for circle in self._circles[1:]:
            for part in self._step(circle, total, up=False):
                total = part
        return total

    def gather(self, data: bytes) -> list[bytes]:
        """The bytes of every rank, on all ranks: everybody adds its own to a place where the others have zeros."""
        sizes = np.zeros(self.size, dtype=np.int64)
        sizes[self.rank] = len(data)
        sizes = self.reduce(sizes, "sum")
        ends = np.cumsum(sizes)
        places = np.zeros(int(ends[-1]), dtype=np.uint8)
        places[ends[self.rank] - len(data) : ends[self.rank]] = np.frombuffer(data, dtype=np.uint8)
        places = self.reduce(places, "sum")
        return [places[end - size : end].tobytes() for size, end in zip(sizes, ends, strict=True)]

    def broadcast(self, text: str, root: int) -> str:
        """The text of one rank, on all ranks."""
        return self.gather(text.encode() if self.rank == root else b"")[root].decode()

    def exchange(self, flat: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """What the neighbors have in the place of a vector, in the order of their ranks."""
        received = np.empty((len(self.neighbors), *flat.shape), dtype=flat.dtype)
        if self.neighbors:
            self.wait(self._graph.Ineighbor_allgather(np.ascontiguousarray(flat), received))
        return list(received)

    def close(self) -> None:
        """Give communicators back."""
        self._graph.Free()
        super().close()

    def _make_crowd(self) -> None:
        """None: only linked ranks may talk."""

    def _step(self, circle: Mapping[int, int], flat: npt.NDArray[Any], *, up: bool) -> list[npt.NDArray[Any]]:
        """Send from the ranks of a circle to their parents, or the other way; what this rank receives."""
        children = [near for near in self.neighbors if circle.get(near) == self.rank]
        parents = [circle[self.rank]] if self.rank in circle else []
        senders, receivers = (children, parents) if up else (parents, children)
        received = np.empty((len(senders), len(flat)), dtype=flat.dtype)
        there, back = self._counts(receivers, len(flat)), self._counts(senders, len(flat))
        if self.neighbors:
            # All receivers get the same numbers, from the same place.
            send = [flat, (there, [0] * len(there))]
            starts = np.concatenate([[0], np.cumsum(back)[:-1]]).astype(int).tolist()
            self.wait(self._graph.Ineighbor_alltoallv(send, [received, (back, starts)]))
        return list(received)

    def _counts(self, chosen: Sequence[int], n: int) -> list[int]:
        return [n if near in chosen else 0 for near in self.neighbors]
