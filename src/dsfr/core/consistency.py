"""Interpolation consistency: how far the features of a mix are from the mix of the features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.features import Basis

MAX_DEFAULT_PAIRS = 10_000
"""Pairs drawn at most when their number is left open; the authors of the paper used 3,000 to 10,000 per agent."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Two rows and a mixing share for every pair."""

    first: IntArray
    second: IntArray
    mix: Array

    @classmethod
    def draw(cls, n_rows: int, n_pairs: int, concentration: float, rng: np.random.Generator) -> Pairs:
        """Random pairs of ``n_rows`` rows, mixed by ``Beta(concentration, concentration)`` shares."""
        if n_rows == 0:
            n_pairs = 0
        first, second = rng.integers(max(n_rows, 1), size=(2, n_pairs))
        return cls(first, second, rng.beta(concentration, concentration, n_pairs))

    def __len__(self) -> int:
        return len(self.mix)


def interpolation_gap(first: Array, second: Array, mix: Array, basis: Basis) -> Array:
    """``B = H(mix U1 + (1-mix) U2) - mix H(U1) - (1-mix) H(U2)``, paper eq. (15); one row per pair."""
    share = mix[:, None]
    rest = 1.0 - share
    gap = basis.features(share * first + rest * second)
    gap -= share * basis.features(first)
    gap -= rest * basis.features(second)
    return gap


def gap_gram(X: Array, pairs: Pairs, basis: Basis) -> Array:
    """``B'B`` over all pairs of rows of ``X``, accumulated in blocks; shape (p, p)."""
    gram = np.zeros((basis.n_outputs, basis.n_outputs))
    for block in row_blocks(len(pairs)):
        gap = interpolation_gap(X[pairs.first[block]], X[pairs.second[block]], pairs.mix[block], basis)
        gram += gap.T @ gap
    return gram


def consistency_gram(
    X: Array, basis: Basis, *, n_pairs: int | None, concentration: float, rng: np.random.Generator
) -> Array:
    """``B'B`` of freshly drawn pairs of unlabelled rows ``X``.

    An explicit ``n_pairs`` is used raw, as in the paper. Left open (None), there are as many pairs as rows; beyond
    `MAX_DEFAULT_PAIRS` that many are drawn and the sum rescaled, so that the penalty keeps its meaning at any length.
    """
    drawn = min(len(X), MAX_DEFAULT_PAIRS) if n_pairs is None else n_pairs
    gram = gap_gram(X, Pairs.draw(len(X), drawn, concentration, rng), basis)
    return gram * (len(X) / drawn) if n_pairs is None and drawn else gram
