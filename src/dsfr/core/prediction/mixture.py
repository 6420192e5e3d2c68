"""A weighted average of predictors, of one or several, and its uncertainty."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.prediction.link import Link
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import scale_features

WITHOUT_UNCERTAINTY = (
    "the model has no uncertainty: train it with uncertainty=True, or with AutoSFRRegressor (simplifying a model "
    "discards its uncertainty)"
)


@dataclass(frozen=True, slots=True)
class Posterior:
    """Posterior distribution of the weights of one predictor, given the labels."""

    factor: Array
    """Upper Cholesky factor of the posterior precision, in units of the noise; shape (p, p)."""
    noise: float
    """Standard deviation of the noise, in the target's units."""

    def variances(self, H: Array, unit: float) -> Array:
        """Variance of a new observation at every row of features, that of the noise plus that of the weights; (n,).

        Targets are divided by ``unit`` first: the square of 1e200 overflows, that of 1e-200 underflows.
        """
        root = solve_triangular(self.factor, H.T, trans="T")
        variances: Array = (self.noise / unit) ** 2 * (1.0 + np.einsum("pn,pn->n", root, root))
        return variances


@dataclass(frozen=True, slots=True)
class Member:
    """One predictor of a mixture."""

    predictor: Predictor
    share: float
    """Its weight in the average; those of all members sum to 1."""
    posterior: Posterior | None = None


@dataclass(frozen=True, slots=True)
class Scores:
    """Cumulative counts of absolute leave-one-out errors, from which jackknife intervals are made.

    Errors are those of a row of typical deviation: each is divided by the deviation of its own row.
    """

    thresholds: Array
    """Ascending, in the target's units."""
    counts: Array
    """Number of errors at or below each threshold; the last is the number of labels."""
    typical_deviation: float = 0.0
    """Root mean squared leave-one-out deviation of the labelled rows; 0: intervals of all rows have the same width."""

    def half_width(self, coverage: float) -> float:
        """Half the width of the interval of a typical row: the ``ceil(coverage (n + 1))``-th smallest of ``n`` errors.

        There is no guarantee for finite samples that it holds a new target with probability ``coverage``.

        Raises
        ------
        ValueError
            If there are too few labels for such a coverage.
        """
        n = float(self.counts[-1])
        if not self.suffice_for(coverage):
            raise ValueError(
                f"coverage={coverage:g} needs at least {int(np.ceil(coverage / (1.0 - coverage) - 1e-9))} labelled "
                f"rows, and the model has seen {int(n)} (duplicates count once): ask for less, or label more rows"
            )
        return float(self.thresholds[int(np.argmax(self.counts >= self._rank(coverage)))])

    def suffice_for(self, coverage: float) -> bool:
        """Whether there are enough labels for intervals of this coverage."""
        return self._rank(coverage) <= float(self.counts[-1])

    @property
    def deviation(self) -> float:
        """Root mean squared error, from the counts."""
        largest = max(float(self.thresholds[-1]), np.finfo(np.float64).tiny)
        squares = np.diff(self.counts, prepend=0.0) @ (self.thresholds / largest) ** 2
        return largest * float(np.sqrt(squares / self.counts[-1]))

    @property
    def standard_error(self) -> float:
        """Standard error of `deviation`, from the spread of the squared errors (delta method)."""
        largest = max(float(self.thresholds[-1]), np.finfo(np.float64).tiny)
        weights = np.diff(self.counts, prepend=0.0) / self.counts[-1]
        squares = (self.thresholds / largest) ** 2
        mean = float(weights @ squares)
        spread = float(weights @ (squares - mean) ** 2) / max(float(self.counts[-1]) - 1.0, 1.0)
        return largest * float(np.sqrt(spread / mean)) / 2.0 if mean > 0.0 else 0.0

    def _rank(self, coverage: float) -> float:
        """Rank, among the sorted errors, of the one that is the half width: ``ceil(coverage (n + 1))``."""
        return float(np.ceil(coverage * (float(self.counts[-1]) + 1.0) - 1e-9))


