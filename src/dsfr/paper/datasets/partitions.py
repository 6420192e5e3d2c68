"""Partitions of rows between agents: random, or with a different distribution for every agent.

Every function returns the number of an agent for every row; every agent has at least one row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.clustering.fuzzy_c_means import fuzzy_c_means, seed_centers
from dsfr.core.clustering.memberships import squared_distances
from dsfr.core.scaling.affine import Ranges, scale_features


def split_evenly(n_rows: int, n_agents: int, rng: np.random.Generator) -> IntArray:
    """Divide rows at random into parts of equal size, up to one row.

    >>> np.bincount(split_evenly(7, 3, np.random.default_rng(0))).tolist()
    [3, 2, 2]
    """
    _check_count(n_agents, n_rows)
    return rng.permutation(np.arange(n_rows) % n_agents)


def split_by_column(values: Any, n_agents: int | None = None) -> IntArray:
    """Divide rows by the value of a column: rows of equal value have the same agent.

    Without ``n_agents`` every distinct value has its own agent; with it, agents own consecutive ranges of the sorted
    values, of sizes as equal as ties allow.

    >>> split_by_column(["north", "south", "north"]).tolist()
    [0, 1, 0]
    >>> split_by_column([1.0, 9.0, 2.0, 8.0], n_agents=2).tolist()
    [0, 1, 0, 1]
    """
    distinct, rank, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    if n_agents is None:
        return np.asarray(rank, dtype=np.int64)
    if not 1 <= n_agents <= len(distinct):
        raise ValueError(
            f"n_agents={n_agents} must be 1 to {len(distinct)}, the number of distinct values: rows of equal value "
            "have the same agent. Use fewer agents or another column."
        )
    return np.asarray(_consecutive(counts, n_agents)[rank], dtype=np.int64)


def split_by_cluster(X: Any, n_agents: int, rng: np.random.Generator) -> IntArray:
    """Divide rows by cluster: each agent owns one region of the feature space.

    >>> X = [[0.0], [0.1], [5.0], [5.1]]
    >>> owners = split_by_cluster(X, 2, np.random.default_rng(0))
    >>> bool(owners[0] == owners[1] and owners[2] == owners[3] and owners[0] != owners[2])
    True
    """
    rows: Array = np.asarray(X, dtype=np.float64)
    _check_count(n_agents, len(rows))
    scaled = scale_features(rows, Ranges.of(rows))
    centers = fuzzy_c_means(scaled, seed_centers(scaled, n_agents, rng), fuzzifier=1.1, tol=1e-4, max_rounds=300)
    distances = squared_distances(scaled, centers)
    owners = distances.argmin(axis=1)
    return _without_empty(owners, n_agents, distances)


def split_by_dirichlet(n_rows: int, n_agents: int, concentration: float, rng: np.random.Generator) -> IntArray:
    """Divide rows by shares drawn from ``Dirichlet(concentration, ...)``; a small value gives few agents most rows.

    >>> owners = split_by_dirichlet(1000, 4, 0.5, np.random.default_rng(0))
    >>> sorted(np.bincount(owners).tolist())[0] >= 1, len(owners)
    (True, 1000)
    """
    _check_count(n_agents, n_rows)
    if not 0.0 < concentration < np.inf:
        raise ValueError(f"concentration={concentration} must be a number > 0; 0.5 is very uneven, 10 almost even")
    shares = rng.dirichlet(np.full(n_agents, concentration))
    free = n_rows - n_agents
    sizes = 1 + np.floor(shares * free).astype(np.int64)
    sizes[: n_rows - sizes.sum()] += 1
    return rng.permutation(np.repeat(np.arange(n_agents), sizes))


def _consecutive(counts: IntArray, n_agents: int) -> IntArray:
    """Agent of each of the sorted values; an agent takes values until it has its share of the rows."""
    owners, agent, seen = np.zeros_like(counts), 0, 0
    for value, count in enumerate(counts):
        full = seen >= counts.sum() * (agent + 1) / n_agents
        scarce = len(counts) - value <= n_agents - 1 - agent
        if agent < n_agents - 1 and (full or scarce):
            agent += 1
        owners[value] = agent
        seen += count
    return owners


def _check_count(n_agents: int, n_rows: int) -> None:
    if not 1 <= n_agents <= n_rows:
        raise ValueError(f"n_agents={n_agents} must be 1 to n_samples={n_rows}: every agent needs a row")


def _without_empty(owners: IntArray, n_agents: int, distances: Array) -> IntArray:
    """Give each agent without rows the row nearest to its center, taken from an agent with several rows."""
    for agent in range(n_agents):
        if not (owners == agent).any():
            sizes = np.bincount(owners, minlength=n_agents)
            spare = np.flatnonzero(sizes[owners] > 1)
            owners[spare[distances[spare, agent].argmin()]] = agent
    return owners
