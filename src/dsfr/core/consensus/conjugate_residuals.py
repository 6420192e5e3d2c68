"""Preconditioned conjugate residuals with full orthogonalisation, from measured gradients.

The method minimises a quadratic ``F`` with the positive definite matrix ``A``. A preconditioner ``M`` approximates
``A``. The gradient of a quadratic is affine: at ``sum_i a_i z_i`` with ``sum_i a_i = 1`` it is ``sum_i a_i g_i``.
The iterate is the point with the smallest preconditioned residual ``g' M^-1 g`` in the affine hull of all points whose
gradients were measured. The next gradient is measured at the iterate minus ``M^-1 g``.

With a positive definite ``A`` the hull after ``k`` steps is the Krylov space of ``M^-1 A`` of dimension ``k`` at the
start, so the iterates are those of preconditioned MINRES (Paige and Saunders 1975), of conjugate residuals and of GCR
(Eisenstat, Elman and Schultz 1983, theorem 3.1). In exact arithmetic and with no point forgotten:

- ``g' M^-1 g`` falls in every step until it is 0, because ``(M^-1 g)' A (M^-1 g) > 0``;
- it is 0 after as many steps as ``M^-1 A`` has distinct eigenvalues, hence after at most as many as there are weights;
- after ``k`` steps its square root is at most ``2 ((sqrt(c) - 1) / (sqrt(c) + 1))^k`` times that of the start, where
  ``c`` is the condition number of ``R^-T A R^-1`` for ``M = R'R``.

The short recurrences of MINRES lose orthogonality to rounding. A least squares problem by QR orthogonalises against
all stored directions anew in each step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lstsq

from dsfr.core.arrays import Array
from dsfr.core.consensus.preconditioner import Preconditioner

INDEPENDENT = 1e-12
"""A direction is dropped if its change of the gradient is nearer than this to a combination of the others."""


@dataclass(slots=True)
class ConjugateResiduals:
    """The newest measured points and gradients: one more than there are weights, because these span the space."""

    preconditioner: Preconditioner
    points: list[Array] = field(default_factory=list)
    gradients: list[Array] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    """Euclidean norms of the gradients."""

    def add(self, point: Array, gradient: Array) -> None:
        """Store a measured gradient; if there are too many, drop the oldest, but never that of the smallest norm."""
        self.points.append(point)
        self.gradients.append(gradient)
        self.norms.append(float(np.linalg.norm(gradient)))
        if len(self.points) > len(point) + 1:
            oldest = 0 if self._best > 0 else 1
            del self.points[oldest], self.gradients[oldest], self.norms[oldest]

    def clear(self) -> None:
        """Drop all points: the quadratic has changed."""
        self.points.clear()
        self.gradients.clear()
        self.norms.clear()

    def best_measured(self) -> tuple[Array, Array]:
        """The point whose measured gradient has the smallest norm, and that gradient."""
        return self.points[self._best], self.gradients[self._best]

    def iterate(self) -> tuple[Array, Array]:
        """Minimiser of ``g' M^-1 g`` over the affine hull of the points, and its gradient, up to rounding."""
        return self._minimizer(self.preconditioner.residual)

    def smallest_gradient(self) -> tuple[Array, Array]:
        """Minimiser of ``|g|`` over the same hull, and its gradient, up to rounding.

        The stopping rule bounds ``|g|``, so no other point of the hull fulfils it earlier.
        """
        return self._minimizer(lambda gradients: gradients)

    def next_point(self) -> Array:
        """Where to measure next: the iterate minus ``M^-1 g``, which extends the Krylov space by one dimension."""
        point, gradient = self.iterate()
        return point - self.preconditioner.solve(gradient)

    def _minimizer(self, residual: Callable[[Array], Array]) -> tuple[Array, Array]:
        """The point of the affine hull with the smallest Euclidean norm of ``residual(g)``, and its gradient."""
        point, gradient = self.best_measured()
        steps, changes = np.array(self.points).T - point[:, None], np.array(self.gradients).T - gradient[:, None]
        images = residual(changes)
        sizes = np.linalg.norm(images, axis=0)
        moved = sizes > 0.0
        if not moved.any():
            return point, gradient
        scaled = images[:, moved] / sizes[moved]
        found = lstsq(scaled, -residual(gradient), cond=INDEPENDENT, lapack_driver="gelsy", check_finite=False)[0]
        along = found / sizes[moved]
        return point + steps[:, moved] @ along, gradient + changes[:, moved] @ along

    @property
    def _best(self) -> int:
        return int(np.argmin(self.norms))
