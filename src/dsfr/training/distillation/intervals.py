"""Intervals of the student: errors of the teacher on labels that are left out, in deviations of the student's rules."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.density import RowDensity
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.rule_deviations import rounded_deviations, row_deviations
from dsfr.core.prediction.scores import Scores
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.completion import DENSITY_FIELDS
from dsfr.training.distillation.fidelity import STUDENT, strengths_and_lines, student_arrays, unpack_student
from dsfr.training.distillation.taught import KEPT_LEFT_OUT, left_out
from dsfr.training.ensemble.calibration import (
    KEPT_ERRORS,
    counted_scores,
    in_units,
    label_weights,
    labeled_sample,
)
from dsfr.training.ensemble.teacher import own_targets
from dsfr.training.shard import DENSITY, Shard, pack_density, unpack_density
from dsfr.training.tasks.declaration import Fields, array, at_least, optional
from dsfr.training.tasks.fields import COUNT, FLAG, SCORE, TARGET
from dsfr.training.tasks.messages import scalar
from dsfr.training.tasks.registry import task

SCORED: Fields = {
    **STUDENT,
    **TARGET,
    "rule_deviations": array("k", rules=(at_least(0.0),)),
    "all_labels": COUNT,
    "alone": optional(FLAG),
    **{
        name: optional(field) if name == DENSITY[0] else replace(field, beside=DENSITY[0])
        for name, field in DENSITY_FIELDS.items()
    },
}
"""The student, deviations by rule, how many labels there are, whose errors count, and the distribution of the rows."""
SHRINKAGE = 20.0
"""Labels by which the errors of a rule are held to those of all rules: chosen on design tables."""


@task(
    verb="sum",
    stage="distillation",
    reveals="How well the labels of others predict the agent's: squared leave-one-out errors by rule. With "
    "`uncertainty=True`.",
    broadcast=SCORED,
    contributes={name: array("k", rules=(at_least(0.0),)) for name in ("squares", "masses")},
    needs=("seed", *KEPT_LEFT_OUT),
    limited=False,
)
def rule_errors(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): squared errors on the own labels, as `score_student`, weighted by the strengths of the rules."""
    found = _errors(shard, memory, broadcast)
    scaled = found.errors / float(broadcast["target_scale"])
    weighted = found.strengths * found.weights[:, None]
    return memory, {"squares": weighted.T @ scaled**2, "masses": weighted.sum(axis=0)}


@task(
    verb="max",
    stage="distillation",
    reveals="The largest error on one of the agent's labels. With `uncertainty=True`.",
    broadcast=SCORED,
    contributes={"largest": SCORE},
    needs=("seed", *KEPT_LEFT_OUT),
    remembers=KEPT_ERRORS,
    limited=False,
)
def score_student(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (max): absolute leave-one-out errors on the own labels, kept; only the largest is sent."""
    found = _errors(shard, memory, broadcast)
    kept = {"errors": found.errors, "deviations": found.deviations, "error_weights": found.weights}
    return {**memory, **kept}, {"largest": scalar(found.errors.max(initial=0.0))}


class _Errors(NamedTuple):
    errors: Array
    """Over deviations; in the target's units."""
    deviations: Array
    strengths: Array
    weights: Array


def _errors(shard: Shard, memory: Bundle, broadcast: Bundle) -> _Errors:
    """Leave-one-out errors of the teacher, or of a student that does not follow it, over the student's deviations.

    Targets are as they are, not moved to the limits: an interval must hold them.
    """
    sample, student = labeled_sample(shard, int(memory["seed"])), unpack_student(broadcast)
    mean, scale = float(broadcast["target_mean"]), float(broadcast["target_scale"])
    if "alone" in broadcast:
        predictions = student.predict(sample.X, fast=False)
    else:
        predictions = mean + scale * left_out(memory, "left_out_predictions", len(sample.y))
    density = unpack_density(broadcast) if DENSITY[0] in broadcast else None
    strengths, _ = strengths_and_lines(student, sample.X)
    n = float(broadcast["all_labels"])
    _, deviations = row_deviations(broadcast["rule_deviations"], strengths, sample.X, density, n)
    errors = np.abs(own_targets(sample.y, memory) - predictions) / np.where(deviations > 0.0, deviations, 1.0)
    return _Errors(errors, deviations, strengths, label_weights(sample))


@dataclass(frozen=True, slots=True)
class Errors:
    """What the errors of a student are made of."""

    n_labeled: float
    factor: float
    """By how much its errors are larger than those that are counted."""
    is_teachers: bool
    """Whether those of the teacher are counted, or its own."""


def calibrate_student(
    engine: Engine,
    student: Predictor,
    target: Bundle,
    deviations: Array,
    density: RowDensity | None,
    errors: Errors,
) -> Scores:
    """Scores of intervals in proportion to the deviations of rows, and these, by rule.

    The distance of the student to the teacher adds to the teacher's errors as if it were independent of them, by
    ``errors.factor``. At the labels it is not, because these pull the teacher more than the student.
    """
    message = {**student_arrays(student), **target, "rule_deviations": deviations}
    message |= {"all_labels": scalar(errors.n_labeled), **({} if density is None else pack_density(density))}
    message |= {} if errors.is_teachers else {"alone": scalar(1.0)}
    deviations = _by_errors(engine, message)
    message["rule_deviations"] = deviations
    counted = counted_scores(engine, float(engine.max("score_student", message)["largest"]))
    scores = in_units(counted, float(target["target_scale"]))
    scores = replace(scores, thresholds=errors.factor * scores.thresholds)
    if scores.typical_deviation == 0.0:
        return scores
    found = scores.deviation / scores.typical_deviation
    by_rule = rounded_deviations(found * float(target["target_scale"]) * deviations)
    return replace(scores, typical_deviation=scores.deviation, rule_deviations=by_rule)


def _by_errors(engine: Engine, message: Bundle) -> Array:
    """Deviations by rule, larger or smaller by the errors on the labels of each rule, held to those of all; (k,)."""
    deviations: Array = message["rule_deviations"]
    if len(deviations) == 1:
        return deviations
    summed = engine.sum("rule_errors", message)
    squares, masses = summed["squares"], summed["masses"]
    mean = float(squares.sum()) / max(float(masses.sum()), 1.0)
    if mean <= 0.0:
        return deviations
    changed: Array = deviations * np.sqrt((squares / mean + SHRINKAGE) / (masses + SHRINKAGE))
    return changed
