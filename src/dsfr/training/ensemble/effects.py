"""Members of an ensemble that are sums of effects of features, pairs, triples and levels: from counts and a few sums.

Two rounds of counts give the distribution of every feature over all rows, labelled or not; one sum over labelled rows
gives the statistics of all effects of one or two features. What the labels say of relevance and curvature follows
without further rounds. It tells which products of three features are worth another sum; a further one is for levels.
Polynomials have sums of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.features.effects import Effects
from dsfr.core.features.quantile_curves import Distribution, quantile_curves
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.effect_priors import EffectSizes, effect_sizes, product_effects, single_effects
from dsfr.core.solve.statistics import Statistics
from dsfr.engines import Engine, RefusedError
from dsfr.training.ensemble.distribution import agree_distribution
from dsfr.training.ensemble.effect_member import (
    first_ones,
    label_statistics,
    single_ones,
    trained,
    trained_plane,
    varying,
)
from dsfr.training.ensemble.levels import agree_levels
from dsfr.training.ensemble.members import Base
from dsfr.training.ensemble.polynomials import agree_polynomials
from dsfr.training.ensemble.triples import agree_triples
from dsfr.training.scaling.grid_counts import agree_grid_counts
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings

MOST_EFFECTS = 600
"""More effects are not tried."""


@dataclass(frozen=True, slots=True)
class TrainedEffects:
    """Members that are sums of effects, and what was learnt of the target on the way."""

    members: tuple[Base, ...] = ()
    n_target_values: int | None = None
    """Different labels, if they are few."""
    distribution: Distribution | None = None
    """Of the features, where agents share more than sums, and members were trained."""
    plane: tuple[Base, ...] = ()
    """The member of lines alone."""
    smooth: tuple[Base, ...] = ()
    """The member of polynomials, once it is trained."""

    @property
    def all_members(self) -> tuple[Base, ...]:
        """With a plane and polynomials, which take no part in the choice of the scale of the target."""
        return (*self.plane, *self.members, *self.smooth)


def agree_effects(engine: Engine, settings: Settings, population: Population) -> TrainedEffects:
    """A plane, single effects, with pairs, triples and levels; none if labels do not vary or are too few."""
    most = _most(settings, population)
    if settings.effects is None or most <= len(population.ranges.low):
        return TrainedEffects()
    tried = _summed(engine, settings, population, most)
    if tried is None:
        return TrainedEffects()
    dictionary, total = varying(tried.effects, tried.total)
    n = len(dictionary.singles)
    members = [trained(single_ones(dictionary), first_ones(total, n + 1))]
    if len(dictionary.pairs):
        members.append(trained(dictionary, total))
        if settings.has_effects("triples") and not engine.only_sums:
            members.append(agree_triples(engine, population, members[-1], most))
    found = [member for member in members if member is not None]
    if found and settings.has_effects("levels") and not engine.only_sums:
        levels = agree_levels(engine, population, tried.distribution, found[-1], most)
        found += [] if levels is None else [levels]
    distribution = tried.distribution if found and not engine.only_sums else None
    plane = trained_plane(dictionary, total) if found and n else None
    planes = () if plane is None else (replace(plane.base(settings), is_plane=True),)
    return TrainedEffects(tuple(member.base(settings) for member in found), tried.n_target_values, distribution, planes)


def with_polynomials(
    engine: Engine, settings: Settings, population: Population, effects: TrainedEffects
) -> TrainedEffects:
    """With the member of polynomials, if it is asked for.

    It takes no part in choosing between the target and its logarithm: with more weights than labels it follows both.
    """
    if effects.smooth or effects.distribution is None or not settings.has_effects("polynomials"):
        return effects
    found = agree_polynomials(engine, population, effects.distribution, _most(settings, population))
    return effects if found is None else replace(effects, smooth=(found.base(settings),))


def _most(settings: Settings, population: Population) -> int:
    """Weights that one sum over labels may determine."""
    allowed = settings.most_weights(population.stated_labels)
    return MOST_EFFECTS if allowed is None else min(MOST_EFFECTS, allowed)


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


def _dictionary(settings: Settings, population: Population, sizes: EffectSizes, distribution: Distribution) -> Effects:
    """All effects that are tried."""
    d = len(population.ranges.low)
    knots, ranks = distribution.knots(sizes.n_knots)
    scaled = scale_features(knots, population.ranges)
    n_terms = 0 if settings.effects == "single" else sizes.product_terms
    products = product_effects(np.arange(d), n_terms)
    curves = quantile_curves(scaled, ranks, sizes.n_curves)
    return Effects(scaled, curves, single_effects(d, sizes.n_curves), products)
