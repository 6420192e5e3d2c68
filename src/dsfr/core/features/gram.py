"""Gram matrix ``H'H`` of features, for rules without forming ``H``.

Features of rules are products ``p_k x_j`` of strengths and inputs (``x_0 = 1``), so ``H'H`` holds the sums of
``p_k p_l x_i x_j``. Both factors are symmetric, so the product of their upper triangles has every entry, with
``(k^2+k)/2 (d+1)(d+2)/2`` products per row. Forming ``H`` and its symmetric product takes up to twice as many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core import compiled
from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.scaling.affine import Ranges, scale_features, shift_and_unit

if TYPE_CHECKING:
    from dsfr.core.features.basis import FeatureMap
    from dsfr.core.features.takagi_sugeno import Rules

BLOCK_ROWS = 512
"""Rows whose products fit into the second-level cache."""


@dataclass(frozen=True, slots=True)
class FeatureSums:
    """Sums over labelled rows of products of features and targets."""

    gram: Array
    """``H'H``; shape (p, p)."""
    moment: Array
    """``H'y``; shape (p,)."""
    feature_sum: Array
    """``H'1``; shape (p,)."""

    @classmethod
    def of(
        cls, X: Array, y: Array, basis: FeatureMap, ranges: Ranges | None, weights: Array | None = None
    ) -> FeatureSums:
        """From the features themselves, for few rows; a row counts ``weights`` times."""
        H = basis.features(X if ranges is None else scale_features(X, ranges))
        if weights is None:
            return cls(H.T @ H, H.T @ y, H.sum(axis=0))
        root = np.sqrt(weights)  # on both factors, so that the Gram matrix is symmetric to the last bit
        H = root[:, None] * H
        return cls(H.T @ H, H.T @ (root * y), H.T @ root)


@dataclass(frozen=True, slots=True)
class RuleProducts:
    """Sums over labelled rows of products of strengths, inputs and targets."""

    sums: Array
    """Products of two strengths by products of two inputs; shape (k(k+1)/2, (d+1)(d+2)/2)."""
    targets: Array
    """``sum p_k x_j y``; shape (k, d+1)."""
    inputs: Array
    """``sum p_k x_j``; shape (k, d+1)."""

    @classmethod
    def of(
        cls, X: Array, y: Array, rules: Rules, ranges: Ranges | None, weights: Array | None = None, *, fast: bool
    ) -> RuleProducts:
        """Sums over the rows of ``X``, scaled first if ``ranges`` are given; a row counts ``weights`` times."""
        n_rules, n_inputs = len(rules.centers), rules.centers.shape[1] + 1
        sums = np.zeros((n_rules * (n_rules + 1) // 2, n_inputs * (n_inputs + 1) // 2))
        targets, inputs = np.zeros((n_rules, n_inputs)), np.zeros((n_rules, n_inputs))
        for block in row_blocks(len(X), BLOCK_ROWS):
            strengths, pairs, squares = _products(X[block], rules, ranges, fast=fast)
            if weights is not None:
                strengths, pairs = weights[block] * strengths, weights[block] * pairs
            sums += pairs @ squares.T
            targets += (strengths * y[block]) @ squares[:n_inputs].T
            inputs += strengths @ squares[:n_inputs].T
        return cls(sums, targets, inputs)

    @property
    def sums_of_features(self) -> FeatureSums:
        """``H'H``, ``H'y`` and ``H'1``."""
        p = self.inputs.size
        gram = np.take(self.sums, _positions(*self.inputs.shape)).reshape(p, p)
        return FeatureSums(gram, self.targets.ravel(), self.inputs.ravel())


def _products(X: Array, rules: Rules, ranges: Ranges | None, *, fast: bool) -> tuple[Array, Array, Array]:
    """Strengths, products of two strengths and products of two inputs, one column per row of ``X``."""
    if fast:
        shift, unit = shift_and_unit(ranges, X.shape[1])
        return compiled.rule_products(X, shift, unit, rules.centers, rules.widths)
    scaled = X if ranges is None else scale_features(X, ranges)
    strengths = np.ascontiguousarray(rules.strengths(scaled).T)
    return strengths, _upper_products(strengths), _upper_products(np.vstack([np.ones(len(X)), scaled.T]))


def _upper_products(rows: Array) -> Array:
    """Elementwise products of every two rows, in the order of an upper triangle; shape (m(m+1)/2, n)."""
    size, length = rows.shape
    products, start = np.empty((size * (size + 1) // 2, length)), 0
    for first in range(size):
        np.multiply(rows[first], rows[first:], out=products[start : start + size - first])
        start += size - first
    return products


@cache
def _positions(n_rules: int, n_inputs: int) -> IntArray:
    """Position in the flat sums of each entry of ``H'H``."""
    first, second = _triangle(n_rules), _triangle(n_inputs)
    width = n_inputs * (n_inputs + 1) // 2
    positions: IntArray = (first[:, None, :, None] * width + second[None, :, None, :]).ravel()
    return positions


def _triangle(size: int) -> IntArray:
    """Position in an upper triangle of every entry of a symmetric matrix; shape (size, size)."""
    positions = np.zeros((size, size), dtype=np.int64)
    positions[np.triu_indices(size)] = np.arange(size * (size + 1) // 2)
    upper: IntArray = np.maximum(positions, positions.T)
    return upper
