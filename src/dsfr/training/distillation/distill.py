"""From a trained mixture to few short rules that reproduce it: the coordinator's side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.lines import LineRules
from dsfr.core.distillation.rounded_rules import Units, rounded_limits, rounded_mean, rounded_predictor
from dsfr.core.distillation.split_sums import Candidates
from dsfr.core.distillation.student import Stage, cheapest, price_of, stages_of
from dsfr.core.distillation.tree import Growth, Tree
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.prediction.link import Link, rounded_hold
from dsfr.core.prediction.mixture import Member, Mixture
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.scores import Scores
from dsfr.core.scaling.affine import Ranges
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.distillation.columns import Columns
from dsfr.training.distillation.fidelity import Measured, measure, stage_squares
from dsfr.training.distillation.growth import Grown, agree_candidates, grow, line_columns
from dsfr.training.distillation.intervals import Errors, calibrate_student
from dsfr.training.distillation.limits import Bending
from dsfr.training.distillation.quantiles import agree_knots
from dsfr.training.distillation.settings import StudentSettings
from dsfr.training.distillation.taught import LeftOutTeacher, deviation_share, teach, teacher_error
from dsfr.training.tasks.checked_engine import checked
from dsfr.training.train import Training

MIN_SHARE = 0.05
"""Part of all rows that a rule has at least."""
LEAST_GAIN = 1e-6
"""Part of the teacher's variance that a split must explain."""
LABELS_TOLERANCE = 0.15
"""What a thing to read must save of the expected error: this part over the number of labels.

The fewer labels, the more of what a teacher has in detail is noise. Chosen on design tables, see ADR 40.
"""
TOLERANCES = (0.0015, 0.02)
"""The least and the largest such part; the latter where labels are unknown."""
HIGH_PRICE, MORE_RULES = 0.05, 2
"""Price above which it is said how many rules a lower one would take, and the factor up to which more are tried."""
DISTANCE_SHARE = 0.5
"""Part of the squared distance to the teacher that adds to the errors on new rows.

The rest is what the teacher makes of noise and a student leaves out. Chosen on the design tables of benchmarks/tables.
"""
FOLLOWED = 0.2
"""Price above which intervals count the student's own errors on the labels instead of the teacher's.

A student so far off the teacher hardly saw the labels, and its errors are not the teacher's made larger. Chosen on
design tables with 200 labels.
"""
CAUTION = 1.0
"""Labels that speak for the deviation of the target when errors are averaged: small ones may be chance.

As in the teacher's intervals, with fewer labels: the student's errors are enlarged already. Chosen on design tables.
"""
USUAL_ERROR = 0.25
"""Mean squared error of a teacher whose leave-one-out error is not known, in variances of its predictions."""
LEAST_ERROR = 1e-6
"""Mean squared error of a teacher at least, in variances of the target: digits beyond it do not matter."""


@dataclass(frozen=True, slots=True)
class Student:
    """Few short rules, and how well they reproduce the teacher."""

    mixture: Mixture
    record: dict[str, Any]
    """Numbers for people: price, fidelity, the curve over numbers of rules; plain values, as JSON holds them."""


@dataclass(frozen=True, slots=True)
class _Lesson:
    """What is known before rules are made."""

    engine: Engine
    units: Units
    target: Bundle
    settings: StudentSettings
    error: float
    """Mean squared error of the teacher, in variances of the target."""
    left_out: LeftOutTeacher | None
    """How that was measured by leave-one-out; None if it was not."""
    typical_row: list[float]
    """Mean of all rows, within limits."""
    n_labeled: float
    """Labels by which the error was measured; 0 if it was not."""

    @property
    def tolerance(self) -> float:
        """What a thing to read must save of the expected error, as a part of it."""
        if self.settings.tolerance is not None:
            return self.settings.tolerance
        return float(np.clip(LABELS_TOLERANCE / max(self.n_labeled, 1.0), *TOLERANCES))


def distill(engine: Engine, training: Training, settings: StudentSettings) -> Student:
    """Train a student of a trained mixture, over the same engine.

    Raises
    ------
    ValueError
        If the teacher has wavelets.
    """
    engine, strongest = checked(engine), training.predictor
    if isinstance(strongest.basis, Wavelets):
        raise ValueError("teacher has wavelets instead of rules: take AutoSFRRegressor or SFRRegressor")
    own_units = training.own_units or (strongest.target_mean, strongest.target_scale)
    units = Units(strongest.ranges, *own_units, strongest.limits)
    with single_threaded_blas():
        products = teach(engine, training.mixture, own_units, training.sample)
        left_out = teacher_error(engine, training.mixture, own_units, deviation_share(products, training.sample))
        measured = training.error if left_out is None else (left_out.error, left_out.n_labeled)
        target = {"target_mean": np.asarray(units.target_mean), "target_scale": np.asarray(units.target_scale)}
        variance = products[-1, -1] / products[0, 0] - (products[0, -1] / products[0, 0]) ** 2
        error = USUAL_ERROR * variance if measured is None else measured[0]
        means = units.ranges.midpoints + units.ranges.half_widths * products[0, 1:-1] / products[0, 0]
        error = max(float(error), LEAST_ERROR)
        n_labeled = 0.0 if measured is None else float(measured[1])
        lesson = _Lesson(engine, units, target, settings, error, left_out, means.tolist(), n_labeled)
        if not training.labels_vary or (measured is not None and not _is_signal(*measured)):
            return _constant(lesson, training)
        return _learn(lesson, products, float(variance), training)


