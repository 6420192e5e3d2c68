"""Samples of rows for means over rows: which rows belong to them follows from their values alone.

So order of rows and agents do not matter, and agents need not agree on anything but the share. Equal rows are all in a
sample or none is: what counts is the number of different rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.duplicates import row_hashes
from dsfr.core.threads import each_chunk

SAMPLE_ROWS = 50_000
"""Different rows of all agents from which means over rows are estimated, at least: their relative error is about
1/200 at most."""


def effective_rows(n_samples: float, equal_pairs: float) -> float:
    """Number of different rows that are worth as much in a sample; ``n / m`` rows each of m kinds are worth m."""
    return n_samples**2 / max(n_samples + 2.0 * equal_pairs, 1.0)


def sample_share(n_different: float) -> float:
    """Share of so many different rows that means are taken of: a power of two, for which about as many do not matter.

    >>> sample_share(60_000.0), sample_share(1_000_000.0)
    (1.0, 0.0625)
    """
    return float(2.0 ** -np.floor(np.log2(max(n_different / SAMPLE_ROWS, 1.0))))


def highest_hash(share: float) -> np.uint64:
    """Hashes of the rows of a sample of this share are below it."""
    return np.uint64(share * 2.0**64)


def in_sample(X: Array, highest: np.uint64) -> npt.NDArray[np.bool_]:
    """Which rows belong to a sample; (n,)."""
    parts = each_chunk(lambda chunk: row_hashes(X[chunk]) < highest, len(X))
    return np.concatenate([np.empty(0, dtype=bool), *parts])
