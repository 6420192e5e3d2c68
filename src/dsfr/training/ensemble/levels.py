"""A member of an ensemble with levels: effects of single values of a feature, beside those that were trained before.

One sum over labels has the levels of all features whose rows are in few places. Features whose levels tell more than
chance would, given what was trained before, take part in a member of their own, if the labels clearly speak for it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.features.effects import Effects
from dsfr.core.features.levels import FeatureLevels, knots_with_levels, level_effects, levels_of
from dsfr.core.features.quantile_curves import Distribution, quantile_curves
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.cholesky import SingularSystemError
from dsfr.core.solve.level_scores import level_scores
from dsfr.core.solve.statistics import Statistics
from dsfr.engines import Engine
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.ensemble.effect_member import EffectMember, label_statistics, trained
from dsfr.training.scaling.survey import Population

LEAST_LABELS = 150.0
"""With fewer, levels are not tried."""
LABELS_PER_LEVEL = 1.5
"""Levels of a feature with fewer labels, on average, say nothing of each other."""
SMOOTH = 0.5
"""Of all weights, what effects that were trained before may take: products of three alone would take all."""
MORE_THAN_CHANCE = 1.0
"""Deviations of its score under chance that a feature must have."""
MOST_FEATURES = 3
"""Features with levels in a member."""
LEAST_GAP = 1e-9
"""Between levels, in units of half a feature's range: values that are nearer differ by rounding."""


def agree_levels(
    engine: Engine, population: Population, distribution: Distribution, before: EffectMember, most: int
) -> EffectMember | None:
    """The effects of ``before`` that count most, and levels of the features that these tell most of.

    None if there are no such features, labels are few, or they do not clearly speak for levels.
    """
    if population.n_labeled < LEAST_LABELS:
        return None
    kept = before.strongest(int(SMOOTH * most))
    smooth = before.effects.without(kept[1:])
    apart = _apart(levels_of(distribution), population)
    levels = _that_fit(apart, population.n_labeled, most - smooth.n_outputs)
    if not levels:
        return None
    effects = _with_levels(smooth, population, distribution, levels)
    total = label_statistics(engine, population, effects)
    effects, total = _telling(effects, total, before.found.variances[kept])
    if not len(effects.levels):
        return None
    # Parameters are in the same places only if products of three are in both.
    is_alike = bool(len(effects.triples)) == bool(len(before.effects.triples))
    found = trained(effects, total, start=before.found if is_alike else None)
    return found if found is not None and found.is_clearly_better(before) else None


def _apart(levels: dict[int, FeatureLevels], population: Population) -> dict[int, FeatureLevels]:
    """Features whose levels are apart also when they are scaled."""
    middles, halves = population.ranges.midpoints, population.ranges.half_widths
    scaled = {j: (own.knots - middles[j]) / halves[j] for j, own in levels.items()}
    return {j: own for j, own in levels.items() if np.diff(scaled[j])[1::2].min() >= LEAST_GAP}


def _that_fit(levels: dict[int, FeatureLevels], n_labeled: float, most: int) -> dict[int, FeatureLevels]:
    """Features with enough labels for each level, those with few levels first, while the weights are not too many."""
    fitting: dict[int, FeatureLevels] = {}
    for j, own in sorted(levels.items(), key=lambda item: len(item[1])):
        if len(own) <= most and len(own) * LABELS_PER_LEVEL <= n_labeled:
            fitting[j] = own
            most -= len(own)
    return fitting


def _with_levels(
    smooth: Effects, population: Population, distribution: Distribution, levels: dict[int, FeatureLevels]
) -> Effects:
    """The effects, over knots that are the ends of levels where a feature has these."""
    knots, ranks = knots_with_levels(distribution, levels, len(smooth.knots))
    scaled = scale_features(knots, population.ranges)
    curves = quantile_curves(scaled, ranks, smooth.curves.shape[2])
    own = np.concatenate([level_effects(j, of, len(knots)) for j, of in sorted(levels.items())])
    return replace(smooth, knots=scaled, curves=curves, levels=own)


def _telling(effects: Effects, total: Statistics, variances: Array) -> tuple[Effects, Statistics]:
    """With the levels of the features that tell more than chance would, beside what has these prior variances."""
    try:
        with single_threaded_blas():
            scores = level_scores(total, variances, effects.levels[:, 0])
    except SingularSystemError:  # labels without noise: nothing is left for levels to tell
        scores = {}
    best = sorted(scores, key=lambda j: -scores[j])[:MOST_FEATURES]
    chosen = [j for j in best if scores[j] > MORE_THAN_CHANCE]
    kept: npt.NDArray[np.bool_] = np.ones(effects.n_outputs, dtype=bool)
    kept[len(variances) :] = np.isin(effects.levels[:, 0], chosen)
    return effects.without(kept[1:]), total.only(kept)
