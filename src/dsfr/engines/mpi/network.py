"""Engine over MPI and a graph: messages between neighboring ranks only."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.ledger import Counts, RoundTraffic
from dsfr.engines.mpi.engine import MPIEngine
from dsfr.engines.mpi.neighborhoods import LinkedRanks
from dsfr.engines.mpi.ranks import Ranks


class MPINetworkEngine(MPIEngine):
    """Reductions with messages between neighboring ranks of a graph only; one agent per rank.

    All messages of a training are neighborhood collectives on a graph of ``MPI_Dist_graph_create_adjacent``. Sums use a
    spanning tree.

    Parameters
    ----------
    shards, tasks, ranks
        As in `MPIEngine`, with one agent.
    topology : function
        Returns the neighbors of every agent, given the names of all agents in the order of the ranks; see
        `dsfr.engines.topology.make_topology`.
    """

    def __init__(
        self,
        shards: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
        tasks: Tasks,
        topology: Callable[[Sequence[str]], Mapping[str, Sequence[str]]],
        *,
        ranks: Ranks | None = None,
    ) -> None:
        super().__init__(shards, tasks, ranks=ranks)
        several = [rank for rank, own in enumerate(self._by_rank) if len(own) > 1]
        if several:
            raise EngineError(f"rank {several[0]} has several agents; on a graph every rank must have one")
        self._links = self.ranks.run_on_all(lambda: {name: tuple(near) for name, near in topology(self.agents).items()})
        (same,) = self.ranks.agree(None, [zlib.crc32(repr(sorted(self._links.items())).encode())])
        if not same:
            raise EngineError("ranks have different graphs: use the same topology, or the same file, on all machines")
        numbers = {name: rank for rank, name in enumerate(self.agents)}
        links = {numbers[name]: [numbers[near] for near in nearby] for name, nearby in self._links.items()}
        self.ranks = self.linked = self._link(links)

    @property
    def links(self) -> dict[str, tuple[str, ...]]:
        """The neighbors of every agent."""
        return self._links

    def _link(self, links: Mapping[int, Sequence[int]]) -> LinkedRanks:
        """Collective operations over these links."""
        return LinkedRanks(self._job, links)

    def _round_traffic(self, up: Counts, down: int) -> RoundTraffic:
        """Messages up and down the tree; sums and gathered bytes have the same length on every link."""
        degrees = np.zeros(self.ranks.size, dtype=np.int64)
        for link in self.linked.tree:
            degrees[list(link)] += 1
        n_links = len(self.linked.tree)
        return RoundTraffic(degrees * np.array([[2], [down], [down]]), 2 * n_links, n_links * down, n_links * down)
