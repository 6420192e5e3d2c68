"""How well the student reproduces the teacher and the labels: measured over all rows, and for intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.rounded_rules import as_predictor
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.rule_deviations import deviations_by_rule
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.distillation.columns import CONDITIONS, LINE_FEATURES
from dsfr.training.distillation.growth import Grown
from dsfr.training.distillation.taught import (
    KEPT_DEVIATIONS,
    KEPT_LEFT_OUT,
    KEPT_TEACHER,
    LeftOutTeacher,
    left_out,
    taught_blocks,
)
from dsfr.training.ensemble.calibration import label_weights, labeled_sample
from dsfr.training.ensemble.teacher import own_targets
from dsfr.training.scaling.robust import KEPT_LIMITS, LIMIT_FIELDS
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array, at_least, not_below, optional, within
from dsfr.training.tasks.fields import COUNT, FLAG, RANGES, SCORE, TARGET
from dsfr.training.tasks.messages import pack, scalar, unpack
from dsfr.training.tasks.registry import task

STUDENT = {
    **CONDITIONS,
    "student_weights": array("k(d+1)", rules=(within(-1e201, 1e201),)),
    "student_low": optional(LIMIT_FIELDS["limit_low"]),
    "student_high": replace(array("d", rules=(not_below("student_low"),)), beside="student_low"),
}
"""The rules, with lines in the units of the data."""


@task(
    verb="sum",
    stage="distillation",
    reveals="How well rules predict the agent's labels: products of their errors with each other and with how far "
    "labels move the teacher. With `uncertainty=True`.",
    broadcast={
        **CONDITIONS,
        **LINE_FEATURES,
        **TARGET,
        "stage_lines": array("z", "k", "u+1", rules=(within(-1e50, 1e50),)),
        "stage_low": optional(array("z", "d")),
        "stage_high": replace(array("z", "d", rules=(not_below("stage_low"),)), beside="stage_low"),
    },
    contributes={"squares": array("z", rules=(at_least(0.0),)), "products": array("z")},
    needs=("seed", *KEPT_LEFT_OUT),
    recalls=KEPT_LIMITS,
    limited=False,
)
def stage_errors(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): squared errors of students of several numbers of rules on the own labels; products with shifts."""
    sample = labeled_sample(shard, int(memory["seed"]))
    X, y, weights = sample.X, sample.y, label_weights(sample)
    if "limit_low" in memory:
        X = Ranges(memory["limit_low"], memory["limit_high"]).clip(X)
        y = np.clip(y, *memory["target_limits"])
    targets = (own_targets(y, memory) - float(broadcast["target_mean"])) / float(broadcast["target_scale"])
    strengths = LinguisticRules.of_arrays(broadcast).strengths(X)
    outputs = [np.einsum("ku,nu->nk", lines, U) for lines, U in _stage_columns(X, broadcast)]
    errors = targets - np.einsum("znk,nk->zn", np.stack(outputs), strengths)
    return memory, {
        "squares": errors**2 @ weights,
        "products": errors @ (weights * left_out(memory, "left_out_shifts", len(y))),
    }


def _stage_columns(X: Array, broadcast: Bundle) -> Iterator[tuple[Array, Array]]:
    """Lines of every stage, and the constant and the scaled features, within its limits, that these take."""
    ranges, columns = unpack(Ranges, broadcast), broadcast["line_features"]
    for stage, lines in enumerate(broadcast["stage_lines"]):
        rows = X
        if "stage_low" in broadcast:
            rows = Ranges(broadcast["stage_low"][stage], broadcast["stage_high"][stage]).clip(X)
        yield lines, np.column_stack([np.ones(len(X)), scale_features(rows, ranges)[:, columns]])


