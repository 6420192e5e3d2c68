"""The engine for MPI over a graph: messages between linked ranks only."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from dsfr.engines.breadth_first import diameter
from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.flattening import flatten, layout_number, layout_of, unflatten
from dsfr.engines.mpi.engine import MPIEngine, number_of
from dsfr.engines.mpi.neighborhoods import LinkedRanks
from dsfr.engines.mpi.ranks import Ranks
from dsfr.engines.reduction import reduce_neighbors
from dsfr.engines.tally import Counts, Exchange
from dsfr.storage.bundles import Bundle

STATUS_BYTES = 1 + 2 * 8
"""What a rank tells each neighbor before a vector: that it is well, what it was told, and the layout of the vector."""


class MPINetworkEngine(MPIEngine):
    """Reductions over ranks that can talk to their neighbors in a graph only; one agent per rank.

    The graph is that of ``MPI_Dist_graph_create_adjacent``, all messages of a training are neighborhood collectives on
    it. Sums go along a spanning tree; `neighbor_sum` needs no tree.

    Parameters
    ----------
    shards, tasks, comm
        As in `MPIEngine`, with one agent.
    topology : function
        Makes the neighbors of every agent from the names of all agents, in the order of the ranks; see
        `dsfr.engines.topology.make_topology`.
    """

    def __init__(
        self,
        shards: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
        tasks: Tasks,
        topology: Callable[[Sequence[str]], Mapping[str, Sequence[str]]],
        *,
        comm: Any = None,
    ) -> None:
        super().__init__(shards, tasks, comm=comm)
        crowded = [rank for rank, hosted in enumerate(self._hosts) if len(hosted) > 1]
        if crowded:
            raise EngineError(f"rank {crowded[0]} has several agents; on a graph every rank must have one")
        self._links = self.ranks.together(lambda: {name: tuple(near) for name, near in topology(self.agents).items()})
        (same,) = self.ranks.agree(None, [zlib.crc32(repr(sorted(self._links.items())).encode())])
        if not same:
            raise EngineError(
                "ranks have different graphs: give all the same topology, or the same file on all machines"
            )
        numbers = {name: rank for rank, name in enumerate(self.agents)}
        links = {numbers[name]: [numbers[near] for near in nearby] for name, nearby in self._links.items()}
        self.linked = LinkedRanks(self.ranks.comm, links)
        self.ranks.close()
        self.ranks: Ranks = self.linked

    @property
    def diameter(self) -> int:
        """Links between the two agents that are farthest apart."""
        return diameter(self._links)

    @property
    def links(self) -> dict[str, tuple[str, ...]]:
        """The neighbors of every agent."""
        return self._links

    @property
    def n_links(self) -> int:
        """Number of edges."""
        return sum(map(len, self._links.values())) // 2

    @property
    def n_broken_links(self) -> int:
        """None: a link that fails ends the job."""
        return 0

    def neighbor_sum(self, task: str, broadcast: Bundle, *, maxima: Collection[str] = ()) -> Bundle:
        """Run a task and give every rank the sum of what its neighbors contribute; see `NeighborEngine`."""
        (agent,) = self._hosted.values()
        own, error = Bundle(), None
        try:
            own = agent.run(task, broadcast)
        except Exception as caught:
            error = caught
        self.linked.exchange_failures(error)
        self._check_neighbors(task, broadcast, own)
        received = [unflatten(flat, layout_of(own)) for flat in self.linked.exchange(flatten(own))]
        kept = reduce_neighbors(task, own, received, maxima, len(received))
        agent.keep(kept)
        self._tally.add(task, "neighbor_sum", self._neighborly(flatten(own).nbytes + STATUS_BYTES))
        return kept

    def read(self, task: str, broadcast: Bundle) -> dict[str, Bundle]:
        """What the agent of this rank answers, looked up without a message."""
        return {name: agent.run(task, broadcast) for name, agent in self._hosted.items()}

    def _check_neighbors(self, task: str, broadcast: Bundle, own: Bundle) -> None:
        told = np.array([number_of(task, broadcast), layout_number(layout_of(own))], dtype=np.int64)
        for near, heard in zip(self.linked.neighbors, self.linked.exchange(told), strict=True):
            if (heard != told).any():
                raise EngineError(
                    f"rank {self.rank} and its neighbor {near} differ in task {task!r}: give all ranks the same "
                    "settings, seed and columns"
                )

    def _exchange(self, up: Counts, down: int) -> Exchange:
        """Messages up and down the tree: sums and what is gathered have the same length everywhere."""
        degrees = np.zeros(self.ranks.size, dtype=np.int64)
        for link in self.linked.tree:
            degrees[list(link)] += 1
        n_links = len(self.linked.tree)
        return Exchange(degrees * np.array([[2], [down], [down]]), 2 * n_links, n_links * down, n_links * down)

    def _neighborly(self, n_bytes: int) -> Exchange:
        """Messages from every rank to all its neighbors."""
        degrees = np.array([len(nearby) for nearby in self._links.values()], dtype=np.int64)
        n_messages = int(degrees.sum())
        return Exchange(degrees * np.array([[2], [n_bytes], [n_bytes]]), n_messages, n_messages * n_bytes, 0)
