"""The paper's stopping tests (30) and (31): squared differences of iterates, the largest over agents and clusters."""

from __future__ import annotations

from dsfr.core.arrays import Array


def largest_disagreement(copies: Array) -> float:
    """Largest ``|m_k^l - m_k^q|^2`` over pairs of agents and clusters, paper eq. (30); copies have shape (l, k, d)."""
    return max((_largest_square(copies[position + 1 :] - own) for position, own in enumerate(copies)), default=0.0)


def largest_dual_change(copies: Array, consensus: Array, penalty: float) -> float:
    """Largest ``|lambda_k^l(t) - lambda_k^l(t-1)|^2`` over agents and clusters, paper eq. (31).

    A round changes the dual of an agent by the penalty times the distance of its copy from the consensus, eq. (25).
    """
    return _largest_square(penalty * (copies - consensus))


def _largest_square(differences: Array) -> float:
    return float((differences**2).sum(axis=-1).max(initial=0.0))
