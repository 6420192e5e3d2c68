"""Which effects a model of single features and pairs has, and the prior variances of their weights.

A feature has a relevance ``r_j`` and a curvature ``c_j``: its line has the log prior variance ``r_j``, its curves
``r_j + c_j``, both plus a parameter of all single effects; a product has the sum of those of its two terms, plus a
parameter of all products. The labels choose all parameters by evidence, which is automatic relevance determination.
Effects have mean 0 over all rows and targets mean 0 over the labels: the constant is the difference of two means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import IntArray
from dsfr.core.features.effects import Effects
from dsfr.core.solve.prior_variances import VariancePrior

ROWS_PER_KNOT = 15.0
"""Three times as many as an owner insists on."""
LOG_RELEVANCE = (-2.0, 2.5)
LOG_CURVATURE = (-1.0, 2.0)
LOG_SINGLE, LOG_PRODUCT = (0.0, 1.5), (-1.0, 1.5)
"""Mean and deviation of the priors of the parameters, in units of the noise."""


SMALLEST_DEVIATION = 1e-4
"""Of the noise: with less, the constant is as good as free."""


def single_effects(n_features: int, n_curves: int) -> IntArray:
    """Line and curves of every feature; shape (d (1 + r), 2)."""
    places = np.indices((n_features, n_curves + 1)).reshape(2, -1)
    singles: IntArray = places.T.astype(np.int64)
    return singles


def product_effects(features: IntArray, n_terms: int) -> IntArray:
    """Products of the first ``n_terms`` terms of every two of these features; shape (q, 4)."""
    first, second = np.triu_indices(len(features), 1)
    one, other = np.indices((n_terms, n_terms)).reshape(2, -1)
    columns = [
        np.repeat(features[first], n_terms**2),
        np.tile(one, len(first)),
        np.repeat(features[second], n_terms**2),
        np.tile(other, len(first)),
    ]
    return np.stack(columns, axis=1).astype(np.int64)


def effect_prior(effects: Effects, constant: float = 1.0) -> VariancePrior:
    """The prior of the weights of effects; parameters are relevances, curvatures, and those of singles and products.

    ``constant`` is the prior variance of the constant.
    """
    d, n = effects.knots.shape[1], len(effects.singles)
    shape = np.zeros((effects.n_outputs, 2 * d + 2))
    for rows, terms in (
        (slice(1, n + 1), effects.singles),
        (slice(n + 1, None), effects.pairs[:, :2]),
        (slice(n + 1, None), effects.pairs[:, 2:]),
    ):
        part = np.zeros((len(terms), 2 * d + 2))
        places = np.arange(len(terms))
        part[places, terms[:, 0]] = 1.0
        part[places, d + terms[:, 0]] = terms[:, 1] > 0
        shape[rows] += part
    shape[1 : n + 1, -2] = 1.0
    shape[n + 1 :, -1] = 1.0
    each = [LOG_RELEVANCE] * d + [LOG_CURVATURE] * d + [LOG_SINGLE, LOG_PRODUCT]
    mean, deviation = np.array(each).T
    offset = np.zeros(effects.n_outputs)
    offset[0] = np.log(constant)
    return VariancePrior(shape, offset, mean, deviation)


def constant_variance(noise: float, n_labeled: float) -> float:
    """Prior variance of the constant in units of the noise: that of a mean of so many targets of deviation 1.

    1, which is taken before the noise is known, at least.
    """
    return max(1.0, 1.0 / (n_labeled * max(noise, SMALLEST_DEVIATION) ** 2))


@dataclass(frozen=True, slots=True)
class EffectSizes:
    """How many effects there are: curves of each feature, and terms of each that products are made of."""

    n_knots: int
    n_curves: int
    product_terms: int

    def with_curves(self, n_curves: int) -> EffectSizes:
        """The same with another number of curves, and of knots accordingly."""
        return EffectSizes(2 * n_curves + 3, n_curves, min(self.product_terms, n_curves + 1))

    def without_curved_products(self) -> EffectSizes:
        """Products of lines alone: a product of two curves can be made for single rows."""
        return replace(self, product_terms=min(self.product_terms, 1))

    def for_rows(self, n_rows: float) -> EffectSizes:
        """So many curves that about `ROWS_PER_KNOT` of these rows are nearest to each knot; one at least."""
        return self.with_curves(max(min(self.n_curves, int(n_rows / ROWS_PER_KNOT - 3.0) // 2), min(self.n_curves, 1)))


def effect_sizes(n_features: int, n_labeled: float, most: int) -> EffectSizes:
    """As many curves and products as fit into ``most`` weights; more labels resolve more."""
    wanted = int(np.clip(round(2.0 * n_labeled ** (1.0 / 3.0)), 4, 12))
    n_curves = max(min(wanted, (most - 1) // n_features - 1), 0)
    n_pairs = n_features * (n_features - 1) // 2
    left = most - 1 - n_features * (1 + n_curves)
    product_terms = next((terms for terms in (3, 2, 1) if n_pairs and terms**2 * n_pairs <= left), 0)
    return EffectSizes(2 * n_curves + 3, n_curves, min(product_terms, n_curves + 1))
