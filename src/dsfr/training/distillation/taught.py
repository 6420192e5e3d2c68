"""What the student learns from: the teacher's predictions of all rows, which stay with the agents."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.distillation.lines import matrices
from dsfr.core.prediction.link import Link
from dsfr.core.prediction.mixture import Mixture
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.ensemble.calibration import label_weights, labeled_sample
from dsfr.training.ensemble.teacher import (
    LINKED,
    left_out_averages,
    link_arrays,
    mixture_arrays,
    mixture_predictions,
    on_own_scale,
    own_targets,
)
from dsfr.training.scaling.robust import KEPT_LIMITS
from dsfr.training.shard import ForeignMemoryError, Shard
from dsfr.training.tasks.declaration import array, optional
from dsfr.training.tasks.fields import COUNT, MIXTURE, MIXTURE_WITH_FACTORS, SAMPLE, SCORE
from dsfr.training.tasks.messages import ask_sample, sample_in, scalar, unpack, upper_triangle
from dsfr.training.tasks.registry import remember, task
from dsfr.training.tasks.semidefinite import gram_triangle

KEPT_TEACHER = remember(__name__, {"teacher": array("n"), "taught_sample": SAMPLE})
"""Predictions of the teacher for rows of a sample, in deviations of the target on its own scale, and its share."""
KEPT_SHIFTS = remember(__name__, {"left_out_shifts": array("e")})
"""By how much the teacher's prediction of a labelled row moves towards its label because it is not left out."""


@task(
    verb="sum",
    stage="distillation",
    reveals="Averages of known functions over the agent's rows: products of features, and of features and predictions.",
    broadcast={**MIXTURE, **LINKED, "sample": optional(SAMPLE)},
    contributes={"products": array("(d+2)(d+3)/2", rules=(gram_triangle("d+2"),))},
    remembers=KEPT_TEACHER,
)
def keep_teacher(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): keep the teacher's predictions of the own rows; products of features and predictions."""
    share = sample_in(broadcast)
    parts = [mixture_predictions(X, broadcast, fast=shard.fast) for X, _ in shard.sampled(share).batches()]
    predictions = on_own_scale(np.concatenate([np.empty(0), *parts]), broadcast)
    kept = {**memory, "teacher": predictions, "taught_sample": scalar(share)}
    size = shard.n_features + 2
    products = np.zeros((size, size))
    for _, U in taught_blocks(shard, kept, broadcast, np.arange(shard.n_features)):
        products += U.T @ U
    return kept, {"products": upper_triangle(products)}


@task(
    verb="sum",
    stage="distillation",
    reveals="How well the labels of others predict the agent's: a squared leave-one-out error. With "
    "`uncertainty=True`.",
    broadcast={**MIXTURE_WITH_FACTORS, **LINKED},
    contributes={"square": SCORE, "n_labeled": COUNT},
    needs=("seed",),
    recalls=(*KEPT_LIMITS, "label_groups"),
    remembers=KEPT_SHIFTS,
    limited=False,
)
def teacher_errors(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): squared leave-one-out errors of the teacher on the own labels; keep how far its predictions move."""
    labels = labeled_sample(shard, int(memory["seed"]))
    sample, weights = Shard(labels, shard.key).within_limits(memory), label_weights(labels)
    left_out = on_own_scale(left_out_averages(sample, memory, broadcast), broadcast)
    shifts, square = np.zeros(len(weights)), 0.0
    for start, (within, known) in _counted(sample):
        here = slice(start, start + len(known))
        targets = (own_targets(known, memory) - float(broadcast["own_mean"])) / float(broadcast["own_scale"])
        shifts[here] = on_own_scale(mixture_predictions(within, broadcast), broadcast) - left_out[here]
        square += float(weights[here] @ (targets - left_out[here]) ** 2)
    return {**memory, "left_out_shifts": shifts}, {"square": scalar(square), "n_labeled": scalar(weights.sum())}


def _counted(shard: Shard) -> Iterator[tuple[int, tuple[Array, Array]]]:
    """Batches of rows, each with the number of rows before it."""
    passed = 0
    for X, y in shard.batches():
        yield passed, (X, y)
        passed += len(y)


def taught_rows(shard: Shard, memory: Bundle) -> Shard:
    """The rows that the student learns from."""
    return shard.sampled(float(memory["taught_sample"]))


def taught_blocks(shard: Shard, memory: Bundle, broadcast: Bundle, columns: IntArray) -> Iterator[tuple[Array, Array]]:
    """Rows, not scaled, and the columns 1, scaled features and the teacher's prediction, block by block.

    Raises
    ------
    ForeignMemoryError
        If the predictions in memory are not those of the shard's rows.
    """
    teacher, ranges, shard = memory["teacher"], unpack(Ranges, broadcast), taught_rows(shard, memory)
    if len(teacher) != shard.n_samples:
        raise ForeignMemoryError(f"'teacher' predicts {len(teacher)} rows, and the agent has {shard.n_samples}")
    for start, (X, _) in _counted(shard):
        for block in row_blocks(len(X)):
            rows = X[block].astype(np.float64)
            predictions = teacher[start + block.start : start + block.stop]
            yield rows, np.column_stack([np.ones(len(rows)), scale_features(rows, ranges)[:, columns], predictions])


def teach(engine: Engine, mixture: Mixture, own_units: tuple[float, float], sample: float | None) -> Array:
    """Have agents keep the teacher's predictions; products of the constant, all features and these predictions.

    Of a share of the rows, if one is given, here and in all that follows.
    """
    # Limits of values are thresholds that can be anywhere: where sums alone leave the agents, there are none.
    linked = link_arrays(Link() if engine.only_sums else mixture.link, *own_units)
    summed = engine.sum("keep_teacher", mixture_arrays(mixture, with_factors=False) | linked | ask_sample(sample))
    return matrices(summed["products"], mixture.strongest.n_features + 2)


def teacher_error(engine: Engine, mixture: Mixture, own_units: tuple[float, float]) -> tuple[float, float] | None:
    """Mean squared leave-one-out error of the teacher, in variances of the target, and the number of labels.

    None if the teacher was trained without uncertainty.
    """
    if any(member.posterior is None for member in mixture.members):
        return None
    linked = link_arrays(mixture.link, *own_units)
    summed = engine.sum("teacher_errors", mixture_arrays(mixture, with_factors=True) | linked)
    n = float(summed["n_labeled"])
    return float(summed["square"]) / n, n


def left_out_shifts(memory: Bundle, n_labels: int) -> Array:
    """How far the teacher's prediction of every own label moves when it is left out, as `teacher_errors` kept them.

    Raises
    ------
    ForeignMemoryError
        If they are those of another number of labels.
    """
    shifts: Array = memory["left_out_shifts"]
    if len(shifts) != n_labels:
        raise ForeignMemoryError(f"'left_out_shifts' are of {len(shifts)} labels, and the agent has {n_labels}")
    return shifts
