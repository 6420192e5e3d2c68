"""Finite-time consensus: the polynomial of a graph's Laplacian that turns contributions into their sum.

The Laplacian ``L`` of a connected graph has the eigenvalue 0 once, with constant eigenvectors. A polynomial ``g`` that
vanishes at all other eigenvalues maps every vector to a constant one: ``n / g(0) g(L) x`` is the sum of ``x``, at every
agent (Sundaram and Hadjicostis 2007; Sandryhaila, Kar and Moura 2014). Horner's rule takes one exchange with the
neighbors per degree; the least degree is the number of distinct eigenvalues that are not 0: half the agents of a ring,
2 in a star, 1 in a complete graph, never more than the number of agents less one.

All is done modulo the primes of `dsfr.engines.gossip.residues`, where ``g`` is the minimal polynomial of a sequence
``u'L^k v`` (Wiedemann 1986) and found by the algorithm of Berlekamp and Massey.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dsfr.engines.contract import EngineError
from dsfr.engines.gossip.residues import MODULI, PRIMES, Residues


@dataclass(frozen=True, slots=True)
class SumPolynomial:
    """Coefficients, highest degree first, of the polynomial of the Laplacian that sums; by prime."""

    coefficients: Residues
    """Shape (len(PRIMES), degree + 1)."""

    @property
    def degree(self) -> int:
        """Exchanges that a sum takes."""
        return int(self.coefficients.shape[1]) - 1

    def horner(self, k: int, own: Residues, laplacian: Residues | int) -> Residues:
        """Value after exchange ``k``; ``laplacian`` is ``L`` times the value before it (0 for ``k = 0``)."""
        value: Residues = (laplacian + self.coefficients[:, k : k + 1] * own % MODULI) % MODULI
        return value


def sum_polynomial(links: Mapping[str, Sequence[str]]) -> SumPolynomial:
    """The polynomial of least degree for a connected graph; all agents find the same.

    Raises
    ------
    EngineError
        If the sums of a random vector do not come out, because the graph is not connected.
    """
    laplacian = _Laplacian.of(links)
    n = len(links)
    if n == 1:
        return SumPolynomial(np.ones((len(PRIMES), 1), dtype=np.int64))
    rng = np.random.default_rng(0)
    u, v = (rng.integers(1, 2**31 - 100, (len(PRIMES), n)) for _ in range(2))
    sequence = np.empty((len(PRIMES), 2 * n), dtype=np.int64)
    for k in range(2 * n):
        v = laplacian.times(v)  # the first step takes the eigenvalue 0 out
        sequence[:, k] = (u * v % MODULI).sum(axis=1) % PRIMES
    found = [_minimal_polynomial(terms, int(prime)) for terms, prime in zip(sequence, PRIMES, strict=True)]
    degree = max(map(len, found)) - 1
    padded = [
        np.pad(_normalized(g, n, int(prime)), (degree + 1 - len(g), 0)) for g, prime in zip(found, PRIMES, strict=True)
    ]
    polynomial = SumPolynomial(np.array(padded))
    if not _sums(polynomial, laplacian, rng.integers(0, 2**31 - 100, (len(PRIMES), n))):
        raise EngineError("the graph is not connected: sums over all agents cannot be had by messages along its links")
    return polynomial


def _normalized(g: npt.NDArray[np.int64], n: int, prime: int) -> npt.NDArray[np.int64]:
    """``n / g(0) g``."""
    return g * (n * pow(int(g[-1]), -1, prime) % prime) % prime if g[-1] else g


def _minimal_polynomial(sequence: npt.NDArray[np.int64], prime: int) -> npt.NDArray[np.int64]:
    """Monic polynomial, highest degree first, of the shortest linear recurrence (Berlekamp 1968, Massey 1969)."""
    size = len(sequence) + 2
    current, previous = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    current[0] = previous[0] = 1
    length, gap, last = 0, 1, 1
    for k in range(len(sequence)):
        history = sequence[k - length : k + 1][::-1]
        discrepancy = int((current[: length + 1] * history % prime).sum() % prime)
        if discrepancy == 0:
            gap += 1
            continue
        factor = discrepancy * pow(last, -1, prime) % prime
        corrected = current.copy()
        corrected[gap:] = (corrected[gap:] - factor * previous[: size - gap]) % prime
        if 2 * length <= k:
            length, previous, last, gap = k + 1 - length, current, discrepancy, 1
        else:
            gap += 1
        current = corrected
    return current[: length + 1]


@dataclass(frozen=True, slots=True)
class _Laplacian:
    """Degrees minus adjacency, as lists of neighbors behind one another."""

    degrees: npt.NDArray[np.int64]
    neighbors: npt.NDArray[np.int64]

    @classmethod
    def of(cls, links: Mapping[str, Sequence[str]]) -> _Laplacian:
        numbers = {name: number for number, name in enumerate(links)}
        degrees = np.array([len(near) for near in links.values()])
        return cls(degrees, np.array([numbers[name] for near in links.values() for name in near], dtype=np.int64))

    def times(self, vectors: Residues) -> Residues:
        """The Laplacian times a vector for every prime."""
        starts = np.cumsum(self.degrees) - self.degrees
        around: Residues = np.add.reduceat(vectors[:, self.neighbors], starts, axis=1)
        product: Residues = (self.degrees * vectors - around) % MODULI
        return product


def _sums(polynomial: SumPolynomial, laplacian: _Laplacian, vectors: Residues) -> bool:
    """Whether the polynomial gives every agent the sum of these vectors."""
    value = polynomial.horner(0, vectors, 0)
    for k in range(1, polynomial.degree + 1):
        value = polynomial.horner(k, vectors, laplacian.times(value))
    return bool((value == vectors.sum(axis=1, keepdims=True) % MODULI).all())
