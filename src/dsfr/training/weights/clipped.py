"""Sums of rows whose vectors are bounded, whatever the rows are: what noise of differential privacy is added to."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import CHUNK_ROWS, Array, row_blocks
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.storage.bundles import Bundle
from dsfr.training.scaling.survey import KEPT_SCALING
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array
from dsfr.training.tasks.fields import COUNT, RANGES, RULES, SEED, TARGET
from dsfr.training.tasks.messages import scalar, unpack
from dsfr.training.tasks.registry import task

VARIANCE = "noise_variance"
"""Of an owner's share of the noise, on the diagonal; 0 where none was added."""


def moments_bound(n_features: int) -> float:
    """Largest squared length of a row with a 1 before it: scaled features lie between -1 and 1."""
    return 1.0 + n_features


def statistics_bound(n_features: int) -> float:
    """Largest squared length of a labelled row's ``H(x)`` with its target behind it."""
    return 2.0 + n_features


@task(
    verb="sum",
    stage="survey",
    reveals="Numbers of rows and labels; means and covariances of the features, with noise of differential privacy.",
    broadcast={"seed": SEED, **RANGES},
    contributes={"n_samples": COUNT, "n_labeled": COUNT, "products": array("(d+1)(d+2)/2"), VARIANCE: COUNT},
    remembers=("seed", "low", "high"),
    limited=False,
    distinct=False,
)
def clipped_moments(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): products of scaled features, each moved to the ends of its range."""
    ranges, total = unpack(Ranges, broadcast), np.zeros((shard.n_features + 1,) * 2)
    for X, _ in shard.batches():
        for block in row_blocks(len(X), CHUNK_ROWS):
            rows = np.column_stack([np.ones(len(X[block])), clipped_rows(X[block], ranges)])
            total += rows.T @ rows
    kept = {name: broadcast[name] for name in ("seed", "low", "high")}
    counts = {"n_samples": scalar(shard.n_samples), "n_labeled": scalar(shard.n_labeled)}
    return kept, {**counts, "products": total[np.triu_indices(len(total))], VARIANCE: scalar(0.0)}


@task(
    verb="sum",
    stage="statistics",
    reveals="`H'H`, `H'y` and `y'y`, with noise of differential privacy.",
    broadcast={**RULES, **TARGET},
    contributes={"products": array("(p+1)(p+2)/2"), VARIANCE: COUNT},
    needs=KEPT_SCALING,
    limited=False,
    distinct=False,
)
def clipped_statistics(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): products of features of rules and target, each row's vector bounded."""
    rules, ranges = Rules.of_arrays(broadcast), unpack(Ranges, memory)
    middle, unit = float(broadcast["target_mean"]), float(broadcast["target_scale"])
    total = np.zeros((rules.n_outputs + 1,) * 2)
    for X, y in shard.batches():
        for block in row_blocks(len(X), CHUNK_ROWS):
            known = ~np.isnan(y[block])
            rows = labeled_vectors(X[block][known], y[block][known], rules, ranges, middle, unit)
            total += rows.T @ rows
    return memory, {"products": total[np.triu_indices(len(total))], VARIANCE: scalar(0.0)}


def clipped_rows(X: Array, ranges: Ranges) -> Array:
    """Scaled features between -1 and 1; missing ones are 0, the middle of the range."""
    scaled = np.nan_to_num(scale_features(X.astype(np.float64), ranges), nan=0.0, posinf=1.0, neginf=-1.0)
    clipped: Array = np.clip(scaled, -1.0, 1.0)
    return clipped


def labeled_vectors(X: Array, y: Array, rules: Rules, ranges: Ranges, middle: float, unit: float) -> Array:
    """``H(x)`` and the scaled target of every row, of squared length at most `statistics_bound`; shape (n, p+1)."""
    H = rules.features(clipped_rows(X, ranges))
    longest = np.sqrt(statistics_bound(X.shape[1]) - 1.0)
    # With strengths that sum to 1 no row is longer; whatever comes in a broadcast, none may be.
    H *= np.minimum(1.0, longest / np.maximum(np.linalg.norm(H, axis=1), longest))[:, None]
    return np.column_stack([H, np.clip((y - middle) / unit, -1.0, 1.0)])
