"""Decentralised ADMM (Shi et al. 2014): every agent has its own copy, and neighbors pull each other's copies together.

Agent ``l`` with links to ``N_l`` holds a copy ``x`` and a dual ``a`` of the problem ``min sum_l f_l(x_l)`` with equal
copies on both ends of every link. In a round it learns the sum ``s`` of its neighbors' copies, and takes

``a += c (d x - s)``, then ``x = argmin f_l(x) + a'x + c sum_j |x - (x_l + x_j) / 2|^2``,

with ``d`` its number of links. Nobody adds up over all agents; duals always sum to zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import Array


@dataclass(frozen=True, slots=True)
class Copy:
    """An agent's copy of what is to be agreed."""

    value: Array
    dual: Array
    around: Array
    """``d x + s`` of the round before: at rest it does not change."""

    def pulled(self, neighbor_sum: Array, n_links: int, penalty: float) -> tuple[Copy, Array]:
        """The copy with its new dual, and the linear term ``c (d x + s) - a`` of its next step."""
        dual = self.dual + penalty * (n_links * self.value - neighbor_sum)
        around = n_links * self.value + neighbor_sum
        return replace(self, dual=dual, around=around), penalty * around - dual

    def unrest(self, neighbor_sum: Array, n_links: int, penalty: float) -> tuple[Array, Array]:
        """How far the copy is from optimal given its dual, and how far from the neighbors' mean; elementwise."""
        gradient = np.abs(penalty * (n_links * self.value + neighbor_sum - self.around))
        apart = np.abs(self.value - neighbor_sum / max(n_links, 1))
        return gradient, apart * (n_links > 0)


def link_penalty(curvature: float, links_per_agent: float, diameter: int) -> float:
    """Penalty of a link for problems of a typical curvature: more in graphs that news takes long to cross.

    The growth with the diameter is by experiment, on averaging over rings, grids and random graphs of 5 to 100 agents.
    """
    return curvature * max(1.0, diameter / 4.0) / max(links_per_agent, 1.0)


def average_step(own: Array, pull: Array, n_links: int, penalty: float) -> Array:
    """Next copy of a mean: ``f_l(x) = 1/2 |x - own|^2``."""
    return (own + pull) / (1.0 + 2.0 * penalty * n_links)
