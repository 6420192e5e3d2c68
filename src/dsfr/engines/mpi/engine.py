"""The engine for MPI: every rank holds its own agents and runs the same training; sums by ``Allreduce``."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np

from dsfr.engines.agent import Agent, make_agents
from dsfr.engines.checkpoint.memory import Hosted
from dsfr.engines.contract import EngineError, Tasks
from dsfr.engines.flattening import (
    Layout,
    checksum,
    flatten,
    layout_number,
    layout_of,
    pack_bundles,
    size_of,
    unflatten,
    unpack_bundles,
)
from dsfr.engines.ledger import Ledger
from dsfr.engines.mpi.ranks import Ranks
from dsfr.engines.reduction import reduce_bundles
from dsfr.engines.tally import Counts, Exchange, Tally
from dsfr.storage.bundles import Bundle, payload_bytes

HEADER_BYTES = 5 * 8
"""What ranks agree on before they add up: nobody has failed, all were told the same, all contribute the same names."""
N_SHORT = 3
"""Numbers that say the same where they go along with those that are added up."""
TOLD = 1 << 20
"""Numbers for what a rank was told are below this, so that the squares of ten thousand of them add up exactly."""


class MPIEngine(Hosted):
    """Reductions over the ranks of an MPI job.

    All ranks make this engine and call `dsfr.train` with the same settings: the coordinator's part runs everywhere, so
    nothing is broadcast, and every rank ends with the model. In each round ranks first agree that none has failed and
    that all were told the same, to the bit; an exception on one is the same `EngineError` on all, naming the rank.

    Use it as a context (``with MPIEngine(...) as engine``): an error outside a task, which others cannot know of, then
    ends the job for all.

    Parameters
    ----------
    shards : mapping, or function that returns one
        What the agents of this rank hold, by name; names are different on all ranks. If it is a function and fails on
        one rank, say because a file is missing, all ranks learn of it.
    tasks : mapping
        Tasks by name.
    comm : mpi4py.MPI.Comm or Ranks, default=None
        All ranks of the job by default. `Ranks` that exist are used, and left open by `close`.
    """

    def __init__(
        self, shards: Mapping[str, Any] | Callable[[], Mapping[str, Any]], tasks: Tasks, *, comm: Any = None
    ) -> None:
        self._given = comm if isinstance(comm, Ranks) else None
        self.ranks = self._given or Ranks(comm)
        loaded = self.ranks.together(lambda: make_agents(shards() if callable(shards) else shards, tasks))
        self._hosted: dict[str, Agent] = loaded
        self._hosts = [part.decode().split("\0") for part in self.ranks.gather("\0".join(loaded).encode())]
        names = [name for hosted in self._hosts for name in hosted]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise EngineError(f"agents of different ranks have the same name: {', '.join(repeated[:5])}")
        self._names = tuple(names)
        crowds = enumerate(self._hosts)
        self._tally = Tally([hosted[0] if len(hosted) == 1 else f"rank {rank}" for rank, hosted in crowds])
        self._layouts: dict[tuple[str, Layout], Layout] = {}
        self._exchanges: dict[int, Exchange] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.ranks.leave(error)
        else:
            self.close()

    def close(self) -> None:
        """Give back what MPI has few of; on all ranks, after the last round."""
        if self.ranks is not self._given:
            self.ranks.close()

    @property
    def rank(self) -> int:
        """Number of this rank."""
        return self.ranks.rank

    @property
    def n_agents(self) -> int:
        """Number of agents on all ranks."""
        return len(self._names)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents, in the order of the ranks."""
        return self._names

    @property
    def present(self) -> tuple[str, ...]:
        """Names of all agents: a rank that is gone ends the job."""
        return self._names

    @property
    def has_coordinator(self) -> bool:
        """Whether sums are taken as from a coordinator: every rank plays its part."""
        return True

    @property
    def ledger(self) -> Ledger:
        """What has been sent so far, by all ranks: what each hands to MPI, and what it gets back."""
        return self._tally.ledger()

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum over the agents of all ranks; the same bits on each."""
        own, error = self._run(task, broadcast, "sum")
        asked = task, layout_of(broadcast)
        expected = self._layouts.get(asked)
        if expected is not None:
            total = self._sum_at_once(task, broadcast, own if error is None else None, expected)
            if total is not None:
                return total
        self._agree(task, broadcast, own, error)
        self._layouts[asked] = layout_of(own)
        return self._reduced(task, "sum", own)

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum over the agents of all ranks."""
        own, error = self._run(task, broadcast, "max")
        self._agree(task, broadcast, own, error)
        return self._reduced(task, "max", own)

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """All non-empty contributions, in agent order, on all ranks."""
        contributions, error = self._attempt(task, broadcast)
        self._agree(task, broadcast, {}, error)
        received = [unpack_bundles(part) for part in self.ranks.gather(pack_bundles(contributions))]
        sizes = [sum(map(payload_bytes, bundles)) for bundles in received]
        sent = self._exchange(np.array(sizes, dtype=np.int64) + HEADER_BYTES, sum(sizes) + HEADER_BYTES)
        self._tally.add(task, "gather", sent)
        return [bundle for bundles in received for bundle in bundles if bundle]

    def agree_lowest(self, number: int) -> int:
        """The lowest of the ranks' numbers."""
        return -int(self.ranks.reduce(np.array([-number], dtype=np.float64), "max")[0])

    def _attempt(self, task: str, broadcast: Bundle) -> tuple[list[Bundle], Exception | None]:
        """What the agents of this rank contribute, or why they cannot."""
        try:
            return [agent.run(task, broadcast) for agent in self._hosted.values()], None
        except Exception as error:
            return [], error

    def _run(self, task: str, broadcast: Bundle, verb: str) -> tuple[Bundle, Exception | None]:
        """What the agents of this rank contribute together, or why they cannot."""
        contributions, error = self._attempt(task, broadcast)
        try:
            return (reduce_bundles(task, verb, contributions) if contributions else {}), error
        except EngineError as disagreement:
            return {}, disagreement

    def _agree(self, task: str, broadcast: Bundle, own: Bundle, error: Exception | None) -> None:
        """Go on only if no rank has failed, all were told the same, and all contribute the same names and shapes."""
        same = self.ranks.agree(error, [number_of(task, broadcast), layout_number(layout_of(own))])
        if not same[0]:
            raise EngineError(f"ranks were told different things in task {task!r}: give all the same settings and seed")
        if not same[1]:
            raise EngineError(f"ranks disagree in names, types or shapes of what task {task!r} contributes")

    def _reduced(self, task: str, verb: str, own: Bundle) -> Bundle:
        flat = flatten(own)
        total = self.ranks.reduce(flat, verb)
        self._tally.add(task, verb, self._even_exchange(flat.nbytes + HEADER_BYTES))
        return unflatten(total, layout_of(own))

    def _sum_at_once(self, task: str, broadcast: Bundle, own: Bundle | None, expected: Layout) -> Bundle | None:
        """The sum in a single exchange, where its layout is known from before; None if something is amiss.

        Before the numbers go three more: whether this rank has none to add, a number for what it was told, and its
        square. All ranks were told the same if, and only if, the mean of the squares is the square of the mean.
        """
        numbers = np.zeros(N_SHORT + size_of(expected))
        if own is not None and layout_of(own) == expected:
            numbers[N_SHORT:] = flatten(own)
        else:
            numbers[0] = 1.0
        told = number_of(task, broadcast) % TOLD
        numbers[1:N_SHORT] = told, told * told
        total = self.ranks.reduce(numbers, "sum")
        if total[0] or self.ranks.size * int(total[2]) != int(total[1]) ** 2:
            return None
        self._tally.add(task, "sum", self._even_exchange(numbers.nbytes))
        return unflatten(total[N_SHORT:], expected)

    def _even_exchange(self, n_bytes: int) -> Exchange:
        """What is sent if all ranks hand over, and get back, the same number of bytes."""
        if n_bytes not in self._exchanges:
            self._exchanges[n_bytes] = self._exchange(np.full(self.ranks.size, n_bytes, dtype=np.int64), n_bytes)
        return self._exchanges[n_bytes]

    def _exchange(self, up: Counts, down: int) -> Exchange:
        """What every rank hands over and gets back; a lone rank sends nothing."""
        several = self.ranks.size > 1
        sent, received = up * several, np.full(len(up), down) * several
        traffic = np.stack([np.full(len(up), 2 * several), sent, received])
        return Exchange(traffic, 2 * len(up) * several, int(sent.sum()), int(received.sum()))


def number_of(task: str, broadcast: Bundle) -> int:
    """A 32-bit number that tells what a rank was told."""
    return checksum(broadcast) ^ zlib.crc32(task.encode())
