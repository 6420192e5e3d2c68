"""Scaling that a few odd rows cannot spoil: limits from quantiles, found by counting, and deviations within them.

A feature is not followed to where no label can be: with n labels, beyond the quantiles 1/n and 1 - 1/n of all rows less
than one labelled row is expected. Values farther from these than they are from each other count as lying that far. A
target farther than ``sqrt(n/2)`` interquartile ranges from the quartiles counts as lying there: so no single label adds
more to the squared error than half an interquartile range squared for every label there is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import CHUNK_ROWS, Array, row_blocks
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.core.scaling.quantiles import MAX_ROUNDS, N_THRESHOLDS, Brackets, counts_below
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.scaling.declared import MOST_UNSTATED, declared_look
from dsfr.training.scaling.row_sums import ask_moments
from dsfr.training.scaling.survey import UNSEEN, FirstLook, Population, first_look, survey
from dsfr.training.shard import LIMITS, Shard
from dsfr.training.tasks.declaration import array, at_least, not_below, optional
from dsfr.training.tasks.fields import ASCENDING, COUNT, SAMPLE
from dsfr.training.tasks.messages import ask_sample, sample_in, scalar
from dsfr.training.tasks.registry import remember, task

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

LEAST_CUT = 0.001
"""Rows cut off on each side at least, however many labels there are: a single far-off row needs no line of its own."""
MOST_CUT = 0.05
"""Rows cut off on each side at most, however few labels there are."""
BEYOND = 1.0
"""How far beyond its quantiles a feature is followed, in units of their distance: what is linear goes on that far."""
FAR_BEYOND = 3.0
"""The same, where labels show that the target goes on with the features."""
ODD = 100.0
"""Distances between the limits by which a target beyond them is worth a warning."""
LIMIT_FIELDS = {
    "limit_low": array("d"),
    "limit_high": array("d", rules=(not_below("limit_low"),)),
    "target_limits": array(2, rules=(ASCENDING,)),
}
KEPT_LIMITS = remember(
    __name__,
    {
        "limit_low": optional(LIMIT_FIELDS["limit_low"]),
        "limit_high": replace(LIMIT_FIELDS["limit_high"], beside="limit_low"),
        "target_limits": replace(LIMIT_FIELDS["target_limits"], beside="limit_low"),
    },
)


@task(
    verb="sum",
    stage="survey",
    reveals="The distribution of every feature and of the target, one column at a time; a lone value far off can be "
    'found exactly. With `scaling="robust"`.',
    broadcast={
        "thresholds": array(2, "d", N_THRESHOLDS, rules=(ASCENDING,)),
        "target_thresholds": array(2, N_THRESHOLDS, rules=(ASCENDING,)),
        "sample": optional(SAMPLE),
    },
    contributes={
        "counts": array(2, "d", N_THRESHOLDS, rules=(at_least(0.0),)),
        "target_counts": array(2, N_THRESHOLDS, rules=(at_least(0.0),)),
        "n_samples": COUNT,
        "n_labeled": COUNT,
    },
)
def count_below(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): how many values of each feature, and of the target, lie at or below each threshold.

    With a sample, features of its rows and targets of all.
    """
    sample = shard.sampled(sample_in(broadcast))
    thresholds, target = broadcast["thresholds"], broadcast["target_thresholds"]
    counts, target_counts = np.zeros_like(thresholds), np.zeros_like(target)
    for _, y in shard.labeled().batches():
        target_counts += [counts_below(y, row) for row in target]
    for X, _ in sample.batches():
        for j in range(shard.n_features):
            counts[:, j] += [counts_below(X[:, j], row) for row in thresholds[:, j]]
    n_samples, n_labeled = scalar(sample.n_samples), scalar(shard.n_labeled)
    return memory, {"counts": counts, "target_counts": target_counts, "n_samples": n_samples, "n_labeled": n_labeled}


