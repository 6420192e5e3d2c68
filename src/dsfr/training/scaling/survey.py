"""First contact: common ranges of features, mean and deviation of the target, and who proposes start centers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import CHUNK_ROWS, SUM_ROWS, Array, row_blocks
from dsfr.core.clustering.normal_starts import RowMoments
from dsfr.core.density import NormalSums, RowDensity, density_of, no_sums
from dsfr.core.sampling import sample_share
from dsfr.core.scaling.affine import LARGEST_FLOAT, Moments, Ranges
from dsfr.core.threads import each_chunk
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.duplicates.distinct_rows import NOTES
from dsfr.training.scaling.checks import NO_LABEL, check_features, check_size, check_targets, checked_ranges
from dsfr.training.scaling.row_sums import ASKED, ROW_SUMS, ask_moments, known_sums, row_sums
from dsfr.training.shard import LOG_TARGET, Purpose, Shard
from dsfr.training.tasks.declaration import array, optional
from dsfr.training.tasks.fields import COUNT, COUNTS, FLAG, RANGES, SEED, TARGET_RANGE
from dsfr.training.tasks.messages import scalar, unpack
from dsfr.training.tasks.registry import remember, task

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

KEPT_SCALE = remember(__name__, {LOG_TARGET: optional(FLAG)})
"""Whether logarithms of targets are learnt."""
KEPT_RANGES = remember(__name__, RANGES)
KEPT_SCALING = (*remember(__name__, {"seed": SEED}), *KEPT_RANGES)
"""What later tasks need of the survey: seed and ranges."""
UNSEEN, MOST_UNSEEN = 0.1, 3.0
"""How far features are followed at most beyond all rows there are, in units of their range: for each unit of the reach
of a model, see `reach_of`, and altogether."""
MEASURED = {
    "high": optional(array("d")),
    "minus_low": replace(array("d"), beside="high"),
    "n_features": COUNT,
    "target_high": array(1),
    "minus_target_low": array(1),
    "ticket": COUNT,
}
"""What `measure` contributes: without the ranges of features where these are declared."""


@dataclass(frozen=True, slots=True)
class Population:
    """What all agents together look like."""

    ranges: Ranges
    target: Moments
    n_samples: float
    ticket: float
    """The highest ticket; its holder proposes the start centers."""
    n_labeled: float
    """Number of labels, whatever they weigh; the moments of the target count each as often as its weight says."""
    limits: Ranges | None = None
    """Beyond these, features count as lying at their end."""
    row_ranges: Ranges | None = None
    """Where all rows are, where limits of features are known too."""
    target_limits: Array | None = None
    """Beyond these, targets count as lying at their end."""
    odd_target: tuple[float, float] | None = None
    """A target that is hardly meant as it stands, and the limit that it counts as; None if there is none."""
    keeps_target: bool = False
    """Whether weights are for targets in their own units."""
    is_far: bool = False
    """Whether limits of features are far beyond most rows."""
    target_ends: tuple[float, float] = (-1.0, 1.0)
    """Lowest and highest label."""
    moments: RowMoments | None = None
    """Mean and covariance of the scaled features, where start centers are drawn from them."""
    unstated: float = 0.0
    """Labels that agents may leave unstated when they limit weights by labels."""
    row_sums: NormalSums | None = None
    """Sums of the scaled rows and of their products."""
    sample: float | None = None
    """Share of the rows in a sample that has enough different ones; None: not known."""

    @property
    def sample_of_means(self) -> float:
        """Share of the rows that means over rows are taken of."""
        return sample_share(self.n_samples) if self.sample is None else self.sample

    @property
    def target_mean(self) -> float:
        """What is subtracted from targets."""
        return 0.0 if self.keeps_target else self.target.mean

    @property
    def target_scale(self) -> float:
        """What targets are divided by."""
        return 1.0 if self.keeps_target else self.target.deviation

    @property
    def limits_labels(self) -> bool:
        """Whether a label lies beyond the limits of the target."""
        (low, high), limits = self.target_ends, self.target_limits
        return limits is not None and bool(low < limits[0] or limits[1] < high)

    @property
    def limits_features(self) -> bool:
        """Whether a row lies beyond the limits of a feature."""
        limits, rows = self.limits, self.row_ranges
        return (
            limits is not None
            and rows is not None
            and bool((limits.low > rows.low).any() or (limits.high < rows.high).any())
        )

    @property
    def stated_labels(self) -> float:
        """Labels that agents at least count when they limit weights by labels."""
        return max(self.n_labeled - self.unstated, 0.0)

    def followed(self, reach: float) -> Ranges | None:
        """Limits so many times as wide, but not far beyond all rows; see `UNSEEN`."""
        return self._wider_limits(reach, min(UNSEEN * reach, MOST_UNSEEN))

    def seen(self, reach: float) -> Ranges | None:
        """The part of `followed` limits where rows are; None: all of them."""
        return self._wider_limits(reach, UNSEEN) if reach > 1.0 else None

    def _wider_limits(self, reach: float, unseen: float) -> Ranges | None:
        if self.limits is None or self.row_ranges is None or reach <= 1.0:
            return self.limits
        limits, farthest = self.limits, self.row_ranges.widened(unseen)
        with np.errstate(over="ignore"):
            more = (reach - 1.0) * (limits.high / 2.0 - limits.low / 2.0)
            low, high = limits.low - more, limits.high + more
        return Ranges(
            np.minimum(limits.low, np.maximum(low, farthest.low)),
            np.maximum(limits.high, np.minimum(high, farthest.high)),
        )

    @property
    def density(self) -> RowDensity:
        """Distribution of the rows; where they are not summed, of independent features by the ranges of scaling."""
        ends, middle, half = self.limits or self.ranges, self.ranges.midpoints, self.ranges.half_widths
        if self.row_sums is not None:
            return density_of(self.row_sums, middle, half, ends.low, ends.high)
        # Robust scaling has deviations as ranges; those of even distributions are a root of 3 times as wide.
        deviation = (half if self.limits is not None else half / np.sqrt(3.0)) * (self.ranges.high > self.ranges.low)
        return RowDensity(middle, deviation, None, ends.low, ends.high, np.ones(len(half)), np.zeros(len(half)))


# Begins a training: limits of an earlier one do not hold, and notes on duplicates only if this one has made them.
@task(
    verb="max",
    stage="survey",
    reveals="Extremes of single rows: lowest and highest value of every feature and of the target, and the number of "
    "rows. With declared `feature_ranges`, those of features are not sent.",
    broadcast={"seed": SEED, "declared": optional(FLAG), "distinct": optional(FLAG), LOG_TARGET: optional(FLAG)},
    contributes=MEASURED,
    recalls=NOTES,
    remembers=("seed", LOG_TARGET),
    limited=False,
    distinct=False,
    opening=True,
)
def measure(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (max): ranges of features and target, and a ticket that is highest at the agent with the most rows."""
    notes = {name: memory[name] for name in NOTES if name in memory} if "distinct" in broadcast else {}
    scale = {LOG_TARGET: broadcast[LOG_TARGET]} if LOG_TARGET in broadcast else {}
    shard = shard.without_duplicates(notes).on_target_scale(scale)
    ranges, target = Ranges.none(shard.n_features), Ranges.none(1)
    for X, y in shard.batches():
        for part in each_chunk(lambda chunk, X=X: Ranges.of(X[chunk]), len(X), SUM_ROWS):  # type: ignore[misc]
            ranges |= part
        target |= Ranges.of(y[~np.isnan(y), None])
    # Where ranges are declared, agents do not tell theirs.
    own = {} if "declared" in broadcast else {"high": ranges.high, "minus_low": -ranges.low}
    contribution = {
        **own,
        "n_features": scalar(shard.n_features),
        "target_high": target.high,
        "minus_target_low": -target.low,
        "ticket": scalar(_ticket(shard, int(broadcast["seed"]))),
    }
    return {"seed": broadcast["seed"], **notes, **scale}, contribution