def _is_signal(error: float, n_labeled: float) -> bool:
    """Whether the teacher explains more of the labels by leave-one-out than chance does.

    The mean and the variance of the target are those of all labels, so the error of the mean is 1. A label that is left
    out changes the mean square by about ``1/n``: a smaller gain is none.
    """
    return error < 1.0 - 1.0 / n_labeled


def _constant(lesson: _Lesson, training: Training) -> Student:
    """One rule without conditions and terms: the labels carry no signal."""
    # Labels that do not vary have no deviation by which digits could matter or not.
    error = lesson.error if training.labels_vary else None
    predictor = rounded_mean(len(lesson.units.ranges.low), lesson.units, error)
    return _finished(lesson, predictor, training, [], (), is_signal=False)


def _learn(lesson: _Lesson, products: Array, variance: float, training: Training) -> Student:
    settings, n_features = lesson.settings, len(lesson.units.ranges.low)
    columns = Columns(line_columns(products), lesson.units.ranges)
    quantiles, binary = agree_knots(lesson.engine, lesson.units.ranges)
    if not lesson.engine.only_sums:
        lesson = replace(lesson, units=_within_two_values(lesson.units, quantiles, binary))
    knots = settings.edits.with_fixed(quantiles)
    usable = [j for j in range(n_features) if knots[j, 0] < knots[j, -1] and j not in settings.edits.unconditioned]
    chosen = np.array(agree_candidates(lesson.engine, products, columns, knots, usable), dtype=np.int64)
    candidates = Candidates(chosen, knots[chosen], dict(settings.edits.fixed))
    n = float(products[0, 0])
    least = MIN_SHARE * n, LEAST_GAIN * n * variance
    growth = Growth(candidates, settings.max_conditions, *least, settings.categories)
    bending = _bending(lesson, quantiles, n)
    grown = grow(lesson.engine, growth, columns, Tree.root(), settings.max_rules, bending)
    stages, curve = _curve(lesson, grown, growth)
    chosen_stage = cheapest(stages[: settings.max_rules], lesson.tolerance)
    k = len(chosen_stage.lines)
    # Not where agents may refuse: how many rules would be better is not worth many refusals.
    if curve[-1]["price"] > HIGH_PRICE and len(curve) == settings.max_rules and not lesson.engine.only_sums:
        more = MORE_RULES * settings.max_rules
        larger = grow(lesson.engine, growth, columns, grown.tree, more, bending)
        stages, curve = _curve(lesson, larger, growth, stages)
    predictor = rounded_predictor(
        grown.tree.stages[k - 1], grown.sums_of(k), chosen_stage, columns.features, lesson.units, lesson.error
    )
    return _finished(lesson, predictor, training, curve, tuple(binary), is_signal=True)


def _bending(lesson: _Lesson, knots: Array, n: float) -> Bending | None:
    """What limits lines may have; none where sums alone leave the agents, or features have no limits at all.

    A limit is printed as well: like everything else, it must save its part of the expected error, which is about half
    of the part by which the squared distance drops.
    """
    if lesson.engine.only_sums or lesson.units.limits is None:
        return None
    return Bending(knots, lesson.units.limits, 2.0 * lesson.tolerance * lesson.error * n)


def _within_two_values(units: Units, knots: Array, binary: Sequence[int]) -> Units:
    """Limits of features with two values are these, and not a little beyond: nobody has 1.1 gardens."""
    if units.limits is None or not binary:
        return units
    low, high = units.limits.low.copy(), units.limits.high.copy()
    low[binary], high[binary] = knots[binary, 0], knots[binary, -1]
    return replace(units, limits=Ranges(low, high))


