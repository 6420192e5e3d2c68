"""Leave-one-out error of a trained model, and what the unlabelled rows changed in it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

from dsfr.core.prediction.mixture import Mixture
from dsfr.io.scanning import Scan
from dsfr.pipeline.options import FitOptions, make_estimator

MOST_LABELS = 2000
"""With more labels a second training takes too long for the comparison with the labelled rows alone."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Root mean squared leave-one-out error on the labels, in the target's units, and its standard error."""

    error: float
    standard_error: float

    @classmethod
    def of(cls, mixture: Mixture) -> LeftOut | None:
        """That of a model; None if it was trained without uncertainty, or on one label: then none would be left."""
        scores = mixture.scores
        return None if scores is None or scores.counts[-1] < 2 else cls(scores.deviation, scores.standard_error)

    def is_better_than(self, spread: float) -> bool:
        """Whether the error is measurably below that of always answering with the mean: by one standard error."""
        return self.error + self.standard_error < spread


def without_unlabeled(rows: Scan, options: FitOptions, training: Any, declare: Any) -> LeftOut | None:
    """Leave-one-out error of the same method on the labelled rows alone, all in one place.

    None where there is nothing to compare with: no unlabelled rows, or too many labels. ``declare`` gives the estimator
    the ranges that the options name.
    """
    n_labeled = training["n_labeled"]
    if n_labeled in (training["n_samples"], 0) or n_labeled > MOST_LABELS:
        return None
    alone = make_estimator(replace(options, agents=None, topology=None, solver=None), None)
    declare(alone)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the model itself were given already
        alone.fit(replace(rows, labeled_only=True, agent_column=None, on_rows=None))
    return LeftOut.of(alone.model_.mixture)


NO_SIGNAL = (
    "No signal was measured: always answering with the mean of the labels has NRMSE 1, and by leave-one-out this model "
    "is not better by more than the uncertainty. Label more rows, or add columns that matter."
)
"""What is said of a model that is not better than the mean."""


def gain_of_unlabeled(error: LeftOut, alone: LeftOut) -> str:
    """What the unlabelled rows changed, in words.

    >>> gain_of_unlabeled(LeftOut(0.9, 0.05), LeftOut(1.2, 0.05))
    'The unlabelled rows lower the leave-one-out error by 25%, compared with the labelled rows alone.'
    >>> gain_of_unlabeled(LeftOut(1.0, 0.05), LeftOut(1.01, 0.05))
    'The unlabelled rows bring no measurable gain: the leave-one-out error changes by -1.0%, its uncertainty is 5.0%.'
    """
    change = error.error / alone.error - 1.0 if alone.error > 0.0 else 0.0
    uncertainty = error.standard_error / error.error if error.error > 0.0 else 0.0
    if abs(change) > uncertainty:
        verb = "lower" if change < 0.0 else "raise"
        part = f"{verb} the leave-one-out error by {abs(change):.0%}, compared with the labelled rows alone."
    else:
        part = (
            f"bring no measurable gain: the leave-one-out error changes by {change:+.1%}, its uncertainty is "
            f"{uncertainty:.1%}."
        )
    return f"The unlabelled rows {part}"
