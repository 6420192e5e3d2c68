"""Noise of differential privacy on summed products of bounded rows.

A row enters a sum as the matrix ``v v'`` of a vector of length at most ``B``. Replacing one row changes the sum by at
most ``sqrt(2) B^2`` in the Frobenius norm. Symmetric Gaussian noise of deviation ``s`` on the diagonal and
``s / sqrt(2)`` beside it has the ratio ``mu = sqrt(2) B^2 / s``; ratios of several sums add up in squares, whatever was
asked next, and ``mu`` in all is ``(epsilon, delta)``-private where ``delta(epsilon)`` is as in `delta_of` (Balle and
Wang, 2018; Dong, Roth and Su, 2022). That is exact, so nothing is lost by not tracking more than ``mu``.

Numbers are whole multiples of a step, and noise is a discrete Gaussian from the system's random numbers (Canonne,
Kamath and Steinke, 2020): floating-point noise would show in its last bits what it was added to.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, ndtr

from dsfr.core.arrays import Array

STEPS = 2**20
"""Steps in a deviation of the noise, at least. Sums of discrete Gaussians this wide are ones, to any number that a
computer can tell from 0 (Kairouz, Liu and Steinke, 2021)."""
Below = Callable[[int], int]
"""A whole random number from 0 to below another."""


def delta_of(epsilon: float, mu: float) -> float:
    """The smallest delta for which noise of this ratio is private with this epsilon."""
    return float(ndtr(mu / 2.0 - epsilon / mu) - np.exp(epsilon + log_ndtr(-mu / 2.0 - epsilon / mu)))


def mu_of(epsilon: float, delta: float) -> float:
    """The largest ratio of sensitivity to noise that is private with these numbers, by bisection."""
    low, high = 0.0, 1.0
    while delta_of(epsilon, high) <= delta:
        low, high = high, 2.0 * high
    for _ in range(100):
        middle = (low + high) / 2.0
        if middle > 0.0 and delta_of(epsilon, middle) <= delta:
            low = middle
        else:
            high = middle
    return low


def honest_owners(n_owners: int) -> int:
    """Owners whose shares of the noise are enough: more than half of all."""
    return n_owners // 2 + 1


def noisy_triangle(
    products: Array, bound: float, mu: float, n_owners: int, below: Below = secrets.randbelow
) -> tuple[Array, float]:
    """One owner's sum with its share of the noise, and the variance of the share.

    Parameters
    ----------
    products : array of shape (m(m+1)/2,)
        Upper triangle of the sum of ``v v'``, row by row.
    bound : float
        Largest ``v'v``.
    mu : float
        Ratio of sensitivity to the noise of the sum over all owners.
    n_owners : int
        Owners in the sum.
    below : callable
        Random numbers.
    """
    size = int(np.sqrt(2 * len(products)))
    on_diagonal = np.equal(*np.triu_indices(size))
    share = 1.0 / math.sqrt(honest_owners(n_owners))
    step = 2.0 ** math.floor(math.log2(math.sqrt(2.0) * bound / mu * share / math.sqrt(2.0) / STEPS))
    # Rounding moves every number by half a step at most, in the sum with a row and in that with another.
    deviation = (math.sqrt(2.0) * bound + size * step) / mu * share
    whole = [round(value / step) for value in products.tolist()]
    variances = [math.ceil((deviation / step) ** 2 / (1 if diagonal else 2)) for diagonal in on_diagonal]
    noisy = [number + discrete_gaussian(variance, below) for number, variance in zip(whole, variances, strict=True)]
    return np.array([number * step for number in noisy]), deviation**2


def discrete_gaussian(variance: int, below: Below = secrets.randbelow) -> int:
    """A whole number with probability in proportion to ``exp(-k^2 / (2 variance))``, exactly."""
    scale = math.isqrt(variance) + 1
    while True:
        drawn = _discrete_laplace(scale, below)
        if _bernoulli_exp((abs(drawn) * scale - variance) ** 2, 2 * variance * scale**2, below):
            return drawn


def _discrete_laplace(scale: int, below: Below) -> int:
    """A whole number with probability in proportion to ``exp(-|k| / scale)``."""
    while True:
        rest = below(scale)
        if not _bernoulli_exp(rest, scale, below):
            continue
        times = 0
        while _bernoulli_exp(1, 1, below):
            times += 1
        size, is_negative = rest + scale * times, below(2)
        if not (is_negative and size == 0):
            return -size if is_negative else size


def _bernoulli_exp(numerator: int, denominator: int, below: Below) -> bool:
    """True with probability ``exp(-numerator / denominator)``."""
    while numerator > denominator:
        if not _bernoulli_exp(1, 1, below):
            return False
        numerator -= denominator
    tries = 1
    while below(denominator * tries) < numerator:
        tries += 1
    return tries % 2 == 1
