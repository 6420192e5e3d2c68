"""The coordinator's side of disclosure control, over any engine: owners admit each other, and give sums alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dsfr.disclosure.owner import ADMIT, CHECK, PREFIXES, ROUND, STATE
from dsfr.disclosure.refusal import PolicyError
from dsfr.disclosure.ring import PARTS, decode, from_parts
from dsfr.disclosure.statements import Statement, pack_statements
from dsfr.disclosure.table import NOT_LISTED, TABLE
from dsfr.engines import BaseEngine, EngineError
from dsfr.storage.bundles import Bundle


def protect(engine: BaseEngine, *, policy: bool, masked: bool) -> BaseEngine:
    """The engine with the coordinator's side of its owners' protection; the same if they have none."""
    return ProtectedEngine(engine, policy=policy, masked=masked) if policy or masked else engine


class ProtectedEngine(BaseEngine):
    """An engine whose tasks are those of `protected_tasks`.

    Making it opens the fit, in two rounds: owners state their labels and keys, and admit each other. Every owner must
    take part in every round: a sum without one of them would differ from the sum with it by that owner's part.

    Parameters
    ----------
    engine : BaseEngine
        Any engine, over tasks of `protected_tasks`.
    policy : bool
        Whether its owners have a policy. Tasks that every policy refuses are then not even asked for.
    masked : bool
        Whether contributions are masked.
    """

    def __init__(self, engine: BaseEngine, *, policy: bool, masked: bool) -> None:
        super().__init__(engine.agents, {}, engine.ledger)
        self._engine, self._policy, self._masked = engine, policy, masked
        self._round = 0
        self._open()

    def _open(self) -> None:
        statements = [Statement.of(bundle) for bundle in self._engine.gather(STATE, {})]
        if len(statements) < self.n_agents:
            raise EngineError(f"{self.n_agents - len(statements)} of {self.n_agents} owners have stated nothing")
        self._engine.sum(ADMIT, pack_statements(statements))
        self._round = 0
        self._stated = sum(statement.labels for statement in statements)

    @property
    def only_sums(self) -> bool:
        """Sums alone leave the owners."""
        return True

    @property
    def stated_labels(self) -> int | None:
        """Labels that owners with a policy have stated to each other."""
        return self._stated if self._policy else None

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of the agents of this process."""
        return self._engine.own_agents

    @property
    def has_coordinator(self) -> bool:
        """Whether one process receives the reductions and sends broadcasts."""
        return self._engine.has_coordinator

    @property
    def deterministic(self) -> bool:
        """Whether a round that runs again gives the same result."""
        return self._engine.deterministic

    @property
    def links(self) -> Mapping[str, Any]:
        """Neighbors of every agent, if the engine has a graph."""
        return getattr(self._engine, "links", {})

    def min_over_processes(self, number: int) -> int:
        """Minimum of a number over all processes of this training."""
        return self._engine.min_over_processes(number)

    def save_memories(self, path_of: Callable[[str], Path]) -> None:
        """Write the memory of every own agent to its path."""
        self._engine.save_memories(path_of)

    def load_memories(self, path_of: Callable[[str], Path]) -> None:
        """Restore the memory of every own agent; keys and numbers of rounds are agreed anew."""
        self._engine.load_memories(path_of)
        self._open()

    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        if verb != "sum":
            raise PolicyError(f"{verb} of task {task!r} is refused: sums alone leave the owners")
        refused = TABLE.get(task, NOT_LISTED).refused
        if self._policy and refused:
            raise PolicyError(f"task {task!r} is refused: {refused}")
        if not self._masked:
            return [self._complete(task, self._engine.sum(task, broadcast))]
        self._round += 1
        numbered = {**broadcast, ROUND: np.asarray(self._round, dtype=np.int64)}
        return [self._unmasked(task, self._complete(task, self._engine.sum(task, numbered)))]

    def _complete(self, task: str, total: Bundle) -> Bundle:
        missing = sorted(set(self.agents) - set(self._engine.present))
        if missing:
            raise EngineError(f"{', '.join(missing)} did not take part in task {task!r}: a sum without is not used")
        return total

    def _unmasked(self, task: str, total: Bundle) -> Bundle:
        types = {prefix: np.dtype(name) for name, prefix in PREFIXES.items()}
        sums = {
            name[2:]: decode(*from_parts(parts.reshape(-1, PARTS)), types[name[:2]]).reshape(parts.shape[:-1])
            for name, parts in total.items()
        }
        if int(sums.pop(CHECK)) != self.n_agents:
            raise EngineError(
                f"masks do not cancel in task {task!r}: an owner answered another question, or with old keys"
            )
        return sums
