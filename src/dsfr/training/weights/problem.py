"""The problem of the weights, and its solution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array
from dsfr.core.relevance.slope_shrinkage import Shrinkage, constant_features, unshrunk_factor
from dsfr.core.solve.cholesky import cholesky, solve_factored
from dsfr.core.solve.evidence import SMALLEST_NOISE, Evidence, Tuned
from dsfr.core.solve.statistics import Statistics, ridge_factor, solve_weights
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.rounds import Observer
from dsfr.training.scaling.survey import Population

if TYPE_CHECKING:
    from dsfr.training.settings import Settings


@dataclass(frozen=True, slots=True)
class Problem:
    """All that a solver needs to agree on weights."""

    engine: Engine
    settings: Settings
    population: Population
    broadcast: Bundle
    """What agents must know: basis, mean and unit of the target, penalty on unlabelled rows."""
    shares: Array | None
    """Shares of the rows that rules have, where they are known."""
    observe: Observer


LEAST_FREEDOM = 1e-3
"""Part of the labels that a model leaves open at least, in `Solution.cross_validation_factor`."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Agreed weights."""

    weights: Array
    converged: bool = True
    tuned: Tuned | None = None
    """What was chosen from the labels, if anything was."""
    statistics: Statistics | None = None
    """The sums that the weights come from, if they do."""
    unlabeled_weight: float = 0.0
    ridge: float = 0.0
    tied: Shrinkage | None = None
    """Maps the weights that the ridge sees to those of the lines, see `slope_shrinkage`; None: they are the same."""

    prior_precision: Array | None = None
    """Inverse prior variance of every weight, where each has its own; it takes the place of the ridge."""

    own_factor: Array | None = None
    """Upper Cholesky factor of the system that was solved, ties left out, where it is known."""

    def solved_with(self, total: Statistics) -> Solution:
        """The solution for other sums; ridge, weight of the penalty, relevances and prior stay as they are."""
        tied = self.tied and self.tied.with_constant(constant_features(total, self.tied.n_rules))
        if self.prior_precision is not None:
            weights = solve_factored(cholesky(total.gram + np.diag(self.prior_precision)), total.moment)
        else:
            seen = total if tied is None else total.mapped(tied.times)
            weights = solve_weights(seen.quadratic(self.unlabeled_weight), self.ridge)
            weights = weights if tied is None else tied.times(weights)
        # The best noise for this prior, see `dsfr.core.solve.evidence`.
        square = max(total.target_square - float(total.moment @ weights), SMALLEST_NOISE * total.target_square)
        tuned = self.tuned and replace(self.tuned, noise=float(np.sqrt(square / total.n_labeled)))
        return replace(self, weights=weights, statistics=total, tuned=tuned, tied=tied, own_factor=None)

    def noise(self) -> float:
        """Standard deviation of the noise, for targets of deviation 1; 0 if the labels do not vary."""
        if self.tuned is not None:
            return self.tuned.noise
        if self.statistics is None or self.statistics.target_square <= 0.0:
            return 0.0
        return Evidence(self.statistics).noise(self.unlabeled_weight, self.ridge)

    def cross_validation_factor(self) -> float:
        """Factor from errors to leave-one-out errors by generalised cross-validation, ``1 / (1 - trace / n)``.

        The trace is that of the matrix that maps labels to their predictions; every label is taken to have the mean
        leverage (Golub, Heath and Wahba, 1979).
        """
        assert self.statistics is not None
        root = solve_triangular(self.factor(), self.statistics.gram, trans="T")
        trace = float(np.trace(solve_triangular(self.factor(), root)))
        return 1.0 / max(1.0 - trace / self.statistics.n_labeled, LEAST_FREEDOM)

    def factor(self) -> Array:
        """Upper Cholesky factor of the system that was solved.

        Raises
        ------
        ValueError
            If agents did not share their statistics.
        """
        if self.statistics is None:
            raise ValueError("only weights from summed statistics have a system to factor: take solver='sums'")
        factor = self._factored(self.statistics) if self.own_factor is None else self.own_factor
        return factor if self.tied is None else unshrunk_factor(factor, self.tied)

    def _factored(self, total: Statistics) -> Array:
        if self.prior_precision is not None:
            return cholesky(total.gram + np.diag(self.prior_precision))
        seen = total if self.tied is None else total.mapped(self.tied.times)
        return ridge_factor(seen.quadratic(self.unlabeled_weight).curvature, self.ridge)
