"""Hiding labels, so that a labelled table plays one with few of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, IntArray

MAX_PERMUTED = 2**20
"""Of more labels those that stay are drawn without shuffling all of them."""


def hide_labels(y: Any, n_labels: int, rng: np.random.Generator) -> Array:
    """Targets with all but ``n_labels`` of the known ones replaced by NaN, chosen at random.

    >>> hidden = hide_labels([1.0, 2.0, 3.0, float("nan")], 2, np.random.default_rng(0))
    >>> int(np.isfinite(hidden).sum())
    2
    """
    hidden = np.array(y, dtype=np.float64)
    labeled = np.flatnonzero(~np.isnan(hidden))
    visible = np.full_like(hidden, np.nan)
    kept = labeled[kept_labels(len(labeled), n_labels, rng)]
    visible[kept] = hidden[kept]
    return visible


def kept_labels(n_known: int, n_labels: int, rng: np.random.Generator) -> IntArray:
    """Which of the known labels stay, as numbers from 0."""
    if not 1 <= n_labels <= n_known:
        raise ValueError(f"n_labels={n_labels} must be 1 to {n_known}, the number of labelled rows")
    if n_known > MAX_PERMUTED:
        return rng.choice(n_known, n_labels, replace=False, shuffle=False)
    return rng.permutation(n_known)[:n_labels]


def hide_labels_by_agent(y: Any, agents: Any, n_labels: int, rng: np.random.Generator) -> Array:
    """Targets of which ``n_labels`` stay, spread over the agents as evenly as their known ones allow.

    >>> y, agents = np.arange(7.0), np.array([0, 0, 0, 0, 0, 0, 1])
    >>> hidden = hide_labels_by_agent(y, agents, 4, np.random.default_rng(0))
    >>> [int(np.isfinite(hidden[agents == agent]).sum()) for agent in (0, 1)]
    [3, 1]
    """
    targets, owners = np.array(y, dtype=np.float64), np.asarray(agents)
    if targets.shape != owners.shape:
        raise ValueError(f"agents has {len(owners)} entries for {len(targets)} rows: give the owner of every row")
    names, position = np.unique(owners, return_inverse=True)
    known = np.bincount(position[~np.isnan(targets)], minlength=len(names))
    if not 1 <= n_labels <= known.sum():
        raise ValueError(f"n_labels={n_labels} must be 1 to {known.sum()}, the number of labelled rows")
    hidden = np.full_like(targets, np.nan)
    for agent, share in enumerate(_even_shares(known, n_labels)):
        if share:
            hidden[position == agent] = hide_labels(targets[position == agent], share, rng)
    return hidden


def _even_shares(available: npt.NDArray[np.int64], total: int) -> list[int]:
    """Shares that add up to ``total``, none above what is available, the smallest as large as possible."""
    shares = np.zeros_like(available)
    for _ in range(total):
        open_agents = np.flatnonzero(shares < available)
        shares[open_agents[int(np.argmin(shares[open_agents]))]] += 1
    return [int(share) for share in shares]
