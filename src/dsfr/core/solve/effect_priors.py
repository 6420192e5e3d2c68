"""Which effects a model of features, pairs, triples and levels has, and the prior variances of their weights.

A feature has a relevance ``r_j`` and a curvature ``c_j``: its line has the log prior variance ``r_j``, its curves ``r_j
+ c_j``, both plus a parameter of all single effects; a product has the sum of those of its terms, plus a parameter of
all products of as many. With many labels, the ``l``-th curve of every feature has ``log l`` times a common roughness
more: the first curves alone are smooth, all together have steps. Of polynomials, the ``l``-th has ``r_j + l c_j``, as
the functions of a Gaussian kernel have. Levels of a feature have a variance of their own, the same for each. Lines of a
plane have one variance in common, as in ridge regression. The labels choose all parameters by evidence, which is
automatic relevance determination. Effects have mean 0 over all rows and targets mean 0 over the labels: the constant is
the difference of two means.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.features.effects import Effects
from dsfr.core.solve.prior_variances import PriorVariances, VariancePrior

ROWS_PER_KNOT = 15.0
"""Three times as many as an owner insists on."""
LOG_RELEVANCE = (-2.0, 2.5)
ROUGHNESS = (1.0, 1.5)
LOG_BY_FACTORS = ((0.0, 1.5), (-1.0, 1.5), (-2.0, 1.5))
"""Mean and deviation of the priors of the parameters, in units of the noise."""
LOG_PLANE = (-2.0, 1.5)
"""As those before, of all lines of a plane together."""
LOG_LEVELS = (-1.0, 2.0)
"""As those before, of the levels of a feature."""
LABELS_FOR_ROUGHNESS = 150.0
"""Fewer labels do not tell a step from noise: curves are smooth."""
NEGLIGIBLE = 1e-2
"""Of the noise, over all labels: effects whose prior variance adds less are left out."""
UNLIKELY = 1e-4
"""As `NEGLIGIBLE`, of products that were not seen yet: features may do together what none does alone."""
MOST_IN_PRODUCTS = 12
"""Features that likely products are made of, at most."""
TERMS_BY_FACTORS = (8, 6)
"""Terms of each feature that likely products of two and of three are made of, at most."""
SMALLEST_DEVIATION = 1e-4
"""Of the noise: with less, the constant is as good as free."""
POLYNOMIAL_KNOTS, HIGHEST_DEGREE = 61, 9
"""Of polynomials: between knots they are lines."""


@dataclass(frozen=True, slots=True)
class CurveKind:
    """What curves of features are like."""

    log_curvature: tuple[float, float]
    """Mean and deviation of the prior of a feature's curvature."""
    is_by_degree: bool
    """Whether each curve has the curvature once more than the one before."""
    log_begin: float | None
    """Where the search begins for relevances and for parameters of products; None: at the means of their priors. Where
    a relevance is low, products of the feature have hardly any variance, and no slope tells that more is better."""


RANK_CURVES = CurveKind((-1.0, 2.0), is_by_degree=False, log_begin=None)
"""Those of `quantile_curves`."""
POLYNOMIALS = CurveKind((-1.5, 1.0), is_by_degree=True, log_begin=0.0)
"""Those of `polynomial_curves`."""


def single_effects(n_features: int, n_curves: int) -> IntArray:
    """Line and curves of every feature; shape (d (1 + r), 2)."""
    places = np.indices((n_features, n_curves + 1)).reshape(2, -1)
    singles: IntArray = places.T.astype(np.int64)
    return singles


def product_effects(features: IntArray, n_terms: int, n_factors: int = 2) -> IntArray:
    """Products of the first ``n_terms`` terms of every two of these features, or of every three; shape (q, 4 or 6)."""
    groups = np.array(list(combinations(features.tolist(), n_factors)), dtype=np.int64).reshape(-1, n_factors)
    terms = np.indices((n_terms,) * n_factors).reshape(n_factors, -1).T
    columns = [np.repeat(groups, len(terms), axis=0), np.tile(terms, (len(groups), 1))]
    products: IntArray = np.stack(columns, axis=2).reshape(-1, 2 * n_factors).astype(np.int64)
    return products


