"""Fits of one fold that share their rounds of clustering, which neither targets nor weights have a part in.

A task is a function of rows, memory and broadcast. A round of clustering that an earlier fit on the same rows has had
is therefore looked up; its messages, and the seconds that it took, are counted as if it had been computed again.
"""

from __future__ import annotations

import time
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.engines import InProcessEngine
from dsfr.engines.ledger import Counts, RoundTraffic
from dsfr.paper.experiments.folds import Fold
from dsfr.storage.bundles import Bundle
from dsfr.training import TASKS, make_shards
from dsfr.training.tasks.registry import REGISTRY


@dataclass(frozen=True, slots=True)
class Round:
    """What a round has left: its results, what every agent has written to its memory, its messages and its seconds."""

    results: list[Bundle]
    written: tuple[Bundle, ...]
    traffic: RoundTraffic
    seconds: float


class SharedRounds:
    """Rounds of clustering of the fits of one fold."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._rounds: dict[Hashable, Round] = {}

    def __len__(self) -> int:
        return len(self._rounds)

    def fit(self, estimator: Any, targets: Array, owners: IntArray | None) -> tuple[Any, float]:
        """Fit an estimator on the rows of the fold, as its ``fit`` does; and the seconds of processor time."""
        X = self._fold.X
        holders = np.zeros(len(X), dtype=np.int64) if owners is None else owners
        start = time.process_time()
        shards = make_shards(X, targets, holders)
        engine = SharingEngine(shards, self._rounds)
        estimator.fit_over(lambda _: engine, [f"x{j}" for j in range(X.shape[1])])
        del estimator.feature_names_in_  # rows of a fold have no names
        return estimator, time.process_time() - start + engine.spared


class SharingEngine(InProcessEngine):
    """An engine that looks rounds of clustering up."""

    def __init__(self, shards: Any, rounds: dict[Hashable, Round]) -> None:
        super().__init__(shards, TASKS)
        self._rounds = rounds
        self.spared = 0.0
        """Seconds that looked-up rounds took when they were computed."""

    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        if REGISTRY[task].stage != "clusters":
            return super()._run_round(task, verb, broadcast)
        key = (self.agents, task, _bytes(broadcast), *(self._read(name, task) for name in self.agents))
        if key not in self._rounds:
            self._rounds[key] = self._computed(task, verb, broadcast)
            return self._rounds[key].results
        found = self._rounds[key]
        for name, written in zip(self.agents, found.written, strict=True):
            self._agents[name].restore({**self._agents[name].memory, **written})
        self.ledger.entry(task, verb).count_rounds(found.traffic)
        self._present = self.agents
        self.spared += found.seconds
        return found.results

    def _computed(self, task: str, verb: str, broadcast: Bundle) -> Round:
        start, entry = time.process_time(), self.ledger.entry(task, verb)
        totals, counts = (entry.messages, entry.bytes_down, entry.bytes_up), entry.counts.copy()
        results = super()._run_round(task, verb, broadcast)
        seconds = time.process_time() - start
        after: Counts = entry.counts - counts
        messages = (entry.messages - totals[0], entry.bytes_down - totals[1], entry.bytes_up - totals[2])
        memories = [self._agents[name].memory for name in self.agents]
        kept = REGISTRY[task].remembers
        written = tuple({name: memory[name] for name in kept if name in memory} for memory in memories)
        return Round(results, written, RoundTraffic(after[1:], *messages), seconds)

    def _read(self, agent: str, task: str) -> tuple[tuple[str, bytes], ...]:
        """What the task may read of an agent's memory."""
        memory = self._agents[agent].memory
        return _bytes({name: memory[name] for name in REGISTRY[task].reads if name in memory})


def _bytes(bundle: Bundle) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, array.tobytes()) for name, array in sorted(bundle.items()))
