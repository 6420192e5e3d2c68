"""Samples of rows for means over rows: which rows belong to them follows from their values alone.

So order of rows and agents do not matter, and agents need not agree on anything but the share.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.duplicates import row_hashes

SAMPLE_ROWS = 50_000
"""Rows of all agents from which means over rows are estimated: their relative error is about 1/200."""


def sample_share(n_samples: float) -> float:
    """Share of so many rows that means are taken of."""
    return min(1.0, SAMPLE_ROWS / n_samples)


def sampled(X: Array, share: float) -> Array:
    """Rows of a sample that holds about this share of all different rows."""
    if share >= 1.0:
        return X
    chosen: Array = X[in_sample(X, share)]
    return chosen


def in_sample(X: Array, share: float) -> npt.NDArray[np.bool_]:
    """Whether each row belongs to the sample."""
    if share >= 1.0:
        return np.ones(len(X), dtype=np.bool_)
    chosen: npt.NDArray[np.bool_] = row_hashes(X) < np.uint64(share * 2.0**64)
    return chosen