@task(
    verb="sum",
    stage="distillation",
    reveals="Averages of known functions over the agent's rows: strengths of rules and distances of predictions.",
    broadcast={**STUDENT, **TARGET, **RANGES, "masses_alone": optional(FLAG)},
    contributes={
        "teacher_total": array(),
        "teacher_square": SCORE,
        "distance": SCORE,
        "strongest_distance": SCORE,
        "masses": array("k", rules=(at_least(0.0),)),
        "strongest": array("k", rules=(at_least(0.0),)),
        "outputs": array("k"),
        "overlap": SCORE,
        "n_samples": COUNT,
        "variances": optional(array("k", rules=(at_least(0.0),))),
        "sampled": replace(array("k", rules=(at_least(0.0),)), beside="variances"),
    },
    needs=KEPT_TEACHER,
    recalls=KEPT_DEVIATIONS,
)
def measure_student(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): distance of the student, and of its strongest rule alone, to the teacher; coverage of its rules.

    Where deviations from the teacher are kept, also their squares plus those of the distance, by rule.
    """
    student, k = unpack_student(broadcast), broadcast["first_terms"].shape[0]
    mean, scale = float(broadcast["target_mean"]), float(broadcast["target_scale"])
    numbers, masses, strongest, outputs = np.zeros(5), np.zeros(k), np.zeros(k), np.zeros(k)
    known, spread = memory.get("teacher_deviations"), np.zeros((2, k))
    for X, U in taught_blocks(shard, memory, broadcast, np.empty(0, dtype=np.int64)):
        W, L = strengths_and_lines(student, X)
        L, t, best = (L - mean) / scale, U[:, -1], W.argmax(axis=1)
        predictions = np.einsum("nk,nk->n", W, L)
        # Few rows can be those where a rule is the strongest, so agents may refuse to sum over them.
        alone = predictions if "masses_alone" in broadcast else L[np.arange(len(L)), best]
        overlap = 1.0 - W[np.arange(len(W)), best]
        squares = (t, t**2, (t - predictions) ** 2, (t - alone) ** 2, overlap)
        numbers += [part.sum() for part in squares]
        masses += W.sum(axis=0)
        strongest += W.sum(axis=0) if "masses_alone" in broadcast else np.bincount(best, minlength=k)
        outputs += np.einsum("nk,nk->k", W, L)
        if known is not None:
            own, known = known[: len(X)], known[len(X) :]
            spread += [W.T @ np.where(own > 0.0, own**2 + (t - predictions) ** 2, 0.0), W.T @ (own > 0.0)]
    names = ("teacher_total", "teacher_square", "distance", "strongest_distance", "overlap")
    sums = {name: scalar(value) for name, value in zip(names, numbers.tolist(), strict=True)}
    counts = {"masses": masses, "strongest": strongest, "outputs": outputs}
    n_samples = scalar(len(memory["teacher"]))
    by_rule = {} if known is None else {"variances": spread[0], "sampled": spread[1]}
    return memory, {**sums, **counts, "n_samples": n_samples, **by_rule}


def unpack_student(broadcast: Bundle) -> Predictor:
    """The student of a broadcast."""
    rules = LinguisticRules.of_arrays(broadcast)
    limits = Ranges(broadcast["student_low"], broadcast["student_high"]) if "student_low" in broadcast else None
    return as_predictor(rules, broadcast["student_weights"], np.full(rules.n_rules, 1.0 / rules.n_rules), limits)


def student_arrays(student: Predictor) -> Bundle:
    """The broadcast of a student."""
    limits = {} if student.limits is None else {"student_low": student.limits.low, "student_high": student.limits.high}
    return {**student.basis.arrays(), "student_weights": student.weights, **limits}


def strengths_and_lines(student: Predictor, X: Array) -> tuple[Array, Array]:
    """Strengths and outputs of all rules for rows in the units of the data; shapes (n, k)."""
    assert isinstance(student.basis, LinguisticRules)
    within_limits = student.within_limits(X)
    lines = student.weights.reshape(student.basis.n_rules, -1)
    return student.basis.strengths(within_limits), lines[:, 0] + within_limits @ lines[:, 1:].T


@dataclass(frozen=True, slots=True)
class Measured:
    """Measures of a student over all rows."""

    fidelity: float
    """R^2 of its predictions as predictions of the teacher's."""
    distance: float
    """Mean squared distance to the teacher, in variances of the target."""
    strongest_distance: float | None
    """The same if the strongest rule alone answers; None where sums alone leave the agents, because it is not known."""
    shares: Array
    """Share of all strengths of every rule; (k,)."""
    coverage: Array
    """Share of the rows on which every rule is the strongest; where sums alone leave the agents, `shares`; (k,)."""
    outputs: Array
    """Mean output of every rule over its rows, in the target's units; (k,)."""
    overlap: float
    """Mean strength of all rules but the strongest."""
    deviations: Array | None
    """Root mean squared deviation of new observations by rule, standardised; None if agents know none; (k,)."""


def measure(engine: Engine, student: Predictor, target: Bundle, ranges: Ranges) -> Measured:
    """Measures of the student, in one round."""
    alone = {"masses_alone": scalar(1.0)} if engine.only_sums else {}
    summed = engine.sum("measure_student", {**student_arrays(student), **target, **pack(ranges), **alone})
    n, masses = float(summed["n_samples"]), summed["masses"]
    variance = float(summed["teacher_square"]) / n - (float(summed["teacher_total"]) / n) ** 2
    distance = float(summed["distance"]) / n
    outputs = summed["outputs"] / np.maximum(masses, np.finfo(np.float64).tiny)
    return Measured(
        fidelity=1.0 - distance / variance if variance > 0.0 else 1.0,
        distance=distance,
        strongest_distance=None if engine.only_sums else float(summed["strongest_distance"]) / n,
        shares=masses / masses.sum(),
        coverage=summed["strongest"] / n,
        outputs=float(target["target_mean"]) + float(target["target_scale"]) * outputs,
        overlap=float(summed["overlap"]) / n,
        deviations=deviations_by_rule(summed["variances"], summed["sampled"]) if "variances" in summed else None,
    )


def stage_squares(
    engine: Engine,
    grown: Grown,
    lines: Array,
    limits: Sequence[Ranges | None],
    target: Bundle,
    teacher: LeftOutTeacher,
) -> Array:
    """Mean squared leave-one-out errors of students of several numbers of rules, in variances of the target; (z,).

    ``lines`` has the lines of all leaves, for every number of rules, shape (z, k, u + 1), and ``limits`` between which
    values these follow features. A student follows the teacher in part: where a label pulls the teacher, the distance
    between both shows how much of that the student does not follow. The rest is how far it moves when the label is left
    out.
    """
    rules = grown.tree.rules(grown.columns.n_features)
    message = {**rules.arrays(), **grown.columns.message(), "stage_lines": lines, **target}
    message |= {} if None in limits else _stage_limits([own for own in limits if own is not None])
    summed = engine.sum("stage_errors", message)
    squares, products = summed["squares"] / teacher.n_labeled, summed["products"] / teacher.n_labeled
    if teacher.moved <= 0.0:
        return squares
    follows = 1.0 - np.clip((products - teacher.pulled) / teacher.moved, 0.0, 1.0)
    return np.maximum(squares + 2.0 * follows * products + follows**2 * teacher.moved, 0.0)


def _stage_limits(limits: Sequence[Ranges]) -> Bundle:
    return {
        "stage_low": np.stack([own.low for own in limits]),
        "stage_high": np.stack([own.high for own in limits]),
    }
