"""The best combination of points at which the gradient of a quadratic is known.

The gradient of a quadratic is affine: at ``sum_i a_i z_i`` with ``sum_i a_i = 1`` it is ``sum_i a_i g_i``. So points
that an iteration has tried tell where, in all that they span, the gradient is smallest. If there are ``p`` weights,
``p + 1`` points in general position tell the solution, whatever the iteration and however many agents there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lstsq

from dsfr.core.arrays import Array

INDEPENDENT = 1e-12
"""Directions whose changes of the gradient are nearer than this to a combination of others tell nothing."""


@dataclass(slots=True)
class Span:
    """The newest points and their gradients, and of all points the one with the smallest gradient."""

    capacity: int
    points: list[Array] = field(default_factory=list)
    gradients: list[Array] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    """Norms of the gradients."""

    def add(self, point: Array, gradient: Array) -> None:
        """Take note; beyond the capacity the oldest goes, but never the best."""
        self.points.append(point)
        self.gradients.append(gradient)
        self.sizes.append(float(np.linalg.norm(gradient)))
        if len(self.points) > self.capacity:
            oldest = 0 if self._best > 0 else 1
            del self.points[oldest], self.gradients[oldest], self.sizes[oldest]

    def clear(self) -> None:
        """Forget all: the quadratic has changed."""
        self.points.clear()
        self.gradients.clear()
        self.sizes.clear()

    def best(self) -> tuple[Array, Array]:
        """The point with the smallest gradient, and that gradient."""
        return self.points[self._best], self.gradients[self._best]

    def extrapolated(self) -> tuple[Array, Array]:
        """The combination with the smallest gradient, and the gradient to expect there, up to rounding."""
        point, gradient = self.best()
        steps, changes = np.array(self.points) - point, np.array(self.gradients) - gradient
        sizes = np.linalg.norm(changes, axis=1)
        steps, changes = (steps[sizes > 0.0].T / sizes[sizes > 0.0], changes[sizes > 0.0].T / sizes[sizes > 0.0])
        if changes.shape[1] == 0:
            return point, gradient
        along = lstsq(changes, -gradient, cond=INDEPENDENT, lapack_driver="gelsy", check_finite=False)[0]
        return point + steps @ along, gradient + changes @ along

    @property
    def _best(self) -> int:
        return int(np.argmin(self.sizes))
