"""Members of an ensemble that are sums of effects of features, pairs, triples and levels: from counts and three sums.

Two rounds of counts give the distribution of every feature over all rows, labelled or not; one sum over labelled rows
gives the statistics of all effects of one or two features. What the labels say of relevance and curvature follows
without further rounds. It tells which products of three features are worth a second sum, and a third one is for levels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.features.effects import Effects
from dsfr.core.features.quantile_curves import Distribution, quantile_curves
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.effect_priors import (
    EffectSizes,
    effect_sizes,
    likely_products,
    product_effects,
    single_effects,
)
from dsfr.core.solve.statistics import Statistics
from dsfr.engines import Engine, RefusedError
from dsfr.training.ensemble.distribution import agree_distribution
from dsfr.training.ensemble.effect_member import (
    EffectMember,
    first_ones,
    label_statistics,
    only,
    single_ones,
    trained,
)
from dsfr.training.ensemble.levels import agree_levels
from dsfr.training.ensemble.members import Base
from dsfr.training.scaling.grid_counts import agree_grid_counts
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings

MOST_EFFECTS = 600
"""More effects are not tried."""
SAME = 1e-9
"""Of its mean square: a term whose variance over the labels is less does not vary."""
LABELS_FOR_TRIPLES = 100.0
"""With fewer, products of three are not tried."""


@dataclass(frozen=True, slots=True)
class TrainedEffects:
    """Members that are sums of effects, and what was learnt of the target on the way."""

    members: tuple[Base, ...] = ()
    n_target_values: int | None = None
    """Different labels, if they are few."""


def agree_effects(engine: Engine, settings: Settings, population: Population) -> TrainedEffects:
    """Sums of single effects, with pairs, triples and levels; none if labels do not vary or are too few."""
    allowed = settings.most_weights(population.stated_labels)
    most = MOST_EFFECTS if allowed is None else min(MOST_EFFECTS, allowed)
    if settings.effects is None or most <= len(population.ranges.low):
        return TrainedEffects()
    tried = _summed(engine, settings, population, most)
    if tried is None:
        return TrainedEffects()
    dictionary, total = _varying(tried.effects, tried.total)
    n = len(dictionary.singles)
    members = [trained(single_ones(dictionary), first_ones(total, n + 1))]
    if len(dictionary.pairs):
        members.append(trained(dictionary, total))
        if settings.effects in ("triples", "levels") and not engine.only_sums:
            members.append(_agree_triples(engine, population, members[-1], most))
    found = [member for member in members if member is not None]
    if found and settings.effects == "levels" and not engine.only_sums:
        levels = agree_levels(engine, population, tried.distribution, found[-1], most)
        found += [] if levels is None else [levels]
    return TrainedEffects(tuple(member.base(settings) for member in found), tried.n_target_values)


def _agree_triples(
    engine: Engine, population: Population, before: EffectMember | None, most: int
) -> EffectMember | None:
    """The single effects that count, and the likeliest products of two and of three, from one more sum over labels.

    None if labels are few or do not clearly speak for them. Owners who share sums alone are not asked: a product of
    curves can be made for single rows.
    """
    if before is None or population.n_labeled < LABELS_FOR_TRIPLES:
        return None
    singles = single_ones(before.effects.without(before.kept[1:]))
    products = likely_products(before.effects, before.found, np.diag(before.total.gram), most - singles.n_outputs)
    if not len(products[1]):
        return None
    effects = replace(singles, pairs=products[0], triples=products[1])
    found = trained(effects, label_statistics(engine, population, effects), start=before.found)
    return found if found is not None and found.is_clearly_better(before) else None


@dataclass(frozen=True, slots=True)
class _Tried:
    """All effects of one and two features that are tried, and their statistics."""

    effects: Effects
    total: Statistics
    distribution: Distribution
    n_target_values: int | None = None


def _summed(engine: Engine, settings: Settings, population: Population, most: int) -> _Tried | None:
    """What is tried first, and the number of different labels if they are few.

    Where sums alone leave the agents, these can refuse knots between which they have few rows: fewer curves are then
    tried, and None is returned if the agents refuse one.
    """
    sizes = effect_sizes(len(population.ranges.low), population.n_labeled, most)
    if not engine.only_sums:
        distribution, n_values = agree_distribution(engine, population)
        dictionary = _dictionary(settings, population, sizes, distribution)
        return _Tried(dictionary, label_statistics(engine, population, dictionary), distribution, n_values)
    distribution = agree_grid_counts(engine, population.ranges)
    sizes = sizes.without_curved_products().for_rows(population.n_samples / engine.n_agents)
    while sizes.n_curves:
        dictionary = _dictionary(settings, population, sizes, distribution)
        try:
            return _Tried(dictionary, label_statistics(engine, population, dictionary), distribution)
        except RefusedError:
            sizes = sizes.with_curves(sizes.n_curves // 2)
    return None


def _varying(effects: Effects, total: Statistics) -> tuple[Effects, Statistics]:
    """Without features that are the same for all labels: they would share the constant with it, whatever the target."""
    n, singles = max(total.n_labeled, 1.0), slice(1, len(effects.singles) + 1)
    squares, means = np.diag(total.gram)[singles] / n, total.feature_sum[singles] / n
    varies = np.zeros(effects.knots.shape[1], dtype=bool)
    varies[effects.singles[squares - means**2 > SAME * squares, 0]] = True
    of_features = (varies[own[:, ::2]].all(axis=1) for own in effects.by_factors)
    kept = np.concatenate([[True], *of_features])
    return effects.without(kept[1:]), only(total, kept)


def _dictionary(settings: Settings, population: Population, sizes: EffectSizes, distribution: Distribution) -> Effects:
    """All effects that are tried."""
    d = len(population.ranges.low)
    knots, ranks = distribution.knots(sizes.n_knots)
    scaled = scale_features(knots, population.ranges)
    n_terms = 0 if settings.effects == "single" else sizes.product_terms
    products = product_effects(np.arange(d), n_terms)
    curves = quantile_curves(scaled, ranks, sizes.n_curves)
    return Effects(scaled, curves, single_effects(d, sizes.n_curves), products)
