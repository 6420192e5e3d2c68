"""The engine for MPI over a graph: messages between linked ranks only."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.mpi.engine import MPIEngine
from dsfr.engines.mpi.neighborhoods import LinkedRanks
from dsfr.engines.mpi.ranks import Ranks
from dsfr.engines.tally import Counts, Exchange


class MPINetworkEngine(MPIEngine):
    """Reductions over ranks that can talk to their neighbors in a graph only; one agent per rank.

    The graph is that of ``MPI_Dist_graph_create_adjacent``, all messages of a training are neighborhood collectives on
    it. Sums go along a spanning tree.

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
        self.linked = self._link(self.ranks.comm, links)
        super().close()
        self.ranks: Ranks = self.linked

    @property
    def links(self) -> dict[str, tuple[str, ...]]:
        """The neighbors of every agent."""
        return self._links

    def _link(self, comm: Any, links: Mapping[int, Sequence[int]]) -> LinkedRanks:
        return LinkedRanks(comm, links)

    def _exchange(self, up: Counts, down: int) -> Exchange:
        """Messages up and down the tree: sums and what is gathered have the same length everywhere."""
        degrees = np.zeros(self.ranks.size, dtype=np.int64)
        for link in self.linked.tree:
            degrees[list(link)] += 1
        n_links = len(self.linked.tree)
        return Exchange(degrees * np.array([[2], [down], [down]]), 2 * n_links, n_links * down, n_links * down)
