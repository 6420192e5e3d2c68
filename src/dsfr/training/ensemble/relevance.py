"""Relevance of features from sums over agents: by the curvature of a polynomial, and by the slopes of earlier models.

The polynomial is fitted once, before there is any model. The relevance is the geometric mean of both:
curvature alone follows noise on targets that are nearly linear, and slopes alone miss effects that rise and fall again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsfr.core.arrays import BLOCK_ROWS, Array, row_blocks
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.relevance.polynomial import Polynomial, curvature_relevance
from dsfr.core.relevance.slopes import relevance, slopes
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.statistics import Statistics
from dsfr.core.threads import each_chunk
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import BroadcastError, array, at_least
from dsfr.training.tasks.fields import (
    COUNT,
    RANGES,
    RULES,
    SAMPLE,
    STRETCH,
    TARGET,
    VARIATION,
    WEIGHT_VECTOR,
    statistics_fields,
)
from dsfr.training.tasks.messages import pack, pack_statistics, scalar, scaling_ranges, unpack_statistics
from dsfr.training.tasks.registry import task


@task(
    verb="sum",
    stage="averaging",
    reveals="As `statistics`, of a polynomial of the features; with fewer labels than terms, nearly the labelled rows. "
    'Once, with `relevance="evidence"`.',
    broadcast={**RANGES, **TARGET},
    contributes=statistics_fields("t"),
)
def polynomial_statistics(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): statistics of the terms of a polynomial on the own labelled rows."""
    polynomial, ranges = Polynomial.of(shard.n_features), scaling_ranges(memory, broadcast)
    if polynomial is None:
        raise BroadcastError(
            f"task 'polynomial_statistics' needs fewer features than {shard.n_features}: its polynomial is too long"
        )
    mean, scale = float(broadcast["target_mean"]), float(broadcast["target_scale"])
    with single_threaded_blas():
        parts = (
            part
            for X, y, weights in shard.labeled().weighted_batches()
            for block in row_blocks(len(y))  # a row may have more terms than weights of rules: few rows at a time
            for own in [None if weights is None else weights[block]]
            for part in Statistics.parts(X[block], (y[block] - mean) / scale, polynomial, ranges, own)
        )
        own = sum(parts, Statistics.none(polynomial.n_outputs))
    return memory, pack_statistics(own, with_penalty=False)


@task(
    verb="sum",
    stage="averaging",
    reveals="Averages of a known function over the agent's rows: squared slopes of a model. With several models.",
    broadcast={
        **RULES,
        **RANGES,
        "stretch": STRETCH["stretch"],
        **VARIATION,
        "weights": WEIGHT_VECTOR,
        "sample": SAMPLE,
    },
    contributes={"squares": array("d", rules=(at_least(0.0),)), "n_samples": COUNT},
)
def square_slopes(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): squared slopes of a model along each feature, over own rows."""
    rules, ranges, total = Rules.of_arrays(broadcast), scaling_ranges(memory, broadcast), np.zeros(shard.n_features)
    n_rows = 0

    def squares_of(X: Array) -> Array:
        steepness = slopes(scale_features(X, ranges), rules, broadcast["weights"], fast=shard.fast)
        squares: Array = (steepness**2).sum(axis=0)
        return squares

    for X, _ in shard.sampled(float(broadcast["sample"])).batches():
        n_rows += len(X)
        for squares in each_chunk(lambda block, X=X: squares_of(X[block]), len(X), BLOCK_ROWS):  # type: ignore[misc]
            total += squares
    return memory, {"squares": total, "n_samples": scalar(n_rows)}


def agree_polynomial(engine: Engine, settings: Settings, population: Population) -> Array | None:
    """Relevance by curvature; None where it is not asked for, features are too many, or labels do not vary."""
    polynomial = Polynomial.of(len(population.ranges.low)) if settings.relevance == "evidence" else None
    most = settings.most_weights(population.stated_labels)
    if polynomial is None or (most is not None and polynomial.n_outputs > most):
        return None
    target = {"target_mean": scalar(population.target.mean), "target_scale": scalar(population.target.deviation)}
    total = unpack_statistics(engine.sum("polynomial_statistics", {**pack(population.ranges), **target}))
    with single_threaded_blas():
        return curvature_relevance(polynomial, total)


def mean_square_slopes(engine: Engine, broadcast: Bundle, settings: Settings) -> Array:
    """Of one model along each feature, over all rows; ones where relevances are not asked for."""
    if settings.relevance is None:
        return np.ones(broadcast["centers"].shape[1])
    summed = engine.sum("square_slopes", broadcast)
    squares: Array = summed["squares"] / max(float(summed["n_samples"]), 1.0)
    return squares


def stretch(curvature: Array | None, mean_squares: Sequence[Array], shares: Array) -> Array:
    """Factors on the features for the next clusters, from curvature and from the slopes of models with these shares."""
    steep = relevance(shares @ np.array(mean_squares))
    if curvature is None:
        return steep
    both = np.sqrt(curvature * steep)
    stretched: Array = both / both.max()
    return stretched
