"""The contract between training and transport."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

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
    def own_agents(self) -> tuple[str, ...]:
        """Names of the agents of this process."""

    @property
    def has_coordinator(self) -> bool:
        """Whether one process knows the reductions and tells agents what to do; else every agent knows them itself."""

    @property
    def ledger(self) -> Ledger:
        """What has been sent so far."""

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum of the contributions of all agents."""

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum of the contributions of all agents."""

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """Every non-empty contribution by itself: for tasks where one agent must be seen. Logged as revealing."""
