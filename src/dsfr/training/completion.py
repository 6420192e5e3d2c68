"""Missing values: agents complete their own rows by the density of all rows, which is agreed on by sums.

The density is the normal distribution of highest likelihood for the values that there are. Every step of expectation
maximisation is one sum over agents, so that it is the same however rows are distributed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import CHUNK_ROWS, Array, IntArray, row_blocks
from dsfr.core.density import MOST_CORRELATED, NormalSums, RowDensity, no_sums, spread_of
from dsfr.core.missing_shifts import missing_shifts
from dsfr.core.scaling.affine import LARGEST_FLOAT, Ranges, scale_features
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.scaling.checks import check_features
from dsfr.training.shard import DENSITY, Shard, pack_density, unpack_density
from dsfr.training.tasks.declaration import Fields, array, at_least, not_below, optional, within
from dsfr.training.tasks.fields import COUNT, FLAG, RANGES, TARGET_RANGE
from dsfr.training.tasks.messages import pack, scalar, symmetric, unpack, upper_triangle
from dsfr.training.tasks.registry import remember, task
from dsfr.training.tasks.semidefinite import gram_triangle

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

MIN_VALUES = 3
"""Values that a feature has at least, at all agents together: a deviation of fewer says nothing."""
FAR, FAR_ROWS = 4.0, 25.0
"""Values farther from the mean count as lying there: 4 deviations, or more if 25 rows could be that far off."""
LEAST_CUT = 0.1
"""Part of a range that a cut takes off at least, else there is none."""
MOST_CUTS = 40
"""Rounds in which far-off values are cut off; none of these where there are no such values."""
STEP, MOST_STEPS = 5e-3, 50
"""Change of means and deviations, in deviations, and of correlations, at which the density has settled; and steps."""

DENSITY_FIELDS: Fields = {
    "row_mean": array("d"),
    "row_deviation": array("d", rules=(at_least(0.0),)),
    "row_correlation": optional(array("d(d+1)/2", rules=(within(-1.0, 1.0),))),
    "row_low": array("d"),
    "row_high": array("d", rules=(not_below("row_low"),)),
    "row_spread": array("d", rules=(within(0.0, 1.0),)),
    "row_shift": array("d"),
}
CORRELATED: Fields = {"row_correlation": replace(DENSITY_FIELDS["row_correlation"], is_optional=False)}
KEPT_DENSITY = remember(
    __name__,
    {
        name: optional(field) if name == DENSITY[0] else replace(field, beside=DENSITY[0])
        for name, field in DENSITY_FIELDS.items()
    },
)


class ScarceValuesError(ValueError):
    """Features with too few values to learn from; ``columns`` are counted from 0, ``counts`` are numbers of values."""

    def __init__(self, columns: IntArray, counts: Array, names: tuple[str, ...] = ()) -> None:
        self.columns, self.counts = columns, counts
        shown = [names[j] if names else f"column {j}" for j in columns.tolist()]
        listed = ", ".join(f"{name} ({int(n)} values)" for name, n in zip(shown, counts, strict=True))
        super().__init__(
            f"X has too few values in {listed}: a feature needs at least {MIN_VALUES} that are not missing. Drop it"
        )


@dataclass(frozen=True, slots=True)
class ValueSums:
    """Numbers, sums and sums of squares of the values of every feature, in units of common ranges; shapes (d,)."""

    n_values: Array
    value_total: Array
    value_square: Array
    n_samples: float
    n_labeled: float


@task(
    verb="max",
    stage="survey",
    reveals="Extremes of single rows, as `measure`. With missing values.",
    broadcast={"declared": optional(FLAG)},
    contributes={
        "high": optional(array("d")),
        "minus_low": replace(array("d"), beside="high"),
        "target_high": array(1),
        "minus_target_low": array(1),
    },
    limited=False,
    distinct=False,
    completed=False,
)
def value_extremes(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (max): ranges of the values that are not missing, unless they are declared, and of the target."""
    ranges, target = Ranges.none(shard.n_features), Ranges.none(1)
    for X, y in shard.batches():
        target |= Ranges.of(y[~np.isnan(y), None])
        for block in row_blocks(len(X), CHUNK_ROWS):
            missing = np.isnan(X[block])
            low, high = (np.where(missing, end, X[block]) for end in (LARGEST_FLOAT, -LARGEST_FLOAT))
            ranges |= Ranges(low.min(axis=0), high.max(axis=0))
    own = {} if "declared" in broadcast else {"high": ranges.high, "minus_low": -ranges.low}
    return memory, {**own, "target_high": target.high, "minus_target_low": -target.low}


