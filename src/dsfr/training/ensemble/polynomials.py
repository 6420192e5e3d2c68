"""A member of an ensemble for smooth functions: polynomials of features, and products of these.

It is what a Gaussian process with a length for each feature is, from sums over labels: see `polynomial_curves`.
"""

from __future__ import annotations

import numpy as np

from dsfr.core.features.effects import Effects
from dsfr.core.features.polynomial_curves import polynomial_curves
from dsfr.core.features.quantile_curves import Distribution
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.effect_priors import (
    POLYNOMIALS,
    EffectSizes,
    polynomial_sizes,
    product_effects,
    single_effects,
)
from dsfr.engines import Engine
from dsfr.training.ensemble.effect_member import EffectMember, label_statistics, trained, varying
from dsfr.training.ensemble.triples import agree_triples
from dsfr.training.scaling.survey import Population


def agree_polynomials(
    engine: Engine, population: Population, distribution: Distribution, most: int
) -> EffectMember | None:
    """Polynomials and products of two, from one sum over labels; with products of three where labels speak for these.

    None where features are so many that lines alone fit into the weights: the members without polynomials have these.
    """
    sizes = polynomial_sizes(len(population.ranges.low), most)
    if sizes.n_curves == 0:
        return None
    effects = _dictionary(population, distribution, sizes)
    pairs = trained(*varying(effects, label_statistics(engine, population, effects)), kind=POLYNOMIALS)
    if not len(effects.pairs):
        return pairs
    return agree_triples(engine, population, pairs, most) or pairs


def _dictionary(population: Population, distribution: Distribution, sizes: EffectSizes) -> Effects:
    """All effects that are tried."""
    d = len(population.ranges.low)
    knots, ranks = distribution.knots(sizes.n_knots)
    scaled = scale_features(knots, population.ranges)
    curves = polynomial_curves(scaled, ranks, sizes.n_curves)
    products = product_effects(np.arange(d), sizes.product_terms)
    return Effects(scaled, curves, single_effects(d, sizes.n_curves), products)
