"""The engine of a federation: questions go to all owners at once, over any function that carries bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dsfr.engines import BaseEngine, EngineError, RefusedError
from dsfr.engines.ledger import RoundTraffic
from dsfr.engines.reduction import reduce_round
from dsfr.federation.messages import LOAD, SAVE, Message, unsealed
from dsfr.storage.bundles import Bundle, from_bytes, payload_bytes

Ask: TypeAlias = Callable[[bytes], Mapping[str, bytes]]
"""Sends bytes to every owner; their answers by name. Raises an EngineError that names who refused or did not answer."""


Replies: TypeAlias = Callable[[bytes], Mapping[str, bytes | EngineError]]
"""Sends bytes to every owner; answers and refusals by name, without those that did not answer."""


def raising(replies: Replies) -> Ask:
    """Asks all owners, and raises the first refusal once all have answered."""

    def ask(data: bytes) -> dict[str, bytes]:
        answers: dict[str, bytes] = {}
        refusals: list[EngineError] = []
        for name, reply in replies(data).items():
            if isinstance(reply, bytes):
                answers[name] = reply
            else:
                refusals.append(reply)
        for refusal in sorted(refusals, key=lambda error: isinstance(error, RefusedError)):
            raise refusal  # one that ends the fit before one that asks for less
        return answers

    return ask


class FederationEngine(BaseEngine):
    """Rounds of a fit over owners that are reached by ``ask``.

    Parameters
    ----------
    names : sequence of str
        Names of all owners, of whom each must answer every question.
    ask : callable
        Carries a message to all owners and returns their answers.
    run : str
        Name of this attempt.
    about : mapping
        What the first question says of the fit: columns and settings.
    """

    def __init__(self, names: Sequence[str], ask: Ask, run: str, about: Mapping[str, Any]) -> None:
        super().__init__(sorted(names), {})
        self._ask, self._run, self._about, self._number = ask, run, about, 0

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of all owners: the coordinator writes the checkpoint, and owners keep their memories."""
        return self.agents

    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        found = self._answers(task, broadcast, self._about if self._number == 0 else {})
        contributions = [read_answer(name, found[name]) for name in self.agents]
        sent = np.array([payload_bytes(part) for part in contributions], dtype=np.int64)
        received = np.full(self.n_agents, payload_bytes(broadcast), dtype=np.int64)
        self.ledger.entry(task, verb).count_rounds(RoundTraffic.to_coordinator(received, sent))
        return reduce_round(task, verb, contributions)

    def _answers(self, task: str, broadcast: Bundle, about: Mapping[str, Any]) -> Mapping[str, bytes]:
        self._number += 1
        found = self._ask(Message(self._run, self._number, task, broadcast, about).to_bytes())
        missing = sorted(set(self.agents) - set(found))
        if missing:
            raise EngineError(
                f"{', '.join(missing)} did not answer in task {task!r}: resume the fit when they are back"
            )
        return found

    def save_memories(self, path_of: Callable[[str], Path]) -> None:
        """Let every owner save its memory in its own kit; the file here only says that it did."""
        self._answers(SAVE, {}, {"number": _number(path_of(self.agents[0]))})
        for name in self.agents:
            path_of(name).parent.mkdir(parents=True, exist_ok=True)
            path_of(name).touch()

    def load_memories(self, path_of: Callable[[str], Path]) -> None:
        """Let every owner load the memory that it saved then."""
        self._answers(LOAD, {}, {"number": _number(path_of(self.agents[0]))})


def read_answer(name: str, data: bytes) -> Bundle:
    """The arrays of an owner's answer.

    Raises
    ------
    EngineError
        If it is something else.
    """
    try:
        return from_bytes(unsealed(data))
    except ValueError as error:
        raise EngineError(f"{name} answered with something else than a bundle of arrays: {error}") from None


def _number(path: Path) -> int:
    return int(path.name.rpartition("-")[2])
