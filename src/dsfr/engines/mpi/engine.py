"""Engine over MPI: every rank holds its own agents and runs the same training; sums by ``Allreduce``."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np

from dsfr.engines.agent import make_agents
from dsfr.engines.base import BaseEngine
from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.flattening import (
    Layout,
    bundle_checksum,
    flatten,
    layout_checksum,
    layout_of,
    layout_size,
    pack_bundles,
    unflatten,
    unpack_bundles,
)
from dsfr.engines.ledger import Counts, Ledger, RoundTraffic
from dsfr.engines.mpi.collectives import Collectives
from dsfr.engines.mpi.ranks import Ranks
from dsfr.engines.reduction import reduce_round
from dsfr.storage.bundles import Bundle, payload_bytes

AGREEMENT_BYTES = 6 * 8
"""Bytes of `Collectives.agree` before a reduction: failures, refusals, and minima and maxima of two checksums."""
N_HEADER = 3
"""Numbers in the header of a sum that also checks agreement."""
MAX_CHECKSUM = 1 << 20
"""Checksums in that header are below this, so that the squares of ten thousand of them add exactly."""


class MPIEngine(BaseEngine):
    """Reductions over the ranks of an MPI job.

    All ranks make this engine and call `dsfr.train` with the same settings: the coordinator's side runs on every rank,
    so nothing is broadcast, and every rank ends with the model. In each round ranks agree that none has failed and that
    all have the same broadcast, to the bit; an exception on one rank is the same `EngineError` on all, naming the rank.

    Use it as a context manager (``with MPIEngine(...) as engine``): an error outside a task, of which other ranks do
    not know, then ends the job for all.

    Parameters
    ----------
    shards : mapping, or function that returns one
        Shards of the agents of this rank, by name; names differ between ranks. If a function fails on one rank, for
        example because a file is missing, it is an error on all ranks.
    tasks : mapping
        Tasks by name.
    ranks : Ranks, default=None
        Ranks of the job, which the caller closes; by default a new `Ranks` of all ranks, which the engine closes.
    """

    def __init__(
        self, shards: Mapping[str, Any] | Callable[[], Mapping[str, Any]], tasks: Tasks, *, ranks: Ranks | None = None
    ) -> None:
        self._job = Ranks() if ranks is None else ranks
        self._closes_job = ranks is None
        self.ranks: Collectives = self._job
        agents = self.ranks.run_on_all(lambda: make_agents(shards() if callable(shards) else shards, tasks))
        self._by_rank = [part.decode().split("\0") for part in self.ranks.gather("\0".join(agents).encode())]
        names = [name for own in self._by_rank for name in own]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise EngineError(f"agents of different ranks have the same name: {', '.join(repeated[:5])}")
        senders = [own[0] if len(own) == 1 else f"rank {rank}" for rank, own in enumerate(self._by_rank)]
        super().__init__(names, agents, Ledger(senders))
        self._layouts: dict[tuple[str, Layout], Layout] = {}
        self._traffic: dict[int, RoundTraffic] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._job.end_job(error)
        else:
            self.close()

    def close(self) -> None:
        """Close the communicators that this engine has made; on all ranks, after the last round."""
        if self._closes_job:
            self._job.close()

    @property
    def rank(self) -> int:
        """Number of this rank."""
        return self.ranks.rank

    @property
    def oversubscribed(self) -> bool:
        """Whether a machine has more ranks than cores, so that sums use sockets."""
        return self._job.oversubscribed

    def min_over_processes(self, number: int) -> int:
        """Minimum of a number over all ranks."""
        return -int(self.ranks.reduce(np.array([-number], dtype=np.float64), "max")[0])

    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        own, error = self._run_own(task, verb, broadcast)
        if verb == "gather":
            return self._gather(task, broadcast, own, error)
        request = task, layout_of(broadcast)
        if verb == "sum" and request in self._layouts:
            found = self._sum_at_once(task, broadcast, own, self._layouts[request])
            if found is not None:
                return [found]
        self._agree(task, broadcast, own, error)
        layout, vector = layout_of(own[0]), flatten(own[0])
        self._layouts[request] = layout
        total = self.ranks.reduce(vector, verb)
        self._count_round(task, verb, vector.nbytes + AGREEMENT_BYTES)
        return [unflatten(total, layout)]

    def _run_own(self, task: str, verb: str, broadcast: Bundle) -> tuple[list[Bundle], Exception | None]:
        """Result of the agents of this rank, or the error of one of them."""
        try:
            contributions = [agent.run(task, broadcast) for agent in self._agents.values()]
            return reduce_round(task, verb, contributions), None
        except Exception as error:
            return [], error

    def _gather(self, task: str, broadcast: Bundle, own: list[Bundle], error: Exception | None) -> list[Bundle]:
        self._agree(task, broadcast, [], error)
        received = [unpack_bundles(part) for part in self.ranks.gather(pack_bundles(own))]
        sizes = [sum(map(payload_bytes, bundles)) for bundles in received]
        traffic = self._round_traffic(np.array(sizes) + AGREEMENT_BYTES, sum(sizes) + AGREEMENT_BYTES)
        self.ledger.entry(task, "gather").count_rounds(traffic)
        return [bundle for bundles in received for bundle in bundles]

    def _agree(self, task: str, broadcast: Bundle, own: list[Bundle], error: Exception | None) -> None:
        """Raise an error unless no rank has failed, and broadcasts and layouts are the same on all ranks."""
        layout = layout_of(own[0]) if own else ()
        same = self.ranks.agree(error, [request_checksum(task, broadcast), layout_checksum(layout)])
        if not same[0]:
            raise EngineError(
                f"broadcasts of task {task!r} differ between ranks: use the same settings and seed on all"
            )
        if not same[1]:
            raise EngineError(f"ranks disagree in names, types or shapes of what task {task!r} contributes")

    def _sum_at_once(self, task: str, broadcast: Bundle, own: list[Bundle], layout: Layout) -> Bundle | None:
        """The sum in a single exchange, if its layout is known from an earlier round; None if any rank disagrees.

        The header of the vector has three numbers: whether this rank has nothing to add, the checksum of its broadcast,
        and the square of that. All checksums are equal if and only if the mean of the squares is the square of the
        mean.
        """
        vector = np.zeros(N_HEADER + layout_size(layout))
        if own and layout_of(own[0]) == layout:
            vector[N_HEADER:] = flatten(own[0])
        else:
            vector[0] = 1.0
        checksum = request_checksum(task, broadcast) % MAX_CHECKSUM
        vector[1:N_HEADER] = checksum, checksum * checksum
        total = self.ranks.reduce(vector, "sum")
        if total[0] or self.ranks.size * int(total[2]) != int(total[1]) ** 2:
            return None
        self._count_round(task, "sum", vector.nbytes)
        return unflatten(total[N_HEADER:], layout)

    def _count_round(self, task: str, verb: str, n_bytes: int) -> None:
        """Count a round in which every rank sends and receives the same number of bytes."""
        if n_bytes not in self._traffic:
            self._traffic[n_bytes] = self._round_traffic(np.full(self.ranks.size, n_bytes), n_bytes)
        self.ledger.entry(task, verb).count_rounds(self._traffic[n_bytes])

    def _round_traffic(self, up: Counts, down: int) -> RoundTraffic:
        """Traffic of ranks that send ``up`` bytes each and receive ``down``; a single rank sends nothing."""
        if self.ranks.size == 1:
            return RoundTraffic(np.zeros((3, 1), dtype=np.int64), 0, 0, 0)
        return RoundTraffic.to_coordinator(np.full(len(up), down), up)


def request_checksum(task: str, broadcast: Bundle) -> int:
    """32-bit checksum of a task and its broadcast."""
    return bundle_checksum(broadcast) ^ zlib.crc32(task.encode())
