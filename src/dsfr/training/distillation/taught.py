"""What the student learns from: the teacher's predictions of all rows, which stay with the agents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.distillation.lines import matrices
from dsfr.core.prediction.link import Link
from dsfr.core.prediction.mixture import Mixture
from dsfr.core.sampling import highest_hash, in_sample
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.ensemble.calibration import label_weights, labeled_sample
from dsfr.training.ensemble.teacher import (
    LINKED,
    left_out_averages,
    link_arrays,
    mixture_arrays,
    mixture_deviations,
    mixture_predictions,
    on_own_scale,
    own_targets,
)
from dsfr.training.rows import ArrayRows
from dsfr.training.scaling.robust import KEPT_LIMITS
from dsfr.training.shard import ForeignMemoryError, Shard
from dsfr.training.tasks.declaration import array, at_least, number, optional
from dsfr.training.tasks.fields import COUNT, MIXTURE, MIXTURE_WITH_FACTORS, SAMPLE, SCORE
from dsfr.training.tasks.messages import ask_sample, sample_in, scalar, unpack, upper_triangle
from dsfr.training.tasks.registry import remember, task
from dsfr.training.tasks.semidefinite import gram_triangle

KEPT_TEACHER = remember(__name__, {"teacher": array("n"), "taught_sample": SAMPLE})
"""Predictions of the teacher for rows of a sample, in deviations of the target on its own scale, and its share."""
KEPT_LEFT_OUT = remember(__name__, {name: array("e") for name in ("left_out_shifts", "left_out_predictions")})
"""The teacher's predictions of labelled rows without their labels, and how far the labels move them; standardised."""
KEPT_DEVIATIONS = remember(__name__, {"teacher_deviations": array("n", rules=(at_least(0.0),))})
"""Deviations of new observations from the teacher, as `KEPT_TEACHER`; 0 of rows that are not in a smaller sample."""
DEVIATION_ROWS = 2000
"""Rows of all agents for which these are computed: means over the rows of a rule are taken of them."""


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
    reveals="How well the labels of others predict the agent's: products of leave-one-out errors. With "
    "`uncertainty=True`.",
    broadcast={**MIXTURE_WITH_FACTORS, **LINKED, "sample": SAMPLE},
    contributes={"square": SCORE, "moved": SCORE, "pulled": number(), "n_labeled": COUNT},
    needs=("seed", "taught_sample"),
    recalls=(*KEPT_LIMITS, "label_groups"),
    remembers=(*KEPT_LEFT_OUT, *KEPT_DEVIATIONS),
    limited=False,
)
def teacher_errors(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): squared leave-one-out errors of the teacher on the own labels; keep what it says without them.

    Also the squares of how far labels move its predictions, and the products of that with its residuals.
    """
    labels = labeled_sample(shard, int(memory["seed"]))
    sample, weights = Shard(labels, shard.key).within_limits(memory), label_weights(labels)
    left_out = on_own_scale(left_out_averages(sample, memory, broadcast), broadcast)
    shifts, errors = np.zeros(len(weights)), np.zeros(len(weights))
    for start, (within, known) in _counted(sample):
        here = slice(start, start + len(known))
        targets = (own_targets(known, memory) - float(broadcast["own_mean"])) / float(broadcast["own_scale"])
        shifts[here] = on_own_scale(mixture_predictions(within, broadcast), broadcast) - left_out[here]
        errors[here] = targets - left_out[here]
    products = {"square": errors**2, "moved": shifts**2, "pulled": (errors - shifts) * shifts}
    sums = {name: scalar(float(weights @ values)) for name, values in products.items()}
    deviations = _sampled_deviations(taught_rows(shard, memory), memory, broadcast)
    kept = {"left_out_shifts": shifts, "left_out_predictions": left_out, "teacher_deviations": deviations}
    return {**memory, **kept}, {**sums, "n_labeled": scalar(weights.sum())}


def _sampled_deviations(shard: Shard, memory: Bundle, broadcast: Bundle) -> Array:
    """Deviations of the rows of a sample, 0 of all others; (n,)."""
    deviations, share = np.zeros(shard.n_samples), float(broadcast["sample"])
    for start, (X, y) in _counted(shard):
        chosen = np.arange(len(X)) if share >= 1.0 else np.flatnonzero(in_sample(X, highest_hash(share)))
        rows = Shard(ArrayRows(X[chosen], y[chosen]), shard.key).within_limits(memory)
        for first, (within, _) in _counted(rows):
            for block in row_blocks(len(within)):
                here = start + chosen[first + block.start : first + block.stop]
                deviations[here] = mixture_deviations(within[block].astype(np.float64), broadcast)
    return deviations


def _counted(shard: Shard) -> Iterator[tuple[int, tuple[Array, Array]]]:
    """Batches of rows, each with the number of rows before it."""
    passed = 0
    for X, y in shard.batches():
        yield passed, (X, y)
        passed += len(y)


def taught_rows(shard: Shard, memory: Bundle) -> Shard:
    """The rows that the student learns from."""
    return shard.sampled(float(memory["taught_sample"]))


def taught_blocks(
    shard: Shard, memory: Bundle, broadcast: Bundle, columns: IntArray, limits: Ranges | None = None
) -> Iterator[tuple[Array, Array]]:
    """Rows, not scaled, and the columns 1, scaled features and the teacher's prediction, block by block.

    With limits, these columns are of the features within them; the rows are as they are.

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
            scaled = scale_features(rows if limits is None else limits.clip(rows), ranges)
            yield rows, np.column_stack([np.ones(len(rows)), scaled[:, columns], predictions])