def likely_products(
    effects: Effects, found: PriorVariances, squares: Array, most: int, kind: CurveKind = RANK_CURVES
) -> tuple[IntArray, IntArray]:
    """Pairs and triples that are likely to vary most, ``most`` of both together; see `UNLIKELY`.

    ``found`` is for single effects and pairs. Single effects tell how much a term varies: its prior variance times its
    sum of squares over the labels, which has its place behind that of the constant in ``squares``. Terms of the
    `MOST_IN_PRODUCTS` features that vary most are multiplied. Of polynomials, products of lines are the first: they
    are what a smooth function of several features has most of, whatever these do alone.
    """
    d, n = effects.knots.shape[1], len(effects.singles)
    heights = np.full((d, effects.curves.shape[2] + 1), -np.inf)
    with np.errstate(divide="ignore"):
        heights[tuple(effects.singles.T)] = np.log(found.variances[1 : n + 1] * squares[1 : n + 1] / squares[0])
    of_singles, of_products = found.logs[-2:]
    heights -= of_singles
    features = np.sort(np.argsort(-heights.max(axis=1), kind="stable")[:MOST_IN_PRODUCTS])
    pairs, triples = (
        product_effects(features, min(n_terms, heights.shape[1]), n_factors)
        for n_factors, n_terms in enumerate(TERMS_BY_FACTORS, start=2)
    )
    of_pairs, of_triples = (heights[own[:, ::2], own[:, 1::2]].sum(axis=1) for own in (pairs, triples))
    height = np.append(of_pairs, of_triples + LOG_BY_FACTORS[2][0] - LOG_BY_FACTORS[1][0]) + of_products
    if kind.is_by_degree:
        of_lines = np.concatenate([(own[:, 1::2] == 0).all(axis=1) for own in (pairs, triples)])
        height = np.where(of_lines, np.inf, height)
    highest = np.argsort(-height, kind="stable")[: max(most, 0)]
    chosen = np.zeros(len(height), dtype=bool)
    chosen[highest[height[highest] > np.log(UNLIKELY / squares[0])]] = True
    return pairs[chosen[: len(pairs)]], triples[chosen[len(pairs) :]]


def effect_prior(
    effects: Effects, n_labeled: float, constant: float = 1.0, kind: CurveKind = RANK_CURVES
) -> VariancePrior:
    """The prior of the weights of effects, whose constant has the prior variance ``constant``.

    Parameters are relevances, curvatures, the roughness with many labels where curves have one, one for every number of
    factors, and one for the levels of every feature that has some.
    """
    d = effects.knots.shape[1]
    groups = effects.by_factors if len(effects.triples) else effects.by_factors[:2]
    roughness = [ROUGHNESS] if n_labeled >= LABELS_FOR_ROUGHNESS and not kind.is_by_degree else []
    first = 2 * d + len(roughness)
    with_levels, of_levels = np.unique(effects.levels[:, 0], return_inverse=True)
    shape = np.zeros((effects.n_outputs, first + len(groups) + len(with_levels)))
    start = 1
    for number, group in enumerate(groups):
        places = np.arange(start, start + len(group))
        for feature, term in zip(group.T[::2], group.T[1::2], strict=True):
            shape[places, feature] += 1.0
            shape[places, d + feature] += term if kind.is_by_degree else term > 0
            shape[places, 2 * d : first] += np.log(np.maximum(term, 1))[:, None]
        shape[places, first + number] = 1.0
        start += len(group)
    shape[np.arange(start, effects.n_outputs), first + len(groups) + of_levels] = 1.0
    each = [LOG_RELEVANCE] * d + [kind.log_curvature] * d + roughness + list(LOG_BY_FACTORS[: len(groups)])
    each += [LOG_LEVELS] * len(with_levels)
    mean, deviation = np.array(each).T
    offset = np.zeros(effects.n_outputs)
    offset[0] = np.log(constant)
    begin = mean.copy()
    if kind.log_begin is not None:
        begin[:d] = begin[first + 1 : first + len(groups)] = kind.log_begin
    return VariancePrior(shape, offset, mean, deviation, begin)


def begun_again(found: PriorVariances, n_features: int, kind: CurveKind) -> PriorVariances:
    """Where to begin with further products: at what was found, with relevances no lower than at the first beginning."""
    if kind.log_begin is None:
        return found
    logs = found.logs.copy()
    logs[:n_features] = np.maximum(logs[:n_features], kind.log_begin)
    return replace(found, logs=logs)


def plane_prior(effects: Effects, constant: float) -> VariancePrior:
    """The prior of the weights of lines that have one prior variance in common, the constant ``constant``."""
    shape = np.ones((effects.n_outputs, 1))
    shape[0] = 0.0
    offset = np.zeros(effects.n_outputs)
    offset[0] = np.log(constant)
    mean, deviation = np.array([LOG_PLANE]).T
    return VariancePrior(shape, offset, mean, deviation, mean)


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
    return _fitting(n_features, wanted, most)


def _fitting(n_features: int, wanted: int, most: int, n_knots: int | None = None) -> EffectSizes:
    """Up to so many curves; knots are two for each curve and three more unless their number is given."""
    n_curves = max(min(wanted, (most - 1) // n_features - 1), 0)
    n_pairs = n_features * (n_features - 1) // 2
    left = most - 1 - n_features * (1 + n_curves)
    product_terms = next((terms for terms in (3, 2, 1) if n_pairs and terms**2 * n_pairs <= left), 0)
    return EffectSizes(n_knots or 2 * n_curves + 3, n_curves, min(product_terms, n_curves + 1))


def polynomial_sizes(n_features: int, most: int) -> EffectSizes:
    """As many polynomials and products as fit into ``most`` weights."""
    return _fitting(n_features, HIGHEST_DEGREE - 1, most, POLYNOMIAL_KNOTS)