@task(
    verb="sum",
    stage="survey",
    reveals="Number of rows and labels, mean and deviation of the agent's targets; means and covariances of its "
    "features; with `sample_weight`, the sum of the labels' weights.",
    broadcast={**RANGES, **TARGET_RANGE, **ASKED},
    contributes={**COUNTS, **ROW_SUMS},
    remembers=("low", "high"),
)
def agree(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): keep the common ranges; count rows and add up targets about their common middle."""
    origin, unit = float(broadcast["target_origin"]), float(broadcast["target_unit"])
    moments, ranges = Moments(0.0, 0.0, 0.0, origin, unit), unpack(Ranges, broadcast)
    asked, sums = "moments" in broadcast, no_sums(shard.n_features)
    for X, y, weights in shard.weighted_batches():
        # One after the other, so that the size of batches does not change the order of additions.
        for part in target_moments(y, weights, origin, unit):
            moments += part
        for chunk_sums in row_sums(X, ranges) if asked else ():
            sums += chunk_sums
    contribution = {
        "n_samples": scalar(shard.n_samples),
        "n_labeled": scalar(shard.n_labeled),
        "target_total": scalar(moments.total),
        "target_square": scalar(moments.square),
        **({"row_total": sums.total, "row_products": sums.products} if asked else {}),
    }
    if shard.has_weights:
        contribution["label_weight"] = scalar(moments.n)
    return {**memory, "low": broadcast["low"], "high": broadcast["high"]}, contribution


@task(
    verb="max",
    stage="survey",
    reveals="Size of the largest agent present, with a random fraction; if an agent has left.",
    broadcast={},
    contributes={"ticket": COUNT},
    needs=("seed",),
)
def draw_ticket(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (max): the ticket alone, should the holder of the highest one have gone."""
    return memory, {"ticket": scalar(_ticket(shard, int(memory["seed"])))}


