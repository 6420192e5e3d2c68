"""What agents without a coordinator do over and over, and the loops that make them do it.

*Flooding* takes the maxima of neighbors until everybody knows that of all. *Announcing* floods what one agent has, so
that all go on with the same bits. *Settling* is decentralised ADMM. Agents stop together because they agree on when:
along with their copies they flood the largest error of any agent, afresh every ``diameter + 1`` rounds. When that error
stalls, as it may where the problem is not convex, all double the penalty of their links: in a round when everybody is
there, because duals sum to zero only if both ends of a link take the same penalty for what they have exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo, stalled
from dsfr.core.consensus.decentralized import Copy
from dsfr.core.scaling.affine import LARGEST_FLOAT
from dsfr.engines import EngineError, NeighborEngine
from dsfr.storage.bundles import Bundle
from dsfr.training.messages import pack, scalar, unpack

HUGE = 1e300
"""An error that is not known yet; messages carry finite numbers only."""

STALL_ROUNDS, MIN_STALL = 30, 3
"""An error that is no better over so many rounds, or judgements, than over as many before has stalled."""

MAX_REPEATS = 1000
"""Rounds of a flood that may fail because a link does."""


def start_flood(memory: Bundle, value: Array) -> tuple[Bundle, Bundle]:
    """Memory and contribution of an agent that passes a value on."""
    return {**memory, "flood": value}, {"flood": value}


def flooded(memory: Bundle) -> Array:
    """The largest values an agent has heard of."""
    return np.maximum(memory["flood"], memory["neighbor_flood"])


def announced(value: Array | None, shape: tuple[int, ...]) -> Array:
    """A value to flood; from agents that have none, one that any other is larger than."""
    return np.full(shape, -LARGEST_FLOAT) if value is None else value


def start_copy(memory: Bundle, value: Array) -> tuple[Bundle, Bundle]:
    """Memory and contribution of an agent that starts with a copy of its own."""
    copy = Copy(value, np.zeros_like(value), np.zeros_like(value))
    return {**memory, **pack(copy), "worst": scalar(HUGE)}, {"value": value, "worst": scalar(HUGE)}


def copy_round(
    memory: Bundle,
    broadcast: Bundle,
    penalty: float,
    step: Callable[[Array, int], Array],
    error: Callable[[Array, Array], float],
) -> tuple[Bundle, Bundle]:
    """One round of decentralised ADMM: ``step`` gives the next copy, ``error`` judges the last one."""
    copy, n_links = unpack(Copy, memory), links_of(memory)
    # A neighbor not heard of counts as if it agreed: the dual stays, and the copy is still held back. Without that, a
    # copy with few links left would follow its dual wherever its own rows tell little.
    neighbors = memory["neighbor_value"] + int(memory["n_missing"]) * copy.value
    if "first" in broadcast:
        worst = HUGE
    elif "fresh" in broadcast:
        worst = min(error(*copy.unrest(neighbors, n_links, penalty)), HUGE)
    else:
        worst = max(float(memory["worst"]), float(memory["neighbor_worst"]))
    pulled, pull = copy.pulled(neighbors, n_links, penalty)
    value = step(pull, n_links)
    kept = {**memory, **pack(pulled), "value": value, "worst": scalar(worst)}
    return kept, {"value": value, "worst": scalar(worst)}


def links_of(memory: Bundle) -> int:
    """Number of an agent's links, whether they worked or not."""
    return int(memory["n_links"]) + int(memory["n_missing"])


@dataclass(frozen=True, slots=True)
class Conversation:
    """Rounds of neighbors over an engine."""

    engine: NeighborEngine
    max_rounds: int
    observe: Callable[[RoundInfo], None]

    def flood(self, task: str, told: Bundle | None = None) -> Array:
        """Start with a task and pass on until everybody has heard from all; what everybody knows then.

        A round in which a link failed does not count: what was to go over that link goes in the next.
        """
        span = self.engine.diameter + 1
        heard = self._flood_once(task, told or {})
        complete = int(self.engine.n_broken_links == 0)
        for _ in range(span + MAX_REPEATS):
            if complete == span:
                return heard
            heard = self._flood_once("flood", {})
            complete += self.engine.n_broken_links == 0
        raise EngineError(
            f"links failed in {MAX_REPEATS} rounds after task {task!r}: what one agent told has not reached all; "
            "mend the links, or send lost messages more often"
        )

    def settle(self, start: str, step: str, told: Bundle, tol: float, stage: str = "") -> bool:
        """Decentralised ADMM until the largest error of any agent is at most ``tol``; whether it came to that."""
        span = self.engine.diameter + 1
        links = 2.0 * self.engine.n_links / self.engine.n_agents
        told = {**told, "links_per_agent": scalar(links), "diameter": np.asarray(span - 1, dtype=np.int64)}
        self.engine.neighbor_sum(start, told, maxima=("worst",))
        self._require_all(start)
        errors, stiffness, whole = list[float](), 1.0, True
        for number in range(1, self.max_rounds + 1):
            mark = _mark(number, span) | {"stiffness": scalar(stiffness)}
            heard = self.engine.neighbor_sum(step, told | mark, maxima=("worst",))
            whole = whole and self._everybody and self.engine.n_broken_links == 0
            if number % span:
                continue
            if not whole:
                errors, whole = [], True  # not all have heard from all: no reason to stop, nor to pull harder
                continue
            errors.append(float(heard["neighbor_worst"]))
            if stage:
                self.observe(RoundInfo(stage, number, float("nan"), errors[-1], 0.0, errors[-1]))
            if errors[-1] <= tol:
                return True
            if stalled(errors, max(STALL_ROUNDS // span, MIN_STALL)):
                errors, stiffness = [], 2.0 * stiffness
        return False

    @property
    def _everybody(self) -> bool:
        return len(self.engine.present) == self.engine.n_agents

    def _flood_once(self, task: str, told: Bundle) -> Array:
        heard = self.engine.neighbor_sum(task, told, maxima=("flood",))
        self._require_all(task)
        return heard["neighbor_flood"]

    def _require_all(self, task: str) -> None:
        """Refuse to go on without somebody who would not know later what this task tells."""
        if not self._everybody:
            raise EngineError(
                f"only {len(self.engine.present)} of {self.engine.n_agents} agents were there in task {task!r}, and "
                "without a coordinator nobody tells the others later: train again, or with another solver"
            )


def _mark(number: int, span: int) -> Bundle:
    """When agents judge their copies afresh: at the start of a span, but not before they have seen their neighbors'."""
    if number == 1:
        return {"first": scalar(1.0)}
    return {"fresh": scalar(1.0)} if number % span == 1 else {}
