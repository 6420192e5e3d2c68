"""The coordinator's side of the check: totals and gathered contributions are as their tasks declare."""

from __future__ import annotations

from typing import Any

from dsfr.engines import Engine
from dsfr.engines.ledger import Ledger
from dsfr.storage.bundles import Bundle
from dsfr.training.changed_rows import IncompleteRowsError
from dsfr.training.tasks.declaration import ContributionError
from dsfr.training.tasks.registry import INCOMPLETE, REGISTRY
from dsfr.training.tasks.symbols import Sizes


def checked(engine: Engine) -> CheckedEngine:
    """The same engine, whose reductions are checked."""
    return CheckedEngine(engine)


class CheckedEngine:
    """An engine that refuses totals which no agents can have contributed, see `Declared.check_contribution`.

    Raises
    ------
    IncompleteRowsError
        By a task that opens a training, if an agent has missing values, unless ``takes_incomplete`` is set.
    """

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.takes_incomplete = False
        """Whether agents with missing values have the density of the rows to complete them with."""

    @property
    def n_agents(self) -> int:
        """Number of agents, present or not."""
        return int(self._engine.n_agents)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents."""
        return tuple(self._engine.agents)

    @property
    def present(self) -> tuple[str, ...]:
        """Names of the agents whose answers counted in the last round."""
        return tuple(self._engine.present)

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of the agents of this process."""
        return tuple(self._engine.own_agents)

    @property
    def has_coordinator(self) -> bool:
        """Whether one process knows the reductions; else every agent does."""
        return bool(self._engine.has_coordinator)

    @property
    def only_sums(self) -> bool:
        """Whether sums alone leave the agents."""
        return bool(self._engine.only_sums)

    @property
    def stated_labels(self) -> int | None:
        """Labels that agents have stated to each other; None if they have not."""
        stated: int | None = self._engine.stated_labels
        return stated

    @property
    def ledger(self) -> Ledger:
        """What has been sent so far."""
        ledger: Ledger = self._engine.ledger
        return ledger

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum of the contributions of all agents."""
        return self._checked(task, broadcast, self._engine.sum(task, broadcast))

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum of the contributions of all agents."""
        return self._checked(task, broadcast, self._engine.max(task, broadcast))

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """Every non-empty contribution by itself."""
        answers: list[Bundle] = self._engine.gather(task, broadcast)
        names = (
            self.present if len(self.present) == len(answers) else ("one of " + ", ".join(self.present),) * len(answers)
        )
        for name, answer in zip(names, answers, strict=True):
            try:
                self._checked(task, broadcast, answer)
            except ContributionError as error:
                raise ContributionError(f"agent {name!r}: {error}") from None
        return answers

    def _checked(self, task: str, broadcast: Bundle, total: Bundle) -> Bundle:
        declared, sizes = REGISTRY[task], Sizes()
        declared.sent.bind(broadcast, sizes)
        declared.check_contribution(total, sizes)
        if declared.is_opening and total[INCOMPLETE] > 0.0 and not self.takes_incomplete:
            raise IncompleteRowsError(f"task {task!r}: X has missing values")
        return total