def _curve(
    lesson: _Lesson, grown: Grown, growth: Growth, known: Sequence[Stage] = ()
) -> tuple[list[Stage], list[dict[str, float]]]:
    """Stages by number of rules, and their prices: expected from the distance to the teacher and by leave-one-out."""
    settings = lesson.settings
    categories = _categories(settings.categories, grown.columns)
    rules = LineRules(settings.max_terms, *settings.edits.lines(grown.columns.features), categories)
    conditions = [sum(growth.n_conditions(bounds) for bounds in stage) for stage in grown.tree.stages]
    own = lesson.error, lesson.tolerance
    plane = None if grown.bent is None else grown.bent.plane
    found = stages_of(grown.tree, grown.sums, rules, conditions, *own, known, plane)[len(known) :]
    limited = [replace(stage, limits=grown.limits_of(len(stage.lines))) for stage in found]
    stages = [*known, *limited]
    curve = [
        {"n_rules": float(k), "distance": stage.distance, "price": stage.price, "to_read": float(stage.to_read)}
        for k, stage in enumerate(stages, start=1)
    ]
    if lesson.left_out is not None:
        squares = _stage_squares(lesson, lesson.left_out, grown, stages)
        for entry, square in zip(curve, squares.tolist(), strict=True):
            entry["left_out_error"] = float(np.sqrt(square)) * lesson.units.target_scale
    return stages, curve


def _categories(categories: tuple[tuple[int, ...], ...], columns: Columns) -> tuple[tuple[tuple[int, float], ...], ...]:
    """Columns of lines and half ranges of the categories all of whose indicators lines may have."""
    places = {feature: place + 1 for place, feature in enumerate(columns.features.tolist())}
    halves = columns.ranges.half_widths
    complete = [features for features in categories if all(feature in places for feature in features)]
    return tuple(tuple((places[j], float(halves[j])) for j in features) for features in complete)


def _stage_squares(lesson: _Lesson, left_out: LeftOutTeacher, grown: Grown, stages: Sequence[Stage]) -> Array:
    """Mean squared leave-one-out error of every stage."""
    by_leaf = np.zeros((len(stages), len(grown.tree.leaves), stages[0].lines.shape[1]))
    for place, stage in enumerate(stages):
        for rule, group in enumerate(grown.tree.groups(place + 1)):
            by_leaf[place, group] = stage.lines[rule]
    limits = [stage.limits for stage in stages]
    return stage_squares(lesson.engine, grown, by_leaf, limits, lesson.target, left_out)


def _finished(
    lesson: _Lesson,
    predictor: Predictor,
    training: Training,
    curve: list[dict[str, float]],
    binary: tuple[int, ...],
    *,
    is_signal: bool,
) -> Student:
    """The student with its measures and the scores of its intervals."""
    found = measure(lesson.engine, predictor, lesson.target, lesson.units.ranges)
    scores = _scores(lesson, predictor, found, training, is_signal=is_signal)
    widest = predictor.limits if lesson.units.limits is None else rounded_limits(lesson.units.limits)
    shown = replace(predictor, shares=found.shares, seen=_seen(widest, training.predictor.domain))
    scale, alone = lesson.units.target_scale, found.strongest_distance
    record = {
        "is_signal": is_signal,
        "price": price_of(found.distance, lesson.error),
        "strongest_price": None if alone is None else price_of(alone, lesson.error),
        "fidelity": found.fidelity,
        "overlap": found.overlap,
        "coverage": found.coverage.tolist(),
        "outputs": found.outputs.tolist(),
        "teacher_error": float(np.sqrt(lesson.error)) * scale if lesson.left_out is not None else None,
        "teacher_weights": sum(len(member.predictor.weights) for member in training.mixture.members),
        "teacher_members": len(training.mixture.members),
        "typical_row": lesson.typical_row,
        "max_rules": lesson.settings.max_rules,
        "curve": curve,
        "binary": list(binary),
        "fixed": sorted(lesson.settings.edits.fixed),
    }
    link = rounded_hold(training.mixture.link) if is_signal else Link()
    return Student(Mixture((Member(shown, 1.0),), scores, link, training.mixture.density), record)


def _seen(limits: Ranges | None, domain: Ranges) -> Ranges:
    """The domain of the teacher, as far as it follows features: rows beyond a limit of lines are usual ones."""
    if limits is None:
        return domain
    return Ranges(np.maximum(limits.low, domain.low), np.minimum(limits.high, domain.high))


def _scores(
    lesson: _Lesson, predictor: Predictor, found: Measured, training: Training, *, is_signal: bool
) -> Scores | None:
    """Scores of the intervals: from the teacher's errors where the student follows it, else from its own."""
    if lesson.left_out is None or found.deviations is None:
        return None
    n = lesson.left_out.n_labeled
    follows = is_signal and price_of(found.distance, lesson.error) <= FOLLOWED
    further = price_of(DISTANCE_SHARE * found.distance, lesson.error) if follows else 0.0
    caution = lesson.error ** (-0.5 * CAUTION / (n + CAUTION))
    factor = training.optimism * (1.0 + further) * caution if is_signal else n / max(n - 1.0, 1.0)
    errors = Errors(n, factor, follows)
    density = training.mixture.density
    return calibrate_student(lesson.engine, predictor, lesson.target, found.deviations, density, errors)
