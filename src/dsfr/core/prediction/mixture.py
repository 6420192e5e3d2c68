"""A weighted average of predictors, of one or several, and its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.compiled import worthwhile
from dsfr.core.density import RowDensity
from dsfr.core.features.expectation import takes_unknown
from dsfr.core.prediction.levels import Categories, with_levels
from dsfr.core.prediction.link import Link
from dsfr.core.prediction.noisy_rows import NoisyRows, noisy_blocks, noisy_rows
from dsfr.core.prediction.posterior import Posterior
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.rule_deviations import row_deviations
from dsfr.core.prediction.scores import Scores
from dsfr.core.threads import each_chunk

WITHOUT_DENSITY = (
    "X has missing values, and the model does not know the distribution of the rows (its file was written without): "
    "fill them in, or train it again"
)
WITHOUT_UNCERTAINTY = (
    "the model has no uncertainty: train it with uncertainty=True, or with AutoSFRRegressor (simplifying a model "
    "discards its uncertainty)"
)


@dataclass(frozen=True, slots=True)
class Member:
    """One predictor of a mixture."""

    predictor: Predictor
    share: float
    """Its weight in the average; those of all members sum to 1."""
    posterior: Posterior | None = None


class Deviations(NamedTuple):
    """Standard deviations of a new observation by their source, for every row; their squares add up."""

    noise: Array
    """Of observations, at the same inputs."""
    ignorance: Array
    """What the labels leave open: of the weights, and between members."""
    inputs: Array
    """Of missing and noisy inputs; 0 where all are known."""

    @property
    def total(self) -> Array:
        """All together; (n,)."""
        return np.hypot(np.hypot(self.noise, self.ignorance), self.inputs)


@dataclass(frozen=True, slots=True)
class Mixture:
    """A weighted average of the predictions of its members, of which there is at least one."""

    members: tuple[Member, ...]
    scores: Scores | None = None
    """Scores of jackknife intervals, if the training computed them; on the scale on which the model is learnt."""
    link: Link = field(default_factory=Link)
    """From the average of the members to the target."""
    density: RowDensity | None = None
    """Distribution of the rows, by which missing and noisy values are completed."""
    categories: Categories = ()
    """Features that indicate the levels of one category each: a missing level is one of them, and nothing between."""

    @classmethod
    def of(cls, predictor: Predictor) -> Mixture:
        """The mixture of a single predictor; it predicts the same bits."""
        return cls((Member(predictor, 1.0),))

    @property
    def strongest(self) -> Predictor:
        """The predictor with the largest share; the first of several."""
        return max(self.members, key=lambda member: member.share).predictor

    def predict(self, X: Array, noise: Array | None = None, *, fast: bool | None = None) -> Array:
        """Prediction of every row, in the target's units; shape (n,)."""
        return self.link.predictions(self.values(X, noise, fast=fast))

    def values(self, X: Array, noise: Array | None = None, *, fast: bool | None = None) -> Array:
        """Average of the members for every row, on the scale on which they are learnt; shape (n,).

        Where values are missing (NaN) or have noise, of the given deviations (n, d), it is the expected average.
        """
        noisy = noisy_rows(X, noise)
        if not len(noisy):
            return self._exact_values(X, fast=fast)
        values = np.empty(len(X))
        exact = np.delete(np.arange(len(X)), noisy)
        values[exact] = self._exact_values(X[exact], fast=fast)
        for where, rows in self._noisy_blocks(X, noise, noisy):
            values[where] = rows.mean(self._expected(rows))
        return values

    def interval(self, X: Array, coverage: float, noise: Array | None = None) -> tuple[Array, Array]:
        """Ends of the jackknife interval of every row, in the target's units; see `half_widths`."""
        return self.link.interval(self.values(X, noise), self.half_widths(X, coverage, noise))

    def half_widths(self, X: Array, coverage: float, noise: Array | None = None) -> Array:
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
        if typical > 0.0:
            return half / typical * self.value_deviations(X, noise)
        return np.hypot(half, self.scores.input_factor(coverage) * self.deviation_parts(X, noise).inputs)

    def in_domain(self, X: Array) -> npt.NDArray[np.bool_]:
        """Whether every known value of a row lies where the model has seen data; (n,).

        See `Predictor.domain`; all members have the same.
        """
        domain = self.strongest.domain
        inside: npt.NDArray[np.bool_] = np.all(~((domain.low > X) | (domain.high < X)), axis=1)
        return inside

    def deviations(self, X: Array, noise: Array | None = None) -> Array:
        """Standard deviation of a new observation at every row, in the target's units; see `value_deviations`."""
        spread = self.value_deviations(X, noise)
        return self.link.deviations(self.values(X, noise), spread) if self.link.is_log else spread

    def value_deviations(self, X: Array, noise: Array | None = None) -> Array:
        """Standard deviation of a new observation at every row, see `deviation_parts`; (n,).

        On the scale on which the model is learnt.

        Raises
        ------
        ValueError
            If the model was trained without uncertainty.
        """
        total, _, inputs = self._deviation_arrays(X, noise)
        with_inputs: Array = np.hypot(total, inputs)
        return with_inputs

    def deviation_parts(self, X: Array, noise: Array | None = None) -> Deviations:
        """Standard deviations of a new observation from noise, from weights and members, and from the inputs; (n,).

        On the scale on which the model is learnt. Without posterior distributions of the weights, the root mean squared
        leave-one-out error counts as noise; of short rules, what grows with the distance from the rows as ignorance.

        Raises
        ------
        ValueError
            If the model was trained without uncertainty.
        """
        total, noises, inputs = self._deviation_arrays(X, noise)
        unit = self.strongest.target_scale
        ignorance = unit * np.sqrt(np.maximum((total / unit) ** 2 - (noises / unit) ** 2, 0.0))
        return Deviations(noises, ignorance, inputs)

    def _deviation_arrays(self, X: Array, noise: Array | None) -> Array:
        """Deviations at given inputs, of the noise alone, and from the inputs; shape (3, n)."""
        if self.scores is None and any(member.posterior is None for member in self.members):
            raise ValueError(WITHOUT_UNCERTAINTY)
        found = np.zeros((3, len(X)))
        noisy = noisy_rows(X, noise)
        exact = np.delete(np.arange(len(X)), noisy)
        for block in row_blocks(len(exact)):
            found[:2, exact[block]] = self._observation_deviations(X[exact[block]], None)
        if len(noisy) and self.density is None and not np.isfinite(X).all():
            raise ValueError(WITHOUT_DENSITY)
        for where, rows in self._noisy_blocks(X, noise, noisy):
            for place, own in enumerate(self._observation_deviations(rows.means, rows.deviations)):
                unit = self.strongest.target_scale
                found[place, where] = unit * np.sqrt(rows.mean((own / unit) ** 2))
            found[2, where] = self.input_deviations(rows)
        return found

    def completed(self, X: Array) -> Array:
        """Rows with missing values replaced by what is expected of them, given the others.

        Raises
        ------
        ValueError
            If values are missing, and the model does not know the distribution of the rows.
        """
        if not np.isnan(X).any():
            return X
        if self.density is None:
            raise ValueError(WITHOUT_DENSITY)
        return self.density.expected(X)

    def drawn_rows(self, n_rows: int) -> Array:
        """Rows drawn from the density, each with one level of every category; the same model gives the same rows.

        Raises
        ------
        ValueError
            If the model does not know the distribution of the rows.
        """
        if self.density is None:
            raise ValueError(
                "the model does not know the distribution of the rows (its file was written without): give rows X"
            )
        return with_levels(self.density.drawn(n_rows, np.random.default_rng(0)), self.categories)

    def uncertain_row(self, x: Array, noise: Array) -> NoisyRows | None:
        """Distribution of the true values of one row, with deviations of its noise; None if all are exact."""
        X, given = x[None], noise[None]
        return next((rows for _, rows in self._noisy_blocks(X, given, noisy_rows(X, given))), None)

    def _noisy_blocks(self, X: Array, noise: Array | None, noisy: IntArray) -> Iterator[tuple[IntArray, NoisyRows]]:
        """Rows that are missing values or have noise, block by block, with their numbers."""
        bases = [member.predictor.basis for member in self.members]
        if self.density is None and np.isnan(X).any() and not all(map(takes_unknown, bases)):
            raise ValueError(WITHOUT_DENSITY)
        amount = np.zeros((len(noisy), X.shape[1])) if noise is None else noise[noisy]
        for block, rows in noisy_blocks(self.density, self.categories, X[noisy], amount):
            yield noisy[block], rows

    def _exact_values(self, X: Array, *, fast: bool | None = None) -> Array:
        fast = worthwhile(len(X)) if fast is None else fast
        parts = [(member.share, member.predictor.values(fast=fast)) for member in self.members if member.share]

        def average(chunk: slice) -> Array:
            within = self.members[0].predictor.within_limits(X[chunk])  # which are the same for all
            total = np.zeros(len(within))
            for share, values in parts:
                total += share * values(within)
            return total

        return np.concatenate([np.empty(0), *each_chunk(average, len(X))])

    def _expected(self, rows: NoisyRows) -> Array:
        total = np.zeros(len(rows.means))
        for member in self.members:
            of = member.predictor
            for block in row_blocks(len(total)):
                H = of.features(rows.means[block], rows.deviations[block])
                expected = of.target_mean + of.target_scale * np.einsum("np,p->n", H, of.weights)
                total[block] += member.share * expected
        return total

    def _observation_deviations(self, X: Array, noise: Array | None) -> tuple[Array, Array]:
        """Deviations of a new observation at given inputs, and of the noise alone; two of shape (n,)."""
        if self.scores is not None and self.scores.rule_deviations is not None:
            of, n = self.strongest, float(self.scores.counts[-1])
            strengths = of.features(X, noise)[:, :: of.n_features + 1]
            usual, total = row_deviations(self.scores.rule_deviations, strengths, X, self.density, n)
            return total, usual
        if any(member.posterior is None for member in self.members):
            assert self.scores is not None
            constant = np.full(len(X), self.scores.deviation)
            return constant, constant
        mean, square, noises = np.zeros(len(X)), np.zeros(len(X)), 0.0
        unit = self.strongest.target_scale
        for member in self.members:
            assert member.posterior is not None
            of = member.predictor
            H = of.features(X, noise)
            # Relative to the mean of the target: a large mean would cancel the digits of the variance.
            values = of.target_scale / unit * (H @ of.weights)
            mean += member.share * values
            square += member.share * (member.posterior.variances(H, unit) + values**2)
            noises += member.share * (member.posterior.noise / unit) ** 2
        total = unit * np.sqrt(np.maximum(square - mean**2, 0.0))
        return total, np.full(len(X), unit * np.sqrt(noises))

    def input_deviations(self, rows: NoisyRows) -> Array:
        """Deviation of the prediction over the distribution of the inputs; (n,).

        For steps of one deviation along independent directions, the squares of half the first differences and twice
        the squares of half the second differences: the variance of a quadratic polynomial without products.
        """
        unit = self.strongest.target_scale
        middle = self._exact_values(rows.means) / unit
        variance = np.zeros(len(middle))
        for step in rows.directions():
            above, below = (self._exact_values(rows.means + sign * step) / unit for sign in (1.0, -1.0))
            first, second = (above - below) / 2.0, (above + below) / 2.0 - middle
            variance += first**2 + 2.0 * second**2
        return unit * np.sqrt(rows.variance(middle, variance))
