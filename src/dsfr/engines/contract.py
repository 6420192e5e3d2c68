"""The contract between training and transport."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

from dsfr.engines.ledger import Ledger
from dsfr.storage.bundles import Bundle

Task: TypeAlias = Callable[[Any, Bundle, Bundle], tuple[Bundle, Bundle]]
"""``(shard, memory, broadcast) -> (memory, contribution)``: pure, all but the shard flat dicts of arrays."""

Tasks: TypeAlias = Mapping[str, Task]


class EngineError(RuntimeError):
    """A round that could not be carried out: unknown task, or contributions that do not fit together."""


class Engine(Protocol):
    """Runs a named task on every agent and reduces the contributions.

    The coordinator sees reduced contributions only. `gather` is the exception: it shows single ones, and the ledger
    says so.
    """

    @property
    def n_agents(self) -> int:
        """Number of agents, present or not."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents."""

    @property
    def present(self) -> tuple[str, ...]:
        """Names of the agents whose answers counted in the last round."""

    @property
    def ledger(self) -> Ledger:
        """What has been sent so far."""

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum of the contributions of all agents."""

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum of the contributions of all agents."""

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """Every non-empty contribution by itself: for tasks where one agent must be seen. Logged as revealing."""


@runtime_checkable
class NeighborEngine(Engine, Protocol):
    """An engine over a graph, which can also do without a coordinator."""

    @property
    def diameter(self) -> int:
        """Links between the two agents that are farthest apart."""

    @property
    def n_links(self) -> int:
        """Number of edges."""

    @property
    def n_broken_links(self) -> int:
        """Number of links between agents present that failed in the last `neighbor_sum`."""

    def neighbor_sum(self, task: str, broadcast: Bundle, *, maxima: Collection[str] = ()) -> Bundle:
        """Give every agent the sum of its neighbors' contributions (the maximum, of names in ``maxima``).

        They are in its memory afterwards, with ``neighbor_`` before their names, beside the number ``n_links`` of links
        that worked, and ``n_missing`` of those that did not. Returned is what one agent got. Logged as revealing.
        """

    def read(self, task: str, broadcast: Bundle) -> dict[str, Bundle]:
        """What the agents of this process answer, looked up without a message."""
