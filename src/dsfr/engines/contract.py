"""The contract between training and engines: what a task is and what an engine offers."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from dsfr.engines.ledger import Ledger
from dsfr.storage.bundles import Bundle

Task: TypeAlias = Callable[[Any, Bundle, Bundle], tuple[Bundle, Bundle]]
"""``(shard, memory, broadcast) -> (memory, contribution)``: a pure function of a shard and flat dicts of arrays."""

Tasks: TypeAlias = Mapping[str, Task]
"""Tasks by name."""


class EngineError(RuntimeError):
    """A round failed: unknown task, an error in a task, contributions of different shapes, too few agents."""


class RefusedError(EngineError):
    """An agent does not answer this question; it may answer another. Training then asks for less, or ends."""

    @property
    def rule(self) -> str:
        """Name of the policy rule that the text names, or nothing: the text alone passes through every engine."""
        found = re.search(r"policy rule '(\w+)'", str(self))
        return found[1] if found else ""


class Engine(Protocol):
    """Runs a named task on every agent and reduces the contributions.

    The coordinator sees reduced contributions only. `gather` is the exception: it returns single contributions, and the
    ledger marks it.
    """

    @property
    def n_agents(self) -> int:
        """Number of agents, present or absent."""

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents."""

    @property
    def present(self) -> tuple[str, ...]:
        """Names of the agents whose contributions the last result includes."""

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of the agents of this process."""

    @property
    def has_coordinator(self) -> bool:
        """Whether one process receives the reductions and sends broadcasts; else every agent receives them."""

    @property
    def only_sums(self) -> bool:
        """Whether sums alone leave the agents: maxima and gathered contributions are refused."""

    @property
    def stated_labels(self) -> int | None:
        """Labels that agents have stated to each other, by which they limit weights; None if they have not."""

    @property
    def ledger(self) -> Ledger:
        """Communication so far."""

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum of the contributions of all agents."""

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum of the contributions of all agents."""

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """Every non-empty contribution, in the order of the agents. The ledger marks it as revealing."""
