"""How far a federated fit is: written by the coordinator's job, asked for by the lead."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dsfr.federation.messages import Message
from dsfr.training.tasks.registry import REGISTRY

SLOW_SECONDS = 2.0
"""Owners that are waited for longer than this are named."""
OPENING = "keys and consent"
"""Stage of questions that are no tasks of a training."""


class FitProgress:
    """Rounds, stage and owners that have not answered yet; asked and told from different threads."""

    def __init__(self) -> None:
        self._lock, self._rounds, self._task = threading.Lock(), 0, ""
        self._waiting: dict[str, None] = {}
        self._since = time.monotonic()

    def ask(self, data: bytes, names: Sequence[str]) -> None:
        """A question goes to these owners."""
        task = Message.of(data).task
        with self._lock:
            self._rounds, self._task, self._since = self._rounds + 1, task, time.monotonic()
            self._waiting = dict.fromkeys(names)

    def answered(self, name: str) -> None:
        """An owner has answered, or refused."""
        with self._lock:
            self._waiting.pop(name, None)

    def as_dict(self) -> dict[str, Any]:
        """What the lead is told: names and numbers that coordinator and owners know anyway."""
        with self._lock:
            stage = REGISTRY[self._task].stage if self._task in REGISTRY else OPENING
            seconds = time.monotonic() - self._since
            return {
                "rounds": self._rounds,
                "stage": stage if self._rounds else "",
                "waiting": list(self._waiting),
                "seconds": round(seconds, 1),
            }


def describe_progress(found: Mapping[str, Any]) -> str:
    """One line about the progress of a fit.

    >>> describe_progress({"rounds": 12, "stage": "clusters", "waiting": ["d"], "seconds": 0.1})
    'clusters: round 12'
    >>> describe_progress({"rounds": 12, "stage": "clusters", "waiting": ["d", "e"], "seconds": 7.3})
    'clusters: round 12, waiting for d, e (7 s)'
    >>> describe_progress({"rounds": 0, "stage": "", "waiting": [], "seconds": 3.0})
    'waiting for owners to join'
    """
    rounds, seconds = int(found.get("rounds", 0)), float(found.get("seconds", 0.0))
    if not rounds:
        return "waiting for owners to join"
    text = f"{found.get('stage')}: round {rounds}"
    waiting = [str(name) for name in found.get("waiting", ())]
    return f"{text}, waiting for {', '.join(waiting)} ({seconds:.0f} s)" if waiting and seconds > SLOW_SECONDS else text
