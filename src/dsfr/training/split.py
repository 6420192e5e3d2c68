"""Rows over agents at random, block by block: it does not matter whether a table is in memory or streamed."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import IntArray, row_blocks
from dsfr.training.shard import Purpose

SPLIT_ROWS = 2**16
"""Rows that are shuffled together."""


def split_block(number: int, n_rows: int, n_agents: int, seed: int) -> IntArray:
    """Owners of the rows of one block of `SPLIT_ROWS` (the last may be shorter): random, and even over all blocks."""
    rng = np.random.default_rng([seed, 0, Purpose.SPLIT, *([number] if number else [])])
    start = number * SPLIT_ROWS
    return rng.permutation(np.arange(start, start + n_rows) % n_agents)


def split_rows(n_rows: int, n_agents: int, seed: int) -> IntArray:
    """Owners of all rows of a table.

    >>> np.bincount(split_rows(100_000, 3, seed=0)).tolist()
    [33334, 33333, 33333]

    Raises
    ------
    ValueError
        If there are more agents than rows.
    """
    check_split(n_rows, n_agents)
    blocks = enumerate(row_blocks(n_rows, SPLIT_ROWS))
    return np.concatenate([split_block(i, block.stop - block.start, n_agents, seed) for i, block in blocks])


def check_split(n_rows: int, n_agents: int) -> None:
    """Refuse more agents than rows."""
    if n_agents > n_rows:
        raise ValueError(f"n_agents={n_agents} must be 1 to n_samples={n_rows}: every agent needs a row")
