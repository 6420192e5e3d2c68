"""The paper's artificial data set."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array

N_FEATURES = 8
NOISY_SHARES = (0.05, 0.10)
"""Shares of the rows that get the small and the large noise."""
NOISE_MEANS = (0.1, 1.0)
"""Means of both noises, in units of the range of the clean targets; their deviation is a tenth of that range."""


def make_artificial(n_rows: int = 5000, *, noise: bool = True, seed: int = 0) -> tuple[Array, Array]:
    """Features and targets as section V of the paper describes them.

    ``y = 0.3 sum x_j^2 + 0.7 sum cos x_j`` with ``x_j ~ N(0.5 (j - 1), (0.2 j)^2)``. The paper's range "R = max(X) -
    min(X)" is that of the targets. The rows with small and with large noise are drawn without overlap; training and
    test targets are noisy alike.

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
    unit = float(np.ptp(y))
    noisy, rows, start = y.copy(), rng.permutation(len(y)), 0
    for share, mean in zip(NOISY_SHARES, NOISE_MEANS, strict=True):
        chosen = rows[start : start + round(share * len(y))]
        noisy[chosen] += rng.normal(mean * unit, 0.1 * unit, len(chosen))
        start += len(chosen)
    return noisy
