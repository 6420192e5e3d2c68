"""Sufficient statistics of the weights: sums over rows that add over agents, and the closed-form solution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import SUM_ROWS, Array
from dsfr.core.features.basis import FeatureMap
from dsfr.core.features.gram import FeatureSums
from dsfr.core.scaling.affine import Ranges
from dsfr.core.solve.cholesky import cholesky, solve_factored
from dsfr.core.threads import each_chunk

BoolArray = npt.NDArray[np.bool_]

SAME = 1e-9
"""Of its mean square: a column whose variance over the labels is less is the same for all of them."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Sums over the labelled rows, and the Gram matrix of the penalty on the unlabelled ones."""

    gram: Array
    """``H'H`` over labelled rows; shape (p, p)."""
    moment: Array
    """``H'y``; shape (p,)."""
    feature_sum: Array
    """``H'1``; shape (p,)."""
    unlabeled_gram: Array
    """``B'B`` or ``H'LH``, without its weight; shape (p, p)."""
    n_labeled: float
    """Number of labels, or the sum of their weights."""
    target_sum: float
    target_square: float

    @classmethod
    def none(cls, n_outputs: int) -> Statistics:
        """Statistics of no rows."""
        square, column = np.zeros((n_outputs, n_outputs)), np.zeros(n_outputs)
        return cls(square, column, column, square, 0.0, 0.0, 0.0)

    @classmethod
    def of(cls, X: Array, y: Array, basis: FeatureMap, unlabeled_gram: Array | None = None) -> Statistics:
        """Statistics of labelled rows ``X`` with targets ``y``, accumulated in blocks."""
        total = sum(cls.parts(X, y, basis), cls.none(basis.n_outputs))
        return total if unlabeled_gram is None else replace(total, unlabeled_gram=unlabeled_gram)

    @classmethod
    def parts(
        cls,
        X: Array,
        y: Array,
        basis: FeatureMap,
        ranges: Ranges | None = None,
        weights: Array | None = None,
        *,
        fast: bool = False,
    ) -> Iterator[Statistics]:
        """Statistics of each chunk of rows, scaled first if ``ranges`` are given; NaN targets do not count.

        A row of weight 2 counts as two rows.
        """

        def of_chunk(chunk: slice) -> Statistics:
            labeled = ~np.isnan(y[chunk])
            rows, targets = X[chunk][labeled], y[chunk][labeled]
            own = None if weights is None else weights[chunk][labeled]
            return cls._of_sums(basis.sums(rows, targets, ranges, own, fast=fast), targets, own)

        return each_chunk(of_chunk, len(y), SUM_ROWS)

    @classmethod
    def _of_sums(cls, sums: FeatureSums, y: Array, weights: Array | None) -> Statistics:
        penalty = np.zeros_like(sums.gram)
        if weights is None:
            numbers = (float(len(y)), float(y.sum()), float(y @ y))
        else:
            numbers = (float(weights.sum()), float(weights @ y), float(weights @ y**2))
        return cls(sums.gram, sums.moment, sums.feature_sum, penalty, *numbers)

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(
            self.gram + other.gram,
            self.moment + other.moment,
            self.feature_sum + other.feature_sum,
            self.unlabeled_gram + other.unlabeled_gram,
            self.n_labeled + other.n_labeled,
            self.target_sum + other.target_sum,
            self.target_square + other.target_square,
        )

    @property
    def target_mean(self) -> float:
        """Mean of the targets, each counted as often as its weight says."""
        return self.target_sum / self.n_labeled

    @property
    def target_deviation(self) -> float:
        """Population standard deviation of the targets; 1 for constant ones, so that dividing by it is safe."""
        variance = self.target_square / self.n_labeled - self.target_mean**2
        return float(variance**0.5) if variance > 0.0 else 1.0

    def with_targets(self, factor: float, shift: float) -> Statistics:
        """The same sums for targets ``factor y + shift``."""
        square = factor**2 * self.target_square + 2.0 * factor * shift * self.target_sum + shift**2 * self.n_labeled
        return replace(
            self,
            moment=factor * self.moment + shift * self.feature_sum,
            target_sum=factor * self.target_sum + shift * self.n_labeled,
            target_square=max(square, 0.0),
        )

    def mapped(self, times: Callable[[Array], Array]) -> Statistics:
        """The same sums for weights ``u`` with ``w = T u``; ``times`` multiplies by ``T``, which is symmetric."""
        return replace(
            self,
            gram=times(times(self.gram).T),
            moment=times(self.moment),
            feature_sum=times(self.feature_sum),
            unlabeled_gram=times(times(self.unlabeled_gram).T),
        )

    def only(self, kept: BoolArray) -> Statistics:
        """The same sums for some of the features."""
        both = np.ix_(kept, kept)
        return replace(
            self,
            gram=self.gram[both],
            moment=self.moment[kept],
            feature_sum=self.feature_sum[kept],
            unlabeled_gram=self.unlabeled_gram[both],
        )

    def quadratic(self, unlabeled_weight: float) -> Quadratic:
        """The objective without its ridge term."""
        return Quadratic(self.gram + unlabeled_weight * self.unlabeled_gram, self.moment, self.target_square)


def same_for_all(squares: Array, sums: Array, n_labeled: float) -> BoolArray:
    """Whether columns are the same for all labels, from sums of their squares and of themselves."""
    n = max(n_labeled, 1.0)
    same: BoolArray = squares / n - (sums / n) ** 2 <= SAME * squares / n
    return same


@dataclass(frozen=True, slots=True)
class Quadratic:
    """``1/2 w'Aw - b'w + c/2``: squared errors plus the penalty on unlabelled rows, ridge left out."""

    curvature: Array
    moment: Array
    constant: float

    def value(self, weights: Array) -> float:
        """Value at ``weights``."""
        return float(weights @ (self.curvature @ weights / 2 - self.moment) + self.constant / 2)

    def gradient(self, weights: Array) -> Array:
        """Gradient at ``weights``."""
        return self.curvature @ weights - self.moment


def solve_weights(quadratic: Quadratic, ridge: float) -> Array:
    """Minimiser of the quadratic plus ``ridge/2 |w|^2``, paper eq. (11) and (16), by Cholesky.

    Raises
    ------
    SingularSystemError
        If the ridge is too small to make the system definite.
    """
    return solve_factored(ridge_factor(quadratic.curvature, ridge), quadratic.moment)


def ridge_factor(curvature: Array, ridge: float) -> Array:
    """Upper Cholesky factor of the system of the weights.

    Raises
    ------
    SingularSystemError
        If the ridge is too small to make it definite.
    """
    return cholesky(curvature + ridge * np.eye(len(curvature)))
