"""First contact where sums alone leave the agents: ranges are declared, and nobody sends extremes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.arrays import CHUNK_ROWS, row_blocks
from dsfr.core.clustering.normal_starts import RowMoments
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.scaling.checks import check_size
from dsfr.training.scaling.survey import FirstLook
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array
from dsfr.training.tasks.fields import COUNT, RANGES, SEED
from dsfr.training.tasks.messages import pack, unpack
from dsfr.training.tasks.registry import task

if TYPE_CHECKING:
    from dsfr.training.settings import Settings


MOST_UNSTATED = 4.0
"""Labels of an agent that states them in multiples of five, as `Policy.min_labels` has it, and are not stated."""


# Begins a training, so nothing of an earlier one is kept.
@task(
    verb="sum",
    stage="survey",
    reveals="Number of rows, means and covariances of the features. Where sums alone leave the agents.",
    broadcast={"seed": SEED, **RANGES},
    contributes={"n_samples": COUNT, "total": array("d"), "products": array("d(d+1)/2")},
    remembers=("seed", "low", "high"),
    limited=False,
    distinct=False,
    opening=True,
)
def row_moments(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): keep the declared ranges; moments of the scaled features."""
    ranges, moments = unpack(Ranges, broadcast), RowMoments.none(shard.n_features)
    for X, _ in shard.batches():
        for block in row_blocks(len(X), CHUNK_ROWS):
            moments += RowMoments.of(scale_features(X[block], ranges))
    return {name: broadcast[name] for name in ("seed", "low", "high")}, pack(moments)


def declared_look(engine: Engine, settings: Settings) -> FirstLook:
    """Declared ranges and the summed moments of the features, in one round.

    Raises
    ------
    ValueError
        If ranges of features and target are not declared.
    """
    ranges, target = settings.scaling.declared, settings.scaling.declared_target
    if ranges is None or target is None:
        raise ValueError(
            f"scaling={settings.scaling!r} asks agents for extremes, and on this engine sums alone leave them: declare "
            "the ranges, scaling=RangeScaling(lower=[...], upper=[...], target_range=(lowest, highest))"
        )
    check_size(settings, len(ranges.low))
    message = {"seed": np.asarray(settings.seed, dtype=np.int64), **pack(ranges)}
    moments = unpack(RowMoments, engine.sum("row_moments", message))
    low, high = target
    return FirstLook(ranges, low / 2.0 + high / 2.0, high / 2.0 - low / 2.0, 0.0, moments)
