"""The paper's artificial data set."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array

N_FEATURES = 8
NOISY_SHARES = (0.05, 0.10)
"""Shares of the rows with small and with large noise."""
NOISE_MEANS = (0.1, 1.0)
"""Means of both noises in units of the range of the noiseless targets; their standard deviation is 0.1 of it."""


def make_artificial(n_rows: int = 5000, *, noise: bool = True, seed: int = 0) -> tuple[Array, Array]:
    """Features and targets of the artificial data set of section V of the paper.

    ``y = 0.3 sum x_j^2 + 0.7 sum cos x_j`` with ``x_j ~ N(0.5 (j - 1), (0.2 j)^2)``. The paper's range "R = max(X) -
    min(X)" is read as the range of the targets. No row has both small and large noise. Training and test targets have
    the same noise.

    >>> X, y = make_artificial(1000)
    >>> X.shape, int((y != make_artificial(1000, noise=False)[1]).sum())
    ((1000, 8), 150)
    """
    if n_rows < 1:
        raise ValueError(f"n_rows={n_rows} must be a whole number >= 1; the paper has 5000")
    rng = np.random.default_rng(seed)
    order = np.arange(N_FEATURES)
    X = rng.normal(0.5 * order, 0.2 * (order + 1), (n_rows, N_FEATURES))
    y = 0.3 * (X**2).sum(axis=1) + 0.7 * np.cos(X).sum(axis=1)
    return X, _with_noise(y, rng) if noise else y


def _with_noise(y: Array, rng: np.random.Generator) -> Array:
    target_range = float(np.ptp(y))
    noisy, rows, start = y.copy(), rng.permutation(len(y)), 0
    for share, mean in zip(NOISY_SHARES, NOISE_MEANS, strict=True):
        chosen = rows[start : start + round(share * len(y))]
        noisy[chosen] += rng.normal(mean * target_range, 0.1 * target_range, len(chosen))
        start += len(chosen)
    return noisy