@dataclass(frozen=True, slots=True)
class Mixture:
    """A weighted average of the predictions of its members, of which there is at least one."""

    members: tuple[Member, ...]
    scores: Scores | None = None
    """Scores of jackknife intervals, if the training computed them; on the scale on which the model is learnt."""
    link: Link = field(default_factory=Link)
    """From the average of the members to the target."""

    @classmethod
    def of(cls, predictor: Predictor) -> Mixture:
        """The mixture of a single predictor; it predicts the same bits."""
        return cls((Member(predictor, 1.0),))

    @property
    def strongest(self) -> Predictor:
        """The predictor with the largest share; the first of several."""
        return max(self.members, key=lambda member: member.share).predictor

    def predict(self, X: Array, *, fast: bool | None = None) -> Array:
        """Prediction of every row, in the target's units; shape (n,)."""
        return self.link.predictions(self.values(X, fast=fast))

    def values(self, X: Array, *, fast: bool | None = None) -> Array:
        """Average of the members for every row, on the scale on which they are learnt; shape (n,)."""
        total = np.zeros(len(X))
        for member in self.members:
            total += member.share * member.predictor.predict(X, fast=fast)
        return total

    def interval(self, X: Array, coverage: float) -> tuple[Array, Array]:
        """Ends of the jackknife interval of every row, in the target's units; see `half_widths`."""
        return self.link.interval(self.values(X), self.half_widths(X, coverage))

    def half_widths(self, X: Array, coverage: float) -> Array:
        """Half the width of the jackknife interval of every row, in proportion to its deviation; (n,).

        On the scale on which the model is learnt.

        Raises
        ------
        ValueError
            If the model was trained without uncertainty, or with too few labels for such a coverage.
        """
        if self.scores is None:
            raise ValueError(WITHOUT_UNCERTAINTY)
        half, typical = self.scores.half_width(coverage), self.scores.typical_deviation
        return np.full(len(X), half) if typical == 0.0 else half / typical * self.value_deviations(X)

    def in_domain(self, X: Array) -> npt.NDArray[np.bool_]:
        """Whether every feature of a row lies where the model follows it; beyond, it counts as lying at the end; (n,).

        That is within its limits, or else within the range of the training rows.
        """
        first = self.strongest
        domain = first.ranges if first.limits is None else first.limits
        inside: npt.NDArray[np.bool_] = np.all((domain.low <= X) & (domain.high >= X), axis=1)
        return inside

    def deviations(self, X: Array) -> Array:
        """Standard deviation of a new observation at every row, in the target's units; see `value_deviations`."""
        spread = self.value_deviations(X)
        return self.link.deviations(self.values(X), spread) if self.link.is_log else spread

    def value_deviations(self, X: Array) -> Array:
        """Standard deviation of a new observation at every row, from noise, weights and disagreement of members; (n,).

        On the scale on which the model is learnt.

        Without posterior distributions of the weights it is the root mean squared leave-one-out error, for every row.

        Raises
        ------
        ValueError
            If the model was trained without uncertainty.
        """
        if any(member.posterior is None for member in self.members):
            if self.scores is None:
                raise ValueError(WITHOUT_UNCERTAINTY)
            return np.full(len(X), self.scores.deviation)
        deviations = np.empty(len(X))
        for block in row_blocks(len(X)):
            deviations[block] = self._block_deviations(X[block])
        return deviations

    def _block_deviations(self, X: Array) -> Array:
        mean, square = np.zeros(len(X)), np.zeros(len(X))
        unit = self.strongest.target_scale
        for member in self.members:
            assert member.posterior is not None
            of = member.predictor
            H = of.basis.features(scale_features(of.within_limits(X), of.ranges))
            # Relative to the mean of the target: a large mean would cancel the digits of the variance.
            values = of.target_scale / unit * (H @ of.weights)
            mean += member.share * values
            square += member.share * (member.posterior.variances(H, unit) + values**2)
        deviations: Array = unit * np.sqrt(np.maximum(square - mean**2, 0.0))
        return deviations
