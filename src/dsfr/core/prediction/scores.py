"""Leave-one-out errors of a training, as counts, and the intervals that follow from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from dsfr.core.arrays import Array

CAUTION = 3.0
"""Labels that an error as large as the deviation of the target counts as: chosen on the design tables of
benchmarks/tables."""

USUAL = 0.9
"""Share of the errors that are usual: the others may be mistakes, or rows that lack what the target depends on."""


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
    rule_deviations: Array | None = None
    """Of short rules: deviation of a new observation by rule, in the target's units, see `row_deviations`; (k,)."""

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

    def cautious(self, deviation: float) -> Scores:
        """Larger errors: the smaller they are beside the deviation of the target, the more of that may be chance.

        The logarithm of the root mean squared error is averaged over `CAUTION` labels that speak for the deviation, and
        those that there are.
        """
        error = self.deviation
        factor = self.with_caution(error, deviation) / error if error > 0.0 else 1.0
        return replace(self, thresholds=factor * self.thresholds)

    def with_caution(self, error: float, deviation: float) -> float:
        """An error of so many labels, made larger as in `cautious`."""
        share = CAUTION / (float(self.counts[-1]) + CAUTION)
        return error * (deviation / error) ** share if 0.0 < error < deviation else error

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
    def usual_deviation(self) -> float:
        """Deviation of the normal distribution that has as many errors within the same limits as are `USUAL`."""
        if not self.suffice_for(USUAL):
            return self.deviation
        return self.half_width(USUAL) / float(ndtri((1.0 + USUAL) / 2.0))

    @property
    def standard_error(self) -> float:
        """Standard error of `deviation`, from the spread of the squared errors (delta method)."""
        largest = max(float(self.thresholds[-1]), np.finfo(np.float64).tiny)
        weights = np.diff(self.counts, prepend=0.0) / self.counts[-1]
        squares = (self.thresholds / largest) ** 2
        mean = float(weights @ squares)
        spread = float(weights @ (squares - mean) ** 2) / max(float(self.counts[-1]) - 1.0, 1.0)
        return largest * float(np.sqrt(spread / mean)) / 2.0 if mean > 0.0 else 0.0

    def input_factor(self, coverage: float) -> float:
        """By how many deviations of the inputs the interval of a typical row grows, in squares.

        As many as of errors, if these are in proportion to deviations; else as many as a normal distribution has.
        """
        if self.typical_deviation > 0.0:
            return self.half_width(coverage) / self.typical_deviation
        return float(ndtri((1.0 + coverage) / 2.0))

    def _rank(self, coverage: float) -> float:
        """Rank, among the sorted errors, of the one that is the half width: ``ceil(coverage (n + 1))``."""
        return float(np.ceil(coverage * (float(self.counts[-1]) + 1.0) - 1e-9))
