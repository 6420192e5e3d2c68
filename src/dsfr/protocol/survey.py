"""First contact: common ranges of features, mean and deviation of the target, and who proposes start centers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dsfr.bundles import Bundle
from dsfr.core.arrays import Array
from dsfr.core.scaling import NEVER, Moments, Ranges
from dsfr.engines import Engine
from dsfr.protocol.packing import scalar, unpack
from dsfr.protocol.settings import Settings
from dsfr.protocol.shard import Purpose, Shard


@dataclass(frozen=True, slots=True)
class Population:
    """What all agents together look like."""

    ranges: Ranges
    target: Moments
    n_samples: float
    ticket: float
    """The highest ticket; its holder proposes the start centers."""


def measure(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (max): ranges of features and target, and a ticket that is highest at the agent with the most rows."""
    ranges = Ranges.of(shard.X)
    target = Ranges.of(shard.y[shard.labeled, None])
    contribution = {
        "high": ranges.high,
        "minus_low": -ranges.low,
        "target_high": target.high,
        "minus_target_low": -target.low,
        "ticket": scalar(_ticket(shard, int(broadcast["seed"]))),
    }
    return {"seed": broadcast["seed"]}, contribution


def agree(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): keep the common ranges; count rows and add up targets about their common middle."""
    moments = Moments.of(shard.y[shard.labeled], float(broadcast["target_origin"]))
    contribution = {
        "n_samples": scalar(len(shard.y)),
        "n_labeled": scalar(moments.n),
        "target_total": scalar(moments.total),
        "target_square": scalar(moments.square),
    }
    return {**memory, "low": broadcast["low"], "high": broadcast["high"]}, contribution


def has_ticket(shard: Shard, memory: Bundle, ticket: float) -> bool:
    """Whether this agent drew the given ticket."""
    return _ticket(shard, int(memory["seed"])) == ticket


def scaled_rows(shard: Shard, memory: Bundle) -> Array:
    """An agent's rows, scaled by the ranges it has kept."""
    return shard.scaled(unpack(Ranges, memory))


def survey(engine: Engine, settings: Settings) -> Population:
    """Agree on scaling in two rounds: `first_look`, then counts and moments."""
    look = first_look(engine, settings)
    return look.population(engine.sum("agree", look.message()))


@dataclass(frozen=True, slots=True)
class FirstLook:
    """What one round of maxima tells."""

    ranges: Ranges
    target_origin: float
    ticket: float

    def message(self) -> Bundle:
        """What `agree` needs to know."""
        return {"low": self.ranges.low, "high": self.ranges.high, "target_origin": scalar(self.target_origin)}

    def population(self, counted: Bundle) -> Population:
        """Complete with what `agree` has summed."""
        n, total, square = (float(counted[name]) for name in ("n_labeled", "target_total", "target_square"))
        target = Moments(n, total, square, self.target_origin)
        return Population(self.ranges, target, float(counted["n_samples"]), self.ticket)


def first_look(engine: Engine, settings: Settings) -> FirstLook:
    """Ranges of features and target, in one round.

    Raises
    ------
    ValueError
        If no agent has a labelled row, or declared ranges do not fit the columns.
    """
    seen = engine.max("measure", {"seed": np.asarray(settings.seed, dtype=np.int64)})
    if seen["target_high"][0] == -NEVER:
        raise ValueError(
            "no row is labelled: every target is NaN, at every agent. Give at least one row a known target."
        )
    ranges = _declared(settings, len(seen["high"])) or Ranges(-seen["minus_low"], seen["high"])
    origin = float(Ranges(-seen["minus_target_low"], seen["target_high"]).midpoints[0])
    return FirstLook(ranges, origin, float(seen["ticket"]))


def _ticket(shard: Shard, seed: int) -> float:
    """Number of rows, with a random fraction of the agent's own to settle ties."""
    return len(shard.y) + shard.rng(seed, Purpose.START, repeat=1).random()


def _declared(settings: Settings, n_features: int) -> Ranges | None:
    if settings.feature_ranges is None:
        return None
    low, high = (np.asarray(bound, dtype=np.float64) for bound in settings.feature_ranges)
    if low.shape != (n_features,) or high.shape != (n_features,) or not (low <= high).all():
        raise ValueError(
            f"feature_ranges must be two rows, lowest and highest value of each of the {n_features} features, with "
            f"lowest <= highest; got shapes {low.shape} and {high.shape}"
        )
    return Ranges(low, high)
