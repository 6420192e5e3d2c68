"""A member of an ensemble with products of two and three features: those that pairs show to be likely."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dsfr.core.solve.effect_priors import begun_again, likely_products
from dsfr.engines import Engine
from dsfr.training.ensemble.effect_member import EffectMember, label_statistics, single_ones, trained
from dsfr.training.scaling.survey import Population

LEAST_LABELS = 100.0
"""With fewer, products of three are not tried."""


def agree_triples(
    engine: Engine, population: Population, before: EffectMember | None, most: int
) -> EffectMember | None:
    """The single effects that count, and the likeliest products of two and of three, from one more sum over labels.

    None if labels are few or do not clearly speak for them. Owners who share sums alone must not be asked: a product of
    curves can be made for single rows.
    """
    if before is None or population.n_labeled < LEAST_LABELS:
        return None
    singles = single_ones(before.effects.without(before.kept[1:]))
    squares = np.diag(before.total.gram)
    products = likely_products(before.effects, before.found, squares, most - singles.n_outputs, before.kind)
    if not len(products[1]):
        return None
    effects = replace(singles, pairs=products[0], triples=products[1])
    start = begun_again(before.found, effects.knots.shape[1], before.kind)
    found = trained(effects, label_statistics(engine, population, effects), start, before.kind)
    return found if found is not None and found.is_clearly_better(before) else None
