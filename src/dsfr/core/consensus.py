"""Consensus ADMM: what an agent does in a round, what the coordinator makes of the sums, and when to stop.

Both problems share one form: every agent holds a copy of a variable, a consensus is agreed, and a dual per agent pulls
the copies together. Duals are unscaled, as in the paper (``lambda_s`` and ``beta_l``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clusters import ClusterSums
from dsfr.core.linear import solve_factored


@dataclass(frozen=True, slots=True)
class RoundInfo:
    """What a person wants to know of one round of training."""

    stage: str
    """``"clusters"`` or ``"weights"``."""
    round: int
    objective: float
    """Value of the objective at the shared variables this round began with (for DFCM: at the agents' own centers)."""
    primal_residual: float
    """Norm of the differences between the agents' copies and the consensus; 0 where agents share sums."""
    dual_residual: float
    """Penalty times the change of the consensus, times the square root of the number of agents."""
    error_bound: float
    """Weights: upper bound of the relative distance to the solution. Clusters: largest move of a center coordinate."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One agent's copy of the shared variable, and its dual."""

    value: Array
    dual: Array

    def ascend(self, consensus: Array, penalty: float) -> Copy:
        """Dual step, paper eq. (25) and (35)."""
        return Copy(self.value, self.dual + penalty * (self.value - consensus))

    def primal_square(self, consensus: Array) -> float:
        """Squared distance to the consensus: an agent's part of the primal residual."""
        return float(np.sum((self.value - consensus) ** 2))


def local_centers(copy: Copy, sums: ClusterSums, consensus: Array, penalty: float) -> Copy:
    """DFCM's local step, paper eq. (26): centers from the agent's sums, held back towards the consensus."""
    numerator = sums.total - copy.dual + penalty * consensus
    return Copy(numerator / (sums.mass + penalty)[:, None], copy.dual)


def local_weights(copy: Copy, factor: Array, moment: Array, consensus: Array, penalty: float) -> Copy:
    """DICR's local step, paper eq. (36), with the Cholesky factor of ``A_l + penalty I``.

    Deviates from eq. (37), which prints ``mu I``: the derivation from eq. (32) gives ``rho_p I``; see docs/adr/0005.
    """
    return Copy(solve_factored(factor, moment + penalty * consensus - copy.dual), copy.dual)


def consensus_of(proposals: Array, n_agents: int, penalty: float, ridge: float = 0.0) -> Array:
    """Consensus from ``sum_l (dual_l + penalty value_l)``, paper eq. (27) (ridge 0) and (38)."""
    return proposals / (ridge + penalty * n_agents)


def dual_residual(consensus: Array, previous: Array, n_agents: int, penalty: float) -> float:
    """Boyd et al. 2011, section 7.1: the dual residual with its square root of the number of agents."""
    return float(penalty * np.sqrt(n_agents) * np.linalg.norm(consensus - previous))


def stalled(residuals: Sequence[float], window: int = 20) -> bool:
    """Whether the best of the last ``window`` residuals is no better than that of the window before.

    ADMM on a problem that is not convex can circle for ever when its penalty is too small, as fuzzy c-means does over
    agents with few rows each. Slow but sure convergence gains more than 5% in a window.
    """
    if len(residuals) < 2 * window or len(residuals) % window:
        return False
    return min(residuals[-window:]) > 0.95 * min(residuals[-2 * window : -window])


def residuals_within(
    primal: float, dual: float, *, copies_norm: float, duals_norm: float, size: int, tol: float
) -> bool:
    """Stopping rule of Boyd et al. 2011, section 3.3.1, with ``tol`` as absolute and relative tolerance.

    ``size`` counts the entries of all copies together; ``copies_norm`` and ``duals_norm`` are norms of all stacked.
    """
    absolute = tol * float(np.sqrt(size))
    return primal <= absolute + tol * copies_norm and dual <= absolute + tol * duals_norm


SMALL_WEIGHTS = 1e-6
"""For targets of deviation 1, weights of a smaller norm are as good as zero, and no measure for an error."""


def relative_error_bound(gradient: Array, weights: Array, ridge: float) -> float:
    """Upper bound of ``|w - w*| / |w|``: the objective is strongly convex with modulus ``ridge``."""
    return float(np.linalg.norm(gradient)) / ridge / max(float(np.linalg.norm(weights)), SMALL_WEIGHTS)
