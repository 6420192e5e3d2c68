"""Sums over labels that are kept after a training: new labels are added, and the weights follow without old rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.prediction.mixture import Member, Mixture
from dsfr.core.prediction.posterior import Posterior
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.solve.statistics import Statistics
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.scaling.survey import Population
from dsfr.training.weights.problem import Solution


@dataclass(frozen=True, slots=True)
class LabelSums:
    """What the weights of every member of a mixture follow from, beside its features."""

    solutions: tuple[Solution, ...]
    """Of every member; each has its summed statistics."""
    target_limits: Array | None = None
    """Beyond these, targets count as lying at their end."""
    keeps_target: bool = False
    """Whether weights are for targets in their own units."""

    @classmethod
    def of(cls, solutions: Sequence[Solution], population: Population) -> LabelSums | None:
        """The sums of a training; None if its solver did not sum the statistics."""
        if any(solution.statistics is None for solution in solutions):
            return None
        lean = (replace(solution, own_factor=None) for solution in solutions)  # new labels make it another one
        return cls(tuple(lean), population.target_limits, population.keeps_target)


def with_labels(
    mixture: Mixture, sums: LabelSums, X: Array, y: Array, weights: Array | None
) -> tuple[Mixture, LabelSums]:
    """The mixture and the sums with some more labels: features, ridge, prior variances and shares stay as they are.

    Targets are standardised again, by the mean and deviation of all labels. Scores of intervals stay those of the
    training: leaving an old label out needs its row. Predictions are no longer held below or above a new label.

    Raises
    ------
    ValueError
        If logarithms are learnt and a target is not positive.
    """
    link, learnt = mixture.link.widened(y), mixture.link.learnt(y)
    targets = learnt if sums.target_limits is None else np.clip(learnt, *sums.target_limits)
    members, solutions = [], []
    with single_threaded_blas():
        for member, solution in zip(mixture.members, sums.solutions, strict=True):
            added = _statistics(member.predictor, X, targets, weights)
            found, predictor = _solved(member.predictor, solution, added, keeps_target=sums.keeps_target)
            members.append(Member(predictor, member.share, _posterior(member, found, predictor)))
            solutions.append(found)
    return replace(mixture, members=tuple(members), link=link), replace(sums, solutions=tuple(solutions))


def _statistics(predictor: Predictor, X: Array, y: Array, weights: Array | None) -> Statistics:
    """Of new labels, standardised as those of the training were."""
    targets = (y - predictor.target_mean) / predictor.target_scale
    rows = predictor.within_limits(X)
    parts = Statistics.parts(rows, targets, predictor.basis, predictor.ranges, weights)
    return sum(parts, Statistics.none(predictor.basis.n_outputs))


def _solved(
    predictor: Predictor, solution: Solution, added: Statistics, *, keeps_target: bool
) -> tuple[Solution, Predictor]:
    assert solution.statistics is not None, "`LabelSums.of` keeps no others"
    total, mean, scale = solution.statistics + added, predictor.target_mean, predictor.target_scale
    if not keeps_target:
        middle, unit = total.target_mean, total.target_deviation
        total = total.with_targets(1.0 / unit, -middle / unit)
        mean, scale = mean + scale * middle, scale * unit
    found = solution.solved_with(total)
    return found, replace(predictor, weights=found.weights, target_mean=mean, target_scale=scale)


def _posterior(member: Member, found: Solution, predictor: Predictor) -> Posterior | None:
    return None if member.posterior is None else Posterior(found.factor(), found.noise() * predictor.target_scale)
