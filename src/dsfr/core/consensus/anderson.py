"""Anderson acceleration of a fixed-point iteration, from inner products alone.

An iteration ``x -> T(x)`` leaves a gap ``g = T(x) - x``. Type II acceleration goes on from the combination of past
images ``sum_i a_i T(x_i)``, ``sum_i a_i = 1``, whose combined gap ``|sum_i a_i g_i|`` is smallest (Walker and Ni 2011).
The weights depend on the products ``<g_i, g_j>`` only, and these add over agents: the state itself never leaves them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import Array

REGULARIZATION = 1e-10
"""Relative to unit gaps; keeps weights bounded when gaps are nearly parallel."""


SHORTEST_WAIT = 5
"""Plain steps after a first rejection."""
VANISHING = 1e-140
"""Gaps whose squares can be neither divided by nor distinguished from zero."""
ROUNDING = 1e-9
"""Merits nearer than this, relatively, are equal."""


def anderson_weights(products: Array) -> Array:
    """Weights that sum to 1 and minimise the norm of the combined gap, from the products of all gaps; shape (h,)."""
    sizes = np.sqrt(np.diag(products))
    if not (sizes > VANISHING).all():
        return _newest(len(products))
    cosines = products / np.outer(sizes, sizes)
    weights = np.linalg.solve(cosines + REGULARIZATION * np.eye(len(sizes)), 1.0 / sizes) / sizes
    total = weights.sum()
    return weights / total if np.isfinite(total) and total != 0.0 else _newest(len(products))


@dataclass(frozen=True, slots=True)
class Mixing:
    """State of a safeguarded acceleration.

    A step that makes the gap or the merit larger is rejected: the iteration goes on plainly from the image before it,
    forgets what came earlier, and waits before it accelerates again, twice as long each time. So it cannot do much
    worse than the plain iteration. The merit matters where the problem is not convex: a small gap may be a saddle's.
    While it waits, it goes on with momentum, for as long as that lowers the merit: a saddle is left sooner.
    """

    memory: int
    """Images to combine beyond the newest; 0 is the plain iteration."""
    products: Array
    """Products of the gaps of the images that are kept, oldest first."""
    gap: float = float("inf")
    """Norm of the gap of the last accepted step."""
    merit: float = float("inf")
    """Merit of the last accepted step, a number that the plain iteration lowers."""
    accelerated: bool = False
    """Whether the newest image came from an accelerated state."""
    wait: int = 0
    """Steps to take before combining again."""
    patience: int = SHORTEST_WAIT
    momentum: int = 0
    """Steps in a row that have lowered the merit, while waiting."""

    @classmethod
    def start(cls, memory: int) -> Mixing:
        """Nothing known yet."""
        return cls(memory, np.empty((0, 0)))

    def advance(self, products: Array, merit: float | None = None) -> tuple[Mixing, Array]:
        """The next state and the weights of the images to go on from, oldest first.

        ``products`` are those of the newest gap with older ones and, last, with itself. Without a ``merit`` the gap
        alone decides, and there is no momentum.
        """
        products = products[-len(self.products) - 1 :]
        gap = float(np.sqrt(products[-1]))
        worse = merit is not None and merit > self.merit + ROUNDING * abs(self.merit)
        if self.accelerated and (gap > self.gap or worse):
            waiting = {"wait": self.patience, "patience": 2 * self.patience, "momentum": 0}
            return replace(self, products=np.empty((0, 0)), accelerated=False, **waiting), np.array([1.0, 0.0])
        bordered = np.block([[self.products, products[:-1, None]], [products[None, :-1], products[None, -1:]]])
        kept = bordered[-self.memory - 1 :, -self.memory - 1 :]
        # Gaps that grow while the merit falls lead away from a saddle: what combines them would lead back to it.
        escaping = self.momentum > 0 and gap > self.gap and not worse
        accelerate = self.wait == 0 and len(kept) > 1 and not escaping
        moving = merit is not None and not worse and (self.wait > 0 or escaping)
        momentum = self.momentum + 1 if moving else 0
        weights = anderson_weights(kept) if accelerate else _onwards(len(kept), momentum)
        patience = max(self.patience // 2, SHORTEST_WAIT) if self.accelerated else self.patience
        state = Mixing(self.memory, kept, gap, self.merit if merit is None else merit, accelerate)
        return replace(state, wait=max(self.wait - 1, 0), patience=patience, momentum=momentum), weights


def _onwards(count: int, momentum: int) -> Array:
    """The newest image, and on from it by a growing part of the last step (Nesterov 1983)."""
    weights = _newest(count)
    if count > 1 and momentum > 0:
        weights[-2:] += np.array([-1.0, 1.0]) * momentum / (momentum + 3)
    return weights


def _newest(count: int) -> Array:
    weights = np.zeros(count)
    weights[-1] = 1.0
    return weights