def teach(engine: Engine, mixture: Mixture, own_units: tuple[float, float], sample: float | None) -> Array:
    """Have agents keep the teacher's predictions; products of the constant, all features and these predictions.

    Of a share of the rows, if one is given, here and in all that follows.
    """
    # Limits of values are thresholds that can be anywhere: where sums alone leave the agents, there are none.
    linked = link_arrays(Link() if engine.only_sums else mixture.link, *own_units)
    summed = engine.sum("keep_teacher", mixture_arrays(mixture, with_factors=False) | linked | ask_sample(sample))
    return matrices(summed["products"], mixture.strongest.n_features + 2)


@dataclass(frozen=True, slots=True)
class LeftOutTeacher:
    """How well the teacher predicts labels that are left out, and how far they move it; means, in target variances."""

    error: float
    """Mean squared error."""
    n_labeled: float
    moved: float
    """Mean square of how far a label moves the prediction of its own row."""
    pulled: float
    """Mean product of that with the residual that remains."""


def deviation_share(products: Array, sample: float | None) -> float:
    """Share of all rows whose deviations from the teacher are computed, from the number of those that it teaches."""
    return min(1.0, DEVIATION_ROWS / float(products[0, 0])) * (1.0 if sample is None else sample)


def teacher_error(
    engine: Engine, mixture: Mixture, own_units: tuple[float, float], share: float
) -> LeftOutTeacher | None:
    """Leave-one-out errors of the teacher; None if it was trained without uncertainty.

    Agents keep deviations from the teacher of a ``share`` of all rows.
    """
    if any(member.posterior is None for member in mixture.members):
        return None
    sample = {"sample": scalar(share)}
    message = mixture_arrays(mixture, with_factors=True) | link_arrays(mixture.link, *own_units) | sample
    summed = engine.sum("teacher_errors", message)
    n = float(summed["n_labeled"])
    return LeftOutTeacher(float(summed["square"]) / n, n, float(summed["moved"]) / n, float(summed["pulled"]) / n)


def left_out(memory: Bundle, name: str, n_labels: int) -> Array:
    """What `teacher_errors` kept of every own label, one of `KEPT_LEFT_OUT`.

    Raises
    ------
    ForeignMemoryError
        If it is of another number of labels.
    """
    values: Array = memory[name]
    if len(values) != n_labels:
        raise ForeignMemoryError(f"{name!r} are of {len(values)} labels, and the agent has {n_labels}")
    return values
