"""Engine over MPI without a coordinator: sums by gossip between linked ranks."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.engines.gossip.residues import BYTES
from dsfr.engines.gossip.rules import Link, Message, sum_rule
from dsfr.engines.gossip.summation import KEY_BYTES, contribution, total
from dsfr.engines.ledger import Counts, RoundTraffic
from dsfr.engines.mpi.neighborhoods import LinkedRanks
from dsfr.engines.mpi.network import MPINetworkEngine
from dsfr.engines.mpi.ranks import Ranks
from dsfr.engines.topology import diameter


class GossipRanks(LinkedRanks):
    """Linked ranks that reduce by gossip: see `dsfr.engines.local.gossip.GossipEngine`.

    All ranks know the graph, so they need not exchange it. A rank that dies ends the job.
    """

    def __init__(self, ranks: Ranks, links: Mapping[int, Sequence[int]]) -> None:
        super().__init__(ranks, links)
        self._named = {str(rank): tuple(map(str, sorted(links[rank]))) for rank in sorted(links)}
        self._rule = sum_rule(self._named)
        self._all_links = tuple((name, near) for name, nearby in self._named.items() for near in nearby)
        self._diameter = diameter(self._named)
        self._n_sums = 0
        self._sent: list[tuple[Sequence[Link], int]] = []
        self._keys = self._agree_keys()

    def reduce(self, flat: npt.NDArray[Any], verb: str) -> npt.NDArray[Any]:
        """Elementwise sum or maximum of all ranks' vectors; the same bits on all ranks."""
        if verb == "sum":
            return self._gossip(flat.astype(np.float64)).astype(flat.dtype)
        for _ in range(self._diameter):
            flat = np.maximum.reduce([flat, *self.exchange(flat)])
        return flat

    def gather(self, data: bytes) -> list[bytes]:
        """The bytes of every rank, on all ranks: the maximum of places where only their own rank has no zeros."""
        sizes = np.zeros(self.size, dtype=np.int64)
        sizes[self.rank] = len(data)
        sizes = self.reduce(sizes, "max")
        ends = np.cumsum(sizes)
        places = np.zeros(int(ends[-1]), dtype=np.uint8)
        places[ends[self.rank] - len(data) : ends[self.rank]] = np.frombuffer(data, dtype=np.uint8)
        places = self.reduce(places, "max")
        return [places[end - size : end].tobytes() for size, end in zip(sizes, ends, strict=True)]

    def exchange(self, flat: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
        """The vectors of all neighbors, in the order of their ranks."""
        self._sent.append((self._all_links, flat.nbytes))
        return super().exchange(flat)

    def take_sent(self) -> list[tuple[Sequence[Link], int]]:
        """Links that carried a message, and its bytes, in each exchange since the last call."""
        sent, self._sent = self._sent, []
        return sent

    def _gossip(self, numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        self._n_sums += 1
        own = contribution(str(self.rank), numbers, self._keys, self._n_sums, "sum")
        part, me = self._rule.begin(own), str(self.rank)
        for k, links in enumerate(self._rule.exchanges, start=1):
            messages = {int(receiver): part.message(receiver) for sender, receiver in links if sender == me}
            senders = {int(sender) for sender, receiver in links if receiver == me}
            n_bytes = BYTES * own.shape[1]
            self._sent.append((links, n_bytes))
            part.receive(k, {str(sender): found for sender, found in self._swap(messages, senders, n_bytes).items()})
        return total(part.value, self._named, "sum")

    def _swap(self, messages: Mapping[int, Message], senders: Collection[int], n_bytes: int) -> dict[int, Message]:
        """Send messages of one length to some neighbors, and receive from some; all ranks take part."""
        receivers, found = [near for near in self.neighbors if near in messages], sorted(senders)
        sent = np.concatenate([np.empty(0, np.uint8), *(messages[near] for near in receivers)])
        received = np.empty((len(found), n_bytes), dtype=np.uint8)
        if self.neighbors:
            there, back = (self._places(chosen, n_bytes) for chosen in (receivers, found))
            self._ranks.wait(self._graph.Ineighbor_alltoallv([sent, there], [received, back]))
        return dict(zip(found, received, strict=True))

    def _places(self, chosen: Sequence[int], n: int) -> tuple[list[int], list[int]]:
        """Counts and offsets of the neighbors' parts of a buffer."""
        counts = self._counts(chosen, n)
        return counts, np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(int).tolist()

    def _agree_keys(self) -> dict[str, bytes]:
        """Keys of the masks, by neighbor: each end of a link sends random bytes to the other."""
        n = len(self.neighbors)
        sent = np.frombuffer(secrets.token_bytes(KEY_BYTES * n), dtype=np.uint8).reshape(n, KEY_BYTES)
        received: Message = np.empty_like(sent)
        if n:
            self._ranks.wait(self._graph.Ineighbor_alltoall(np.ascontiguousarray(sent), received))
        return {
            str(near): (mine + theirs if str(self.rank) < str(near) else theirs + mine)
            for near, mine, theirs in zip(self.neighbors, map(bytes, sent), map(bytes, received), strict=True)
        }


class MPIGossipEngine(MPINetworkEngine):
    """Reductions over ranks of a graph without a root; one agent per rank.

    Parameters
    ----------
    shards, tasks, topology, ranks
        As in `MPINetworkEngine`.
    """

    @property
    def has_coordinator(self) -> bool:
        """False: every rank receives every reduction."""
        return False

    def _link(self, links: Mapping[int, Sequence[int]]) -> GossipRanks:
        self._gossip_ranks = GossipRanks(self._job, links)
        return self._gossip_ranks

    def _count_round(self, task: str, verb: str, n_bytes: int) -> None:
        self.ledger.entry(task, verb).count_rounds(self._exchanges())

    def _round_traffic(self, up: Counts, down: int) -> RoundTraffic:
        return self._exchanges()

    def _exchanges(self) -> RoundTraffic:
        """Exchanges since the last reduction, a round each."""
        sent = self._gossip_ranks.take_sent()
        by_agent, n_messages, total_bytes = np.zeros((3, len(self._links)), dtype=np.int64), 0, 0
        for links, n_bytes in sent:
            ends = np.array(links, dtype=np.int64).reshape(-1, 2)
            sends, receives = (np.bincount(ranks, minlength=by_agent.shape[1]) for ranks in ends.T)
            by_agent += [sends + receives, n_bytes * receives, n_bytes * sends]
            n_messages, total_bytes = n_messages + len(links), total_bytes + n_bytes * len(links)
        return RoundTraffic(by_agent, n_messages, 0, total_bytes, rounds=len(sent))