@task(
    verb="sum",
    stage="survey",
    reveals="Number, mean and deviation of the values of every feature. With missing values.",
    broadcast=RANGES,
    contributes={
        "n_values": array("d", rules=(at_least(0.0),)),
        "value_total": array("d"),
        "value_square": array("d", rules=(at_least(0.0),)),
        "n_samples": COUNT,
        "n_labeled": COUNT,
    },
    limited=False,
    distinct=False,
    completed=False,
)
def value_sums(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): number, sum and sum of squares of the values that are not missing, moved into common ranges."""
    ranges, sums = unpack(Ranges, broadcast), np.zeros((3, shard.n_features))
    for X, _ in shard.batches():
        for block in row_blocks(len(X), CHUNK_ROWS):
            known = ~np.isnan(X[block])
            z = np.where(known, scale_features(ranges.clip(X[block]), ranges), 0.0)
            sums += [known.sum(axis=0), z.sum(axis=0), (z**2).sum(axis=0)]
    return memory, pack(ValueSums(sums[0], sums[1], sums[2], float(shard.n_samples), float(shard.n_labeled)))


@task(
    verb="sum",
    stage="survey",
    reveals="Number of rows, means and covariances of the features. With missing values, several times.",
    broadcast=DENSITY_FIELDS,
    contributes={
        "n_samples": COUNT,
        "total": optional(array("d")),
        "products": replace(array("d(d+1)/2"), beside="total"),
    },
    remembers=KEPT_DENSITY,
    limited=False,
    distinct=False,
    completed=False,
)
def expected_sums(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): keep the density; sums of the rows and products that it expects, given the values there are."""
    density = unpack_density(broadcast)
    kept = {name: value for name, value in memory.items() if name not in DENSITY}
    kept |= {name: broadcast[name] for name in DENSITY if name in broadcast}
    if density.correlation is None:  # means and deviations of features are final
        return kept, {"n_samples": scalar(shard.n_samples)}
    sums = no_sums(shard.n_features)
    for X, _ in shard.batches():
        for block in row_blocks(len(X), CHUNK_ROWS):
            sums += density.sums(X[block])
    return kept, pack(sums)


