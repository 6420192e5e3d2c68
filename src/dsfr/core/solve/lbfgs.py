"""Descent with a memory (L-BFGS) in a metric that changes from point to point, one evaluation at a time.

A step of fuzzy c-means is the gradient divided by the clusters' masses. It ignores that memberships follow the centers,
and creeps where they do so the most, and on saddles. In the metric of the masses the method begins with that very step,
and learns from how gradients change what the masses do not know (Nocedal and Wright 2006, section 7.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dsfr.core.arrays import Array

ENOUGH = 1e-4
"""Part of the fall that the slope promises which a step must keep."""
ROUNDING = 1e-12
"""Values nearer than this, relatively, are equal."""
TINY = float(np.finfo(np.float64).tiny)
MOST_TRIES = 6
"""Steps in one direction that may be too long before all that was learnt is forgotten."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A point, and what is known of the function there."""

    point: Array
    value: float
    gradient: Array
    curvature: Array
    """Of the metric, in every coordinate: a plain step is ``-gradient / curvature``, and never raises the value."""


@dataclass(slots=True)
class Descent:
    """A search for a minimum that is told of one evaluation after the other."""

    memory: int
    """Steps that it learns from."""
    longest: float = float("inf")
    """Most by which a step may change a coordinate, unless it is a plain one."""
    _accepted: Evaluation | None = None
    _direction: Array = field(default_factory=lambda: np.empty(0))
    _length: float = 1.0
    _tries: int = 0
    _steps: list[Array] = field(default_factory=list)
    _changes: list[Array] = field(default_factory=list)

    def restart(self) -> None:
        """Forget all: the function has changed."""
        self._accepted = None
        self._forget()

    def advance(self, seen: Evaluation) -> Array:
        """The point to evaluate next, after what was asked for last."""
        if self._is_too_high(seen):
            self._shorten(seen)
        else:
            self._accept(seen)
        assert self._accepted is not None
        return self._accepted.point + self._length * self._direction

    def _is_too_high(self, seen: Evaluation) -> bool:
        if self._accepted is None or not self._steps:
            return False  # a plain step
        before = self._accepted
        promised = self._length * float(before.gradient @ self._direction)
        return seen.value > before.value + ENOUGH * promised + ROUNDING * abs(before.value)

    def _accept(self, seen: Evaluation) -> None:
        if self._accepted is not None:
            self._learn(seen.point - self._accepted.point, seen.gradient - self._accepted.gradient)
        self._accepted = seen
        self._aim(seen)

    def _shorten(self, seen: Evaluation) -> None:
        """Where a parabola through what is known has its minimum; or, after many tries, a plain step."""
        before = self._accepted
        assert before is not None
        self._tries += 1
        if self._tries == MOST_TRIES:
            self._forget()
            self._aim(before)
            return
        slope = self._length * float(before.gradient @ self._direction)
        lowest = -slope / (2.0 * (seen.value - before.value - slope))
        self._length *= float(np.clip(lowest, 0.1, 0.5))

    def _aim(self, at: Evaluation) -> None:
        self._direction, self._length, self._tries = self._downhill(at), 1.0, 0
        if float(at.gradient @ self._direction) >= 0.0:
            self._forget()
            self._direction = -at.gradient / at.curvature
        elif self._steps:
            self._length = min(1.0, self.longest / max(float(np.abs(self._direction).max()), TINY))

    def _learn(self, step: Array, change: Array) -> None:
        """Keep a step along which the function curves upwards; others, such as on a saddle, tell nothing of use."""
        if float(step @ change) > 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._steps = [*self._steps, step][-self.memory :]
            self._changes = [*self._changes, change][-self.memory :]

    def _forget(self) -> None:
        self._steps, self._changes = [], []

    def _downhill(self, at: Evaluation) -> Array:
        """Two-loop recursion: minus the gradient, divided by the curvature that metric and memory tell of."""
        pairs = [(step, change, float(step @ change)) for step, change in zip(self._steps, self._changes, strict=True)]
        rest, shares = at.gradient, []
        for step, change, bend in reversed(pairs):
            shares.append(float(step @ rest) / bend)
            rest = rest - shares[-1] * change
        found = rest / at.curvature
        if pairs:
            _, change, bend = pairs[-1]
            found = found * (bend / float(change @ (change / at.curvature)))
        for (step, change, bend), share in zip(pairs, reversed(shares), strict=True):
            found = found + (share - float(change @ found) / bend) * step
        return -found
