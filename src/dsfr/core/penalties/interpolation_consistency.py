"""Interpolation consistency: difference between the features of a mix of rows and the mix of their features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from dsfr.core.arrays import BLOCK_ROWS, Array, IntArray, row_blocks
from dsfr.core.features.basis import FeatureMap
from dsfr.core.features.takagi_sugeno import Rules, rule_gaps
from dsfr.core.threads import each_chunk

POOL_ROWS = 50
"""Random rows from which the nearest partner is chosen: on average it is among the nearest 2% of all rows."""
MAX_RATIO = 1e12
"""Cap of the ratio of mean squared distances of random and near pairs: beyond, the gap of a near pair is rounding."""
MAX_DEFAULT_PAIRS = 10_000
"""Largest default number of pairs; the authors of the paper used 3,000 to 10,000 per agent."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Row indices and mixing share of every pair."""

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

    def compact(self, pool: IntArray) -> tuple[IntArray, Pairs, IntArray]:
        """Sorted indices of the rows in use, and the pairs and the pool as positions among these."""
        wanted, position = np.unique(np.concatenate([self.first, self.second, pool]), return_inverse=True)
        first, second, rest = np.split(position, [len(self), 2 * len(self)])
        return wanted, Pairs(first, second, self.mix), rest

    def __len__(self) -> int:
        return len(self.mix)


@dataclass(frozen=True, slots=True)
class PairDraw:
    """Number of pairs and distribution of the mixing shares.

    An explicit number is used without rescaling, as in the paper. By default (None) there are as many pairs as rows; of
    more than ``most``, that many are drawn and the sum is rescaled, so that the weight of the penalty does not depend
    on the cap.
    """

    n_pairs: int | None
    concentration: float
    most: int = MAX_DEFAULT_PAIRS

    def pairs(self, n_rows: int, rng: np.random.Generator) -> Pairs:
        """Random pairs of ``n_rows`` rows."""
        drawn = min(n_rows, self.most) if self.n_pairs is None else self.n_pairs
        return Pairs.draw(n_rows, drawn, self.concentration, rng)

    def weight(self, n_rows: int) -> float:
        """Factor on ``B'B`` of the drawn pairs."""
        capped = self.n_pairs is None and n_rows > self.most
        return n_rows / self.most if capped else 1.0


def near_pairs(X: Array, pairs: Pairs, pool: IntArray, stretch: Array | None = None) -> tuple[Pairs, float]:
    """Pairs whose second rows are the nearest in a pool, and the factor that keeps the size of ``B'B``.

    The gap of a curved function grows with the squared distance of a pair. The factor is the squared ratio of the mean
    squared distances, so that the penalty on a function of constant curvature is about the same for near pairs as for
    random ones.

    Parameters
    ----------
    X : array of shape (n, d)
        Scaled rows.
    pairs : Pairs
        Of rows of ``X``, drawn at random.
    pool : int array
        Rows of ``X`` to choose the second ones from; a row at distance 0 is chosen only if all are.
    stretch : array of shape (d,), default=None
        Factors on the features in the distance.
    """
    stretched = X if stretch is None else X * stretch
    second, near, far = np.empty_like(pairs.second), 0.0, 0.0
    for block in row_blocks(len(pairs)):
        first = stretched[pairs.first[block]]
        distances = cdist(first, stretched[pool], "sqeuclidean")
        chosen = np.where(distances > 0.0, distances, np.inf).argmin(axis=1)
        second[block] = pool[chosen]
        near += float(np.take_along_axis(distances, chosen[:, None], axis=1).sum())
        far += float(((first - stretched[pairs.second[block]]) ** 2).sum())
    return Pairs(pairs.first, second, pairs.mix), min(far / near, MAX_RATIO) ** 2 if near > 0.0 else 1.0


def interpolation_gap(first: Array, second: Array, mix: Array, basis: FeatureMap) -> Array:
    """``B = H(mix U1 + (1-mix) U2) - mix H(U1) - (1-mix) H(U2)``, paper eq. (15); one row per pair."""
    if isinstance(basis, Rules):
        return rule_gaps(first, second, mix, basis)
    share = mix[:, None]
    rest = 1.0 - share
    gap = basis.features(share * first + rest * second)
    gap -= share * basis.features(first)
    gap -= rest * basis.features(second)
    return gap


def gap_gram(X: Array, pairs: Pairs, basis: FeatureMap) -> Array:
    """``B'B`` over all pairs of rows of ``X``, accumulated in blocks; shape (p, p)."""

    def of_block(block: slice) -> Array:
        gap = interpolation_gap(X[pairs.first[block]], X[pairs.second[block]], pairs.mix[block], basis)
        return gap.T @ gap

    return sum(each_chunk(of_block, len(pairs), BLOCK_ROWS), np.zeros((basis.n_outputs, basis.n_outputs)))


def consistency_gram(
    X: Array, basis: FeatureMap, *, n_pairs: int | None, concentration: float, rng: np.random.Generator
) -> Array:
    """``B'B`` of freshly drawn pairs of unlabelled rows ``X``.

    See `PairDraw` for their number.
    """
    draw = PairDraw(n_pairs, concentration)
    return draw.weight(len(X)) * gap_gram(X, draw.pairs(len(X), rng), basis)