@task(
    verb="sum",
    stage="survey",
    reveals="As `statistics`, of a linear model of the target by the features and by which of them are missing. With "
    "missing values.",
    broadcast={**DENSITY_FIELDS, **CORRELATED, **TARGET_RANGE},
    contributes={"products": array("(2d+2)(2d+3)/2", rules=(gram_triangle("2d+2"),))},
    limited=False,
    distinct=False,
    completed=False,
)
def gap_statistics(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): products of labelled rows, see `missing_shifts`."""
    density, d = unpack_density(broadcast), shard.n_features
    origin, unit = float(broadcast["target_origin"]), float(broadcast["target_unit"])
    products = np.zeros((2 * d + 2, 2 * d + 2))
    for X, y in shard.batches():
        labeled = np.flatnonzero(~np.isnan(y))
        for block in row_blocks(len(labeled), CHUNK_ROWS):
            rows = X[labeled[block]].astype(np.float64)
            z = density.scaled(density.expected(rows))
            targets = (y[labeled[block]] - origin) / unit
            columns = np.column_stack([np.ones(len(rows)), z, np.isnan(rows), targets])
            products += columns.T @ columns
    return memory, {"products": upper_triangle(products)}


def agree_density(engine: Engine, settings: Settings) -> RowDensity:
    """Density of all agents' rows, which every agent keeps.

    Raises
    ------
    ScarceValuesError
        If a feature has too few values.
    ValueError
        If values are too large to compute with.
    """
    ranges, target = _ranges(engine, settings)
    density, n_labeled = _independent_density(engine, ranges)
    if density.correlation is None:
        engine.sum("expected_sums", pack_density(density))
        return density
    for _ in range(MOST_STEPS):
        summed = engine.sum("expected_sums", pack_density(density))
        improved = density.updated(unpack(NormalSums, summed))
        if density.distance(improved) <= STEP:
            break
        density = improved
    allowed = settings.most_weights(n_labeled)
    too_many = allowed is not None and 2 * density.n_features + 1 > allowed
    # Where sums alone leave the agents, these have not agreed to sums over labels of what is missing.
    return density if engine.only_sums or too_many else _shifted(engine, density, target)


def _shifted(engine: Engine, density: RowDensity, target: Ranges) -> RowDensity:
    """The density with the shifts that the labels tell, which every agent keeps."""
    half = float(target.high[0] / 2.0 - target.low[0] / 2.0)
    if not 0.0 < half < LARGEST_FLOAT / 4.0:
        return density
    units = {"target_origin": scalar(float(target.midpoints[0])), "target_unit": scalar(half)}
    triangle = engine.sum("gap_statistics", pack_density(density) | units)["products"]
    shifts = density.deviation * missing_shifts(symmetric(triangle, 2 * density.n_features + 2))
    if not shifts.any():
        return density
    shifted = replace(density, shift=shifts)
    engine.sum("expected_sums", pack_density(shifted))
    return shifted


def _ranges(engine: Engine, settings: Settings) -> tuple[Ranges, Ranges]:
    """Ranges of features and target: declared ones, or else those of the values."""
    declared, target = settings.scaling.declared, settings.scaling.declared_target
    if declared is not None and target is not None:
        return declared, Ranges(np.array(target[:1]), np.array(target[1:]))
    seen = engine.max("value_extremes", {} if declared is None else {"declared": scalar(1.0)})
    own = Ranges(-seen["minus_target_low"], seen["target_high"])
    if declared is not None:
        return declared, own
    ranges = Ranges(-seen["minus_low"], seen["high"])
    absent = ranges.high < ranges.low
    if absent.any():
        raise ScarceValuesError(np.flatnonzero(absent), np.zeros(np.count_nonzero(absent)))
    check_features(ranges)
    return ranges, own


def _independent_density(engine: Engine, ranges: Ranges) -> tuple[RowDensity, float]:
    """Means and deviations of the features, far-off values moved to where they count as lying; and number of labels."""
    d = len(ranges.low)
    for _ in range(MOST_CUTS):
        sums = unpack(ValueSums, engine.sum("value_sums", pack(ranges)))
        scarce = np.flatnonzero(sums.n_values < MIN_VALUES)
        if len(scarce):
            raise ScarceValuesError(scarce, sums.n_values[scarce])
        shift = sums.value_total / sums.n_values
        spread = np.sqrt(np.maximum(sums.value_square / sums.n_values - shift**2, 0.0))
        mean = np.clip(ranges.midpoints + ranges.half_widths * shift, ranges.low, ranges.high)
        deviation = np.where(ranges.high > ranges.low, ranges.half_widths * spread, 0.0)
        far = np.maximum(FAR, np.sqrt(sums.n_values / FAR_ROWS)) * deviation
        low, high = np.maximum(ranges.low, mean - far), np.minimum(ranges.high, mean + far)
        if not ((high - low < (1.0 - LEAST_CUT) * (ranges.high - ranges.low)) & (deviation > 0.0)).any():
            break
        ranges = Ranges(low, high)
    correlation = None if d > MOST_CORRELATED else np.eye(d)
    spread = spread_of(sums.n_values / sums.n_samples)
    return RowDensity(mean, deviation, correlation, ranges.low, ranges.high, spread, np.zeros(d)), sums.n_labeled