@task(
    verb="sum",
    stage="survey",
    reveals='Mean and deviation of the agent\'s features. With `scaling="robust"`.',
    broadcast=LIMIT_FIELDS,
    contributes={"total": array("d"), "square": array("d", rules=(at_least(0.0),)), "n_samples": COUNT},
    remembers=LIMITS,
)
def moments_within_limits(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): keep the limits; add up the features within them, and their squares, in units of the limits."""
    limits = Ranges(broadcast["limit_low"], broadcast["limit_high"])
    total, square = np.zeros(shard.n_features), np.zeros(shard.n_features)
    for X, _ in shard.batches():
        for block in row_blocks(len(X), CHUNK_ROWS):
            scaled = scale_features(X[block], limits)
            total += scaled.sum(axis=0)
            square += (scaled**2).sum(axis=0)
    kept = {name: broadcast[name] for name in LIMITS}
    return {**memory, **kept}, {"total": total, "square": square, "n_samples": scalar(shard.n_samples)}


def agree_scaling(
    engine: Engine,
    settings: Settings,
    *,
    log: bool = False,
    sample: float | None = None,
    limit_target: bool = True,
    is_far: bool = False,
) -> Population:
    """Ranges and target as the settings have it: declared, by extremes in two rounds, or robustly in a few more.

    With ``log``, agents learn logarithms of their targets from then on, until the next survey. Targets must be positive
    then, and extremes must not be declared. ``sample`` is the share of the rows that suffices for quantiles. Without
    ``limit_target``, targets count as they are however far off they lie; ``is_far`` follows features farther.
    """
    if engine.only_sums:
        look = declared_look(engine, settings)
        population = look.population(engine.sum("agree", look.message()))
        return replace(population, unstated=_unstated(engine, population))
    if not settings.scaling.is_robust:
        return replace(survey(engine, settings, log=log), sample=sample)
    look = first_look(engine, settings, log=log)
    limits, target, units = _find_limits(engine, look, ask_sample(sample), FAR_BEYOND if is_far else BEYOND)
    target = target if limit_target else _ends(look)
    message = {"limit_low": limits.low, "limit_high": limits.high, "target_limits": target}
    ranges = _deviations(engine.sum("moments_within_limits", message), limits, units)
    odd, ends, row_ranges = _odd_target(target, look), look.target_ends, look.ranges
    low, high = target / 2.0  # the sum and the difference of the whole may overflow
    middle, half = float(low + high), float(high - low)
    look = replace(look, ranges=ranges, target_origin=middle, target_unit=half if half > 0.0 else 1.0)
    population = look.population(engine.sum("agree", look.message() | ask_moments(len(ranges.low))))
    population = replace(population, limits=limits, row_ranges=row_ranges, target_limits=target)
    return replace(population, odd_target=odd, target_ends=ends, sample=sample, is_far=is_far)


def _unstated(engine: Engine, population: Population) -> float:
    """Labels that agents do not count when they limit weights by labels."""
    stated = engine.stated_labels
    return MOST_UNSTATED * engine.n_agents if stated is None else max(population.n_labeled - stated, 0.0)


def _find_limits(engine: Engine, look: FirstLook, sample: Bundle, beyond: float) -> tuple[Ranges, Array, Array]:
    """Limits of features and target, and the smallest units of the features, in those of their limits."""
    features = Brackets(np.stack([look.ranges.low] * 2), np.stack([look.ranges.high] * 2))
    unit = look.target_unit
    quartiles = Brackets(np.full(2, look.target_origin - unit), np.full(2, look.target_origin + unit))
    for _ in range(MAX_ROUNDS):
        asked = {"thresholds": features.thresholds(), "target_thresholds": quartiles.thresholds()}
        counted = engine.sum("count_below", asked | sample)
        n_samples, n_labeled = float(counted["n_samples"]), float(counted["n_labeled"])
        cut = float(np.clip(1.0 / n_labeled, LEAST_CUT, MOST_CUT))
        wanted = np.ceil(n_samples * np.array([cut, 1.0 - cut]))[:, None]
        features = features.narrowed(counted["counts"], np.broadcast_to(wanted, features.low.shape))
        quartiles = quartiles.narrowed(counted["target_counts"], np.ceil(n_labeled * np.array([0.25, 0.75])))
        if features.are_narrow() and quartiles.are_narrow():
            break
    limits, is_rare = _feature_limits(features.high, look.ranges, beyond)
    # As if one row in n varied, with n labels: the least unit that a column has which is not rare.
    units = np.where(is_rare, 2.0 / np.sqrt(n_labeled), 0.0)
    return limits, _target_limits(quartiles.high, look, n_labeled), units


def _feature_limits(quantiles: Array, ranges: Ranges, beyond: float) -> tuple[Ranges, Array]:
    """Limits of the features, and which of them hardly ever vary (columns of few ones, say): these keep their range."""
    is_rare = quantiles[0] == quantiles[1]
    with np.errstate(over="ignore"):
        reach = beyond * (quantiles[1] - quantiles[0])
        low, high = quantiles[0] - reach, quantiles[1] + reach
    farthest = ranges.widened(UNSEEN)
    low, high = np.maximum(low, farthest.low), np.minimum(high, farthest.high)
    return Ranges(np.where(is_rare, ranges.low, low), np.where(is_rare, ranges.high, high)), is_rare


def _target_limits(quartiles: Array, look: FirstLook, n_labeled: float) -> Array:
    """Limits of the target, never wider than the targets are; none but these where half of them are equal."""
    ends = _ends(look)
    with np.errstate(over="ignore"):
        reach = float(np.sqrt(n_labeled / 2.0) * (quartiles[1] - quartiles[0]))
        if not 0.0 < reach < np.inf:
            return ends
        limits: Array = np.clip(quartiles + np.array([-reach, reach]), *ends)
    return limits


def _ends(look: FirstLook) -> Array:
    """The lowest and the highest target."""
    ends: Array = look.target_origin + look.target_unit * np.array([-1.0, 1.0])
    return ends


def _odd_target(limits: Array, look: FirstLook) -> tuple[float, float] | None:
    """The target farthest beyond the limits, if that is `ODD` times their distance, and the limit it counts as."""
    ends = look.target_origin / 2.0 + look.target_unit / 2.0 * np.array([-1.0, 1.0])  # the whole may overflow
    beyond = np.array([-1.0, 1.0]) * (ends - limits / 2.0)
    side = int(beyond.argmax())
    if beyond[side] / ODD <= limits[1] / 2.0 - limits[0] / 2.0:
        return None
    return float(2.0 * ends[side]), float(limits[side])


def _deviations(summed: Bundle, limits: Ranges, units: Array) -> Ranges:
    """Ranges of one standard deviation to both sides of the mean, at least a unit; empty where a column is constant."""
    n = float(summed["n_samples"])
    mean = summed["total"] / n
    deviation = np.sqrt(np.maximum(summed["square"] / n - mean**2, 0.0))
    deviation = np.where(deviation > 0.0, np.maximum(deviation, units), 0.0)
    middle, half = limits.midpoints + limits.half_widths * mean, limits.half_widths * deviation
    return Ranges(middle - half, middle + half)
