"""Values at the ends of a column where an owner has few rows: they are moved inwards, and nobody sees others.

The grid of a column is the same for all owners, and most of them have few rows in some of its cells at either end.
Without this, sums by cells would be refused for all because of these. Limits follow from the own rows and the declared
ranges, and hold for all tasks of a fit: sums with and without them would differ by the rows that were moved.
"""

from __future__ import annotations

import numpy as np

from dsfr.core.scaling.affine import LARGEST_FLOAT, Ranges
from dsfr.core.scaling.tails import tail_limits
from dsfr.disclosure.policy import Policy
from dsfr.engines.agent import LASTING
from dsfr.storage.bundles import Bundle
from dsfr.training.changed_rows import LimitedRows
from dsfr.training.distillation.growth import MOST_LINE_FEATURES
from dsfr.training.shard import Shard

DECLARED = (LASTING + "low", LASTING + "high")
"""Ranges that a fit began with."""
TAILS = (LASTING + "tail_low", LASTING + "tail_high")
"""Limits of the own values, that follow from them."""


def find_tails(policy: Policy, shard: Shard, declared: Ranges) -> Bundle:
    """Limits of all columns, to be kept until the end of the fit; one pass over the rows."""
    columns = min(shard.n_features, MOST_LINE_FEATURES) + 2  # as sums by bins of short rules have
    least = max(policy.min_mass, float(policy.min_split), columns / policy.max_weights_per_label)
    found = tail_limits(declared, (X for X, _ in shard.batches()), least)
    return dict(zip(TAILS, (found.low, found.high), strict=True))


def within_tails(shard: Shard, kept: Bundle) -> Shard:
    """The shard with values beyond the limits moved to them, where there are limits."""
    if TAILS[0] not in kept:
        return shard
    low, high = (kept[name] for name in TAILS)
    if (low == -LARGEST_FLOAT).all() and (high == LARGEST_FLOAT).all():
        return shard
    every_target = np.array([-LARGEST_FLOAT, LARGEST_FLOAT])
    return Shard(LimitedRows(shard.rows, Ranges(low, high), every_target), shard.key, shard.fast, shard.counter)
