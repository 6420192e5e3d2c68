"""Ranks in a graph: messages between neighbors only, by neighborhood collectives of MPI."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.engines.mpi.collectives import Collectives
from dsfr.engines.mpi.ranks import Ranks
from dsfr.engines.reduction import REDUCTIONS
from dsfr.engines.topology import spanning_tree


class LinkedRanks(Collectives):
    """Collective operations with messages along the links of a graph.

    Sums go up a breadth-first spanning tree to rank 0 and the result comes down, one layer of ranks at a time: twice
    the depth of the tree in steps. Every step is one neighborhood collective, in which most ranks send nothing.
    """

    def __init__(self, ranks: Ranks, links: Mapping[int, Sequence[int]]) -> None:
        self._ranks, self.rank, self.size = ranks, ranks.rank, ranks.size
        self.neighbors = tuple(sorted(links[self.rank]))
        self._graph = ranks.graph_comm(self.neighbors)
        self._layers = spanning_tree({rank: sorted(links[rank]) for rank in sorted(links)}, 0)

    @property
    def tree(self) -> list[tuple[int, int]]:
        """Every rank but the root, with its parent in the spanning tree."""
        return [link for layer in self._layers for link in layer.items()]

    def reduce(self, flat: npt.NDArray[Any], verb: str) -> npt.NDArray[Any]:
        """Elementwise sum or maximum of the vectors of all ranks, on all ranks."""
        total = flat.copy()
        for layer in reversed(self._layers):
            for part in self._step(layer, total, up=True):
                total = REDUCTIONS[verb](total, part)
        for layer in self._layers:
            for part in self._step(layer, total, up=False):
                total = part
        return total

    def gather(self, data: bytes) -> list[bytes]:
        """The bytes of every rank, on all ranks: a sum in which each rank has zeros in the places of the others."""
        sizes = np.zeros(self.size, dtype=np.int64)
        sizes[self.rank] = len(data)
        sizes = self.reduce(sizes, "sum")
        ends = np.cumsum(sizes)
        own = np.zeros(int(ends[-1]), dtype=np.uint8)
        own[ends[self.rank] - len(data) : ends[self.rank]] = np.frombuffer(data, dtype=np.uint8)
        gathered = self.reduce(own, "sum")
        return [gathered[end - size : end].tobytes() for size, end in zip(sizes, ends, strict=True)]

    def broadcast(self, text: str, root: int) -> str:
        """The text of one rank, on all ranks."""
        return self.gather(text.encode() if self.rank == root else b"")[root].decode()

    def exchange(self, flat: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """The vectors of all neighbors, in the order of their ranks."""
        received = np.empty((len(self.neighbors), *flat.shape), dtype=flat.dtype)
        if self.neighbors:
            self._ranks.wait(self._graph.Ineighbor_allgather(np.ascontiguousarray(flat), received))
        return list(received)

    def _step(self, layer: Mapping[int, int], flat: npt.NDArray[Any], *, up: bool) -> list[npt.NDArray[Any]]:
        """Send from the ranks of a layer to their parents, or from parents to the layer; what this rank receives."""
        children = [near for near in self.neighbors if layer.get(near) == self.rank]
        parents = [layer[self.rank]] if self.rank in layer else []
        senders, receivers = (children, parents) if up else (parents, children)
        received = np.empty((len(senders), len(flat)), dtype=flat.dtype)
        there, back = self._counts(receivers, len(flat)), self._counts(senders, len(flat))
        if self.neighbors:
            # All receivers get the same numbers, so all offsets are zero.
            send = [flat, (there, [0] * len(there))]
            starts = np.concatenate([[0], np.cumsum(back)[:-1]]).astype(int).tolist()
            self._ranks.wait(self._graph.Ineighbor_alltoallv(send, [received, (back, starts)]))
        return list(received)

    def _counts(self, chosen: Sequence[int], n: int) -> list[int]:
        return [n if near in chosen else 0 for near in self.neighbors]