def has_ticket(shard: Shard, memory: Bundle, ticket: float) -> bool:
    """Whether this agent drew the given ticket."""
    return _ticket(shard, int(memory["seed"])) == ticket


def target_moments(y: Array, weights: Array | None, origin: float, unit: float) -> Iterator[Moments]:
    """Moments of the known targets of every block of a batch, each target counted as often as its weight says."""
    for block in row_blocks(len(y), CHUNK_ROWS):
        known = ~np.isnan(y[block])
        own = None if weights is None else weights[block][known]
        yield Moments.of(y[block][known], origin, unit, own)


def survey(engine: Engine, settings: Settings, *, log: bool = False) -> Population:
    """Agree on scaling in two rounds: `first_look`, then counts and moments."""
    look = first_look(engine, settings, log=log)
    population = look.population(engine.sum("agree", look.message() | ask_moments(len(look.ranges.low))))
    return replace(population, keeps_target=settings.scaling.keeps_target)


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What one round of maxima tells."""

    ranges: Ranges
    target_origin: float
    target_unit: float
    ticket: float
    moments: RowMoments | None = None

    def message(self) -> Bundle:
        """What `agree` needs to know."""
        target = {"target_origin": scalar(self.target_origin), "target_unit": scalar(self.target_unit)}
        return {"low": self.ranges.low, "high": self.ranges.high, **target}

    def population(self, counted: Bundle) -> Population:
        """Complete with what `agree` has summed."""
        n, total, square = (float(counted[name]) for name in ("n_labeled", "target_total", "target_square"))
        if n == 0.0:
            raise ValueError(NO_LABEL)
        weight = float(counted.get("label_weight", n))
        target = Moments(weight, total, square, self.target_origin, self.target_unit)
        n_samples = float(counted["n_samples"])
        found = Population(self.ranges, target, n_samples, self.ticket, n_labeled=n, moments=self.moments)
        sums = known_sums(counted, n_samples, self.moments)
        return replace(found, target_ends=self.target_ends, row_sums=sums)

    @property
    def target_ends(self) -> tuple[float, float]:
        """Lowest and highest label."""
        return self.target_origin - self.target_unit, self.target_origin + self.target_unit


def first_look(engine: Engine, settings: Settings, *, log: bool = False) -> FirstLook:
    """Ranges of features and target, or of its logarithms, in one round."""
    return checked_look(engine.max("measure", ask(settings, log=log)), settings)


def ask(settings: Settings, *, log: bool = False) -> Bundle:
    """What `measure` needs to know."""
    message: Bundle = {"seed": np.asarray(settings.seed, dtype=np.int64)}
    if log:
        message[LOG_TARGET] = scalar(1.0)
    if settings.merges_duplicates:
        message["distinct"] = scalar(1.0)
    return message if settings.scaling.declared is None else message | {"declared": scalar(1.0)}


def checked_look(seen: Bundle, settings: Settings) -> FirstLook:
    """What the maxima of `measure` tell, if one can train on it.

    Raises
    ------
    ValueError
        If no agent has a labelled row, numbers are too large to compute with, declared ranges do not fit the columns,
        or there would be too many weights.
    """
    if seen["target_high"][0] == -LARGEST_FLOAT:
        raise ValueError(NO_LABEL)
    check_targets(-float(seen["minus_target_low"][0]), float(seen["target_high"][0]))
    look = look_of(seen, checked_ranges(settings, int(seen["n_features"])))
    check_features(look.ranges)
    check_size(settings, len(look.ranges.low))
    return look


def look_of(seen: Bundle, declared: Ranges | None) -> FirstLook:
    """Ranges, the target's middle and half length, and the highest ticket, from the maxima of `measure`."""
    ranges = declared or Ranges(-seen["minus_low"], seen["high"])
    target = Ranges(-seen["minus_target_low"], seen["target_high"])
    origin, unit = float(target.midpoints[0]), float(target.high[0] / 2 - target.low[0] / 2)
    return FirstLook(ranges, origin, unit if unit > 0.0 else 1.0, float(seen["ticket"]))


def _ticket(shard: Shard, seed: int) -> float:
    """Number of rows, with a random fraction of the agent's own to settle ties."""
    return shard.n_samples + shard.rng(seed, Purpose.START, repeat=1).random()
