"""L-BFGS with a diagonal preconditioner that may change from point to point, one evaluation at a time.

A step of fuzzy c-means is the gradient divided by the masses of the clusters. It ignores that memberships depend on the
centers, and converges slowly where they do so strongly, and near saddles. Preconditioned by the masses, L-BFGS starts
with that step and adds curvature information from earlier gradients (Nocedal and Wright 2006, section 7.2).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dsfr.core.arrays import Array

ARMIJO = 1e-4
"""Armijo constant: required decrease relative to the decrease that the slope predicts."""
ROUNDING = 1e-12
"""Relative difference below which values count as equal."""
TINY = float(np.finfo(np.float64).tiny)
MAX_BACKTRACKS = 6
"""Rejected steps along one direction before the memory is cleared."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Value and gradient of the function at a point."""

    point: Array
    value: float
    gradient: Array
    curvature: Array
    """Diagonal preconditioner: a plain step is ``-gradient / curvature``, and never increases the value."""


@dataclass(slots=True)
class LBFGS:
    """L-BFGS with backtracking; the caller evaluates the function."""

    memory: int
    """Number of correction pairs."""
    max_step: float = float("inf")
    """Largest change of a coordinate in one step; plain steps are not limited."""
    _accepted: Evaluation | None = None
    _direction: Array = field(default_factory=lambda: np.empty(0))
    _length: float = 1.0
    _tries: int = 0
    _steps: list[Array] = field(default_factory=list)
    _changes: list[Array] = field(default_factory=list)

    def restart(self) -> None:
        """Clear all state: the function has changed."""
        self._accepted = None
        self._clear_memory()

    def advance(self, seen: Evaluation) -> Array:
        """The next point to evaluate, given the evaluation of the previous one."""
        if self._rejects(seen):
            self._backtrack(seen)
        else:
            self._accept(seen)
        assert self._accepted is not None
        return self._accepted.point + self._length * self._direction

    def _rejects(self, seen: Evaluation) -> bool:
        if self._accepted is None or not self._steps:
            return False  # plain steps never increase the value
        before = self._accepted
        predicted = self._length * float(before.gradient @ self._direction)
        return seen.value > before.value + ARMIJO * predicted + ROUNDING * abs(before.value)

    def _accept(self, seen: Evaluation) -> None:
        if self._accepted is not None:
            self._store(seen.point - self._accepted.point, seen.gradient - self._accepted.gradient)
        self._accepted = seen
        self._set_direction(seen)

    def _backtrack(self, seen: Evaluation) -> None:
        """Backtrack to the minimum of the interpolating parabola; after `MAX_BACKTRACKS`, take a plain step."""
        before = self._accepted
        assert before is not None
        self._tries += 1
        if self._tries == MAX_BACKTRACKS:
            self._clear_memory()
            self._set_direction(before)
            return
        slope = self._length * float(before.gradient @ self._direction)
        lowest = -slope / (2.0 * (seen.value - before.value - slope))
        self._length *= float(np.clip(lowest, 0.1, 0.5))

    def _set_direction(self, at: Evaluation) -> None:
        self._direction, self._length, self._tries = self._direction_at(at), 1.0, 0
        if float(at.gradient @ self._direction) >= 0.0:
            self._clear_memory()
            self._direction = -at.gradient / at.curvature
        elif self._steps:
            self._length = min(1.0, self.max_step / max(float(np.abs(self._direction).max()), TINY))

    def _store(self, step: Array, change: Array) -> None:
        """Store the correction pair if its curvature is positive; near saddles it is not."""
        if float(step @ change) > 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self._steps = [*self._steps, step][-self.memory :]
            self._changes = [*self._changes, change][-self.memory :]

    def _clear_memory(self) -> None:
        self._steps, self._changes = [], []

    def _direction_at(self, at: Evaluation) -> Array:
        """Search direction by the two-loop recursion."""
        pairs = [(step, change, float(step @ change)) for step, change in zip(self._steps, self._changes, strict=True)]
        rest, shares = at.gradient, []
        for step, change, curvature in reversed(pairs):
            shares.append(float(step @ rest) / curvature)
            rest = rest - shares[-1] * change
        found = rest / at.curvature
        if pairs:
            _, change, curvature = pairs[-1]
            found = found * (curvature / float(change @ (change / at.curvature)))
        for (step, change, curvature), share in zip(pairs, reversed(shares), strict=True):
            found = found + (share - float(change @ found) / curvature) * step
        return -found
