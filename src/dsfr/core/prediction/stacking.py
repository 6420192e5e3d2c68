"""Shares of several models in their average: by evidence, or stacked on leave-one-out predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import nnls

from dsfr.core.arrays import Array

SUM_WEIGHT = 1e4
"""Weight, relative to the models' own, of the condition that shares sum to 1; what is missing is scaled away."""
NO_ERROR = 1e-14
"""Of the squared targets: squared errors below are rounding."""
HELD = 10.0
"""Labels per model that equal shares weigh as much as."""


def tempered_shares(scores: Array, n_labeled: float) -> Array:
    """Shares from log evidences (or scores on their scale); they sum to 1.

    A log evidence is a sum over labels, and two of them differ by chance in the order of ``sqrt(n)``: that is the unit
    in which differences count. Plain Bayesian averaging would follow the chance.
    """
    weights = np.exp((scores - scores.max()) / np.sqrt(n_labeled))
    shares: Array = weights / weights.sum()
    return shares


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Products of leave-one-out predictions of all models with each other and with the targets; adds over agents."""

    products: Array
    """``Z'Z``; shape (m, m)."""
    moment: Array
    """``Z'y``; shape (m,)."""
    target_square: float
    n: float

    @classmethod
    def none(cls, n_models: int) -> LeftOut:
        """Of no labels."""
        return cls(np.zeros((n_models, n_models)), np.zeros(n_models), 0.0, 0.0)

    @classmethod
    def of(cls, predictions: Array, y: Array, weights: Array) -> LeftOut:
        """Of some labels, their predictions by all models, shape (n, m), and how often each counts."""
        root = np.sqrt(weights)
        F, z = root[:, None] * predictions, root * y
        return cls(F.T @ F, F.T @ z, float(z @ z), float(weights.sum()))

    def __add__(self, other: LeftOut) -> LeftOut:
        return LeftOut(
            self.products + other.products,
            self.moment + other.moment,
            self.target_square + other.target_square,
            self.n + other.n,
        )

    def grouped(self, groups: Array) -> LeftOut:
        """Products of averages of models; ``groups`` has the shares of the models in each as columns, shape (m, g)."""
        return replace(self, products=groups.T @ self.products @ groups, moment=groups.T @ self.moment)

    def inflated(self, factors: Array) -> LeftOut:
        """As if every model's leave-one-out errors were larger by a factor; shape of the factors (m,)."""
        errors = self.target_square - self.moment[:, None] - self.moment + self.products
        larger = factors[:, None] * errors * factors
        # Predictions y - f e have these products; those of errors with the targets are known from the moments.
        beside = (self.target_square - self.moment) * factors
        moment = self.target_square - beside
        products = self.target_square - beside[:, None] - beside + larger
        return replace(self, products=products, moment=moment)

    def mean_square(self, shares: Array) -> float:
        """Mean squared leave-one-out error of an average."""
        total = self.target_square - 2.0 * float(self.moment @ shares) + float(shares @ self.products @ shares)
        return max(total, 0.0) / self.n

    def trust(self, shares: Array) -> float:
        """Factor on an average, about the mean of the targets: half way from 1 to that of the least squared error.

        The latter, in [0, 1], varies as much by chance as it differs from 1: half of it is worth more.
        """
        square = float(shares @ self.products @ shares)
        best = float(self.moment @ shares) / square if square > 0.0 else 1.0
        return (1.0 + float(np.clip(best, 0.0, 1.0))) / 2.0

    def shares(self) -> Array:
        """Shares >= 0 that sum to 1 and minimise the squared leave-one-out error, held back towards equal ones.

        Equal shares weigh as much as `HELD` labels per model, at the error of the best: with few labels, who is best is
        mostly chance, but a model that is clearly worse gets nothing.
        """
        m = len(self.moment)
        equal = np.full(m, 1.0 / m)
        errors = self.target_square - self.moment[:, None] - self.moment + self.products
        typical = max(float(np.trace(errors)) / m, 0.0)
        if typical <= NO_ERROR * self.target_square:
            return equal
        # Of shares that sum to 1, the average has the squared error a'Ea: least squares with a root of E. They need no
        # factor of E + hold, which is singular where two models agree and one of them makes no error.
        best = min(self.mean_square(alone) for alone in np.eye(m))
        hold = HELD * m * best / typical
        values, vectors = np.linalg.eigh(errors / typical)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        firm = np.sqrt(SUM_WEIGHT * max(1.0, hold))
        A = np.concatenate([root, np.sqrt(hold) * np.eye(m), np.full((1, m), firm)])
        found = nnls(A, np.concatenate([np.zeros(m), np.sqrt(hold) * equal, [firm]]))[0]
        shares: Array = found / found.sum()
        return shares
