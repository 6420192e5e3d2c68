"""Consensus ADMM: what an agent does in a round, what the coordinator makes of the sums, and when to stop.

Every agent holds a copy of a variable (its centers ``m^l``, its weights ``w^l``) and a dual; a consensus ``z`` is
agreed. All that an agent must remember is its state ``x = z + dual / penalty``: copies and duals of the paper follow
from it, the consensus needs the sum of the states alone, and a round is a fixed-point map ``x -> x + (copy - z)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.clustering.fuzzy_c_means import ClusterSums
from dsfr.core.solve.cholesky import cholesky, solve_factored


@dataclass(frozen=True, slots=True)
class RoundInfo:
    """What a person wants to know of one round of training."""

    stage: str
    """``"clusters"`` or ``"weights"``."""
    round: int
    objective: float
    """Value of the objective at the consensus this round began with (for DFCM: at the agents' own centers)."""
    primal_residual: float
    """Distance of the agents' copies from the consensus they were made from; 0 where agents share sums."""
    dual_residual: float
    """Penalty times the change of the consensus, times the square root of the number of agents."""
    error_bound: float
    """Weights: bound of the relative distance to the solution. Clusters: how far a pooled step moves a center, or how
    far agents are apart."""
    base: int = 0
    """Which of several rule bases it belongs to, counted from 0."""


def local_centers(sums: ClusterSums, consensus: Array, state: Array, penalty: float) -> Array:
    """DFCM's local step, paper eq. (26): centers from the agent's sums, held back towards the consensus."""
    return (sums.total + penalty * (2.0 * consensus - state)) / (sums.mass + penalty)[:, None]


def local_weights(factor: Array, moment: Array, pull: Array) -> Array:
    """DICR's local step, paper eq. (36), with the Cholesky factor of ``A_l + penalty M`` for the preconditioner ``M``.

    ``pull`` is ``penalty M (2 consensus - state)``. In the paper ``M`` is the identity. Deviates from eq. (37), which
    prints ``mu I``: the derivation from eq. (32) gives ``rho_p I``; see docs/adr/0005.
    """
    return solve_factored(factor, moment + pull)


@dataclass(slots=True)
class RidgeConsensus:
    """Consensus from the sum of all states, paper eq. (38), where the ridge may be any quadratic form."""

    ridge: Array
    """Its matrix."""
    _made_for: tuple[int, float] = (0, 0.0)
    _factor: Array = field(default_factory=lambda: np.empty((0, 0)))

    def of(self, state_sum: Array, n_agents: int, penalty: float) -> Array:
        """The consensus; the factor of its system is kept for as long as it serves."""
        if self._made_for != (n_agents, penalty):
            self._factor = cholesky(self.ridge + n_agents * penalty * np.eye(len(state_sum)))
            self._made_for = (n_agents, penalty)
        return solve_factored(self._factor, penalty * state_sum)


def rescaled(state: Array, consensus: Array, ratio: float) -> Array:
    """The state under another penalty (``ratio`` = old / new): the dual stays, and so does the consensus."""
    return consensus + ratio * (state - consensus)


def curvature_penalty(size: float, mean: float) -> float:
    """Penalty for quadratics of such curvature, in coordinates in which most directions are curved about alike.

    ``size`` is the Frobenius norm of the curvature, ``mean`` the mean of its eigenvalues. For one quadratic with
    eigenvalues in ``[a, b]`` the rate of ADMM is best at ``sqrt(ab)`` (Ghadimi et al. 2015). Agents differ: those with
    few rows are curved strongly in few directions, which the size shows. The factor is measured, see docs/adr/0008.
    """
    return float(np.sqrt(size * mean)) / 3.0


def spectral_penalty(largest: float, smallest: float, ridge: float, n_agents: int) -> float:
    """Penalty in plain coordinates: between the extreme curvatures of a problem that carries its share of the ridge."""
    return float(np.sqrt(largest * (smallest + ridge / n_agents)))


def balanced_penalty(penalty: float, primal: float, dual: float) -> float:
    """Residual balancing, Boyd et al. 2011, section 3.4.1: double or halve when one residual is ten times the other."""
    if primal > 10.0 * dual:
        return 2.0 * penalty
    if dual > 10.0 * primal:
        return penalty / 2.0
    return penalty


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


SMALL_WEIGHTS = 1e-6
"""For targets of deviation 1, weights of a smaller norm are as good as zero, and no measure for an error."""


def relative_error_bound(gradient: Array, weights: Array, ridge: float) -> float:
    """Upper bound of ``|w - w*| / |w|``: the objective is strongly convex with modulus ``ridge``."""
    return float(np.linalg.norm(gradient)) / ridge / max(float(np.linalg.norm(weights)), SMALL_WEIGHTS)
