"""Expected features of noisy rows: every scaled input is normal about its value, independently of the others.

Closed forms exist for Gaussian sets, for effects and for rules over shared terms. Others have the second-order formula
``E H = H(x) + 1/2 sum_j (H(x + t_j) - 2 H(x) + H(x - t_j))`` with one deviation ``t_j`` as step, exact for cubic
polynomials of each input.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from dsfr.core.arrays import Array
from dsfr.core.clustering.memberships import MAX_SQUARED_DISTANCE
from dsfr.core.features.bases import AnyBasis
from dsfr.core.features.effects import FARTHEST, Effects
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.features.membership import Gaussian
from dsfr.core.features.takagi_sugeno import Rules

STEEP = 1e-4
"""Length of a ramp, in deviations of the noise, below which it counts as a step."""
BEYOND = 12.0
"""Deviations of the noise beyond which a ramp is 0 or 1 in double precision."""


def expected_features(basis: AnyBasis, X: Array, deviations: Array) -> Array:
    """Expected features of rows with normal noise, in scaled units; shape (n, n_outputs).

    Deviations are 0 where a value is exact. They may be infinite for Gaussian sets alone, see `takes_unknown`.
    """
    if isinstance(basis, Rules) and takes_unknown(basis):
        return _gaussian_rules(basis, X, deviations)
    if isinstance(basis, Effects):
        return basis.features_of(expected_terms(basis, X, deviations), _expected_levels(basis, X, deviations))
    if isinstance(basis, LinguisticRules):
        return _linguistic_rules(basis, X, deviations)
    return _second_order(basis, X, deviations)


def takes_unknown(basis: AnyBasis) -> bool:
    """Whether a missing value needs no density of the rows: Gaussian sets imply one."""
    return isinstance(basis, Rules) and basis.membership == Gaussian.name


def expected_ramp(x: Array, deviations: Array, start: Array | float, end: Array | float) -> Array:
    """Expectation of a ramp from 0 at ``start`` to 1 at ``end``, in [0, 1].

    A ramp is a difference of two hinges over its length, and a hinge has ``E max(x, 0) = x P(x > 0) + t p(0)``.
    """
    t = np.where(deviations > 0.0, deviations, 1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        length = (np.asarray(end) - start) / t
        first, last = (x - start) / t, (x - end) / t
        sloped = np.where(length < STEEP, ndtr(first / 2.0 + last / 2.0), (_hinge(first) - _hinge(last)) / length)
        # Far beyond the ramp the difference of two large numbers would have no digits left.
        noisy = np.where(last > BEYOND, 1.0, np.where(first < -BEYOND, 0.0, sloped))
        exact = (x - start) / (np.asarray(end) - start)
    expected: Array = np.clip(np.where(deviations > 0.0, noisy, exact), 0.0, 1.0)
    return expected


def _hinge(z: Array) -> Array:
    """``E max(z + noise, 0)`` for noise of deviation 1."""
    values: Array = z * ndtr(z) + _density(z)
    return values


def _density(z: Array) -> Array:
    density: Array = np.exp(-0.5 * np.minimum(z * z, MAX_SQUARED_DISTANCE)) / np.sqrt(2.0 * np.pi)
    return density


def _gaussian_rules(rules: Rules, X: Array, deviations: Array) -> Array:
    """Strengths ``prod_j s / sqrt(s^2 + 2 t^2) exp(-(x - m)^2 / (s^2 + 2 t^2))``, and inputs of every line.

    A line is evaluated at ``(s^2 x + 2 t^2 m) / (s^2 + 2 t^2)``. With infinite noise ``t`` drops out: the strength has
    the factor ``s``, and the input is the center.
    """
    n_rows, n_features = X.shape
    logs, H = np.empty((n_rows, rules.n_rules)), np.empty((n_rows, rules.n_rules, n_features + 1))
    unknown = np.isinf(deviations)
    double = 2.0 * np.where(unknown, 0.0, deviations) ** 2
    for k, (center, width) in enumerate(zip(rules.centers, rules.widths, strict=True)):
        spread = width**2 + double
        away = np.where(unknown, 0.0, X - center)
        terms = 0.5 * np.log(width**2 / np.where(unknown, 1.0, spread)) - away**2 / spread
        logs[:, k] = np.maximum(terms.sum(axis=1), -MAX_SQUARED_DISTANCE)
        H[:, k, 1:] = center + away * (width**2 / spread)
    logs -= logs.max(axis=1, keepdims=True)
    strengths = np.exp(logs)
    strengths /= strengths.sum(axis=1, keepdims=True)
    H[:, :, 0] = 1.0
    H *= strengths[:, :, None]
    return H.reshape(n_rows, -1)


def expected_terms(effects: Effects, X: Array, deviations: Array) -> Array:
    """Expected line and curves of every feature; shape (n, d, 1 + r)."""
    terms = np.empty((*X.shape, effects.curves.shape[2] + 1))
    rise = expected_ramp(X, deviations, -FARTHEST, FARTHEST)
    # As in `Effects.terms` where a value is exact: the ramp would round it.
    terms[:, :, 0] = np.where(deviations > 0.0, (2.0 * rise - 1.0) * FARTHEST, np.clip(X, -FARTHEST, FARTHEST))
    terms[:, :, 1:] = effects.curves[0]
    for knot, after, rises in zip(effects.knots[:-1], effects.knots[1:], np.diff(effects.curves, axis=0), strict=True):
        end = np.where(after > knot, after, knot + 1.0)  # where knots repeat, curves do not rise
        terms[:, :, 1:] += expected_ramp(X, deviations, knot, end)[:, :, None] * rises
    return terms


def _expected_levels(effects: Effects, X: Array, deviations: Array) -> Array:
    """Expected memberships of the levels: a ramp up to the first knot less one behind the last; shape (n, l)."""
    found = np.ones((len(X), len(effects.levels)))
    for number, (j, first, last) in enumerate(effects.levels.tolist()):
        knots, column, own = effects.knots[:, j], X[:, j], deviations[:, j]
        if first > 0:
            found[:, number] = expected_ramp(column, own, knots[first - 1], knots[first])
        if last < len(knots) - 1:
            found[:, number] -= expected_ramp(column, own, knots[last], knots[last + 1])
    return found


def _linguistic_rules(rules: LinguisticRules, X: Array, deviations: Array) -> Array:
    """Per rule its expected strength, then that of its strength times each feature; shape (n, k(d + 1)).

    Memberships of different features are independent. For the product of a membership and its own feature,
    ``E x h(x) = x E h + t^2 E h'`` (Stein's lemma).
    """
    H = np.empty((len(X), rules.n_rules, X.shape[1] + 1))
    for k in range(rules.n_rules):
        conditions = rules.conditions(k)
        found = {j: _membership(rules, j, *terms, X[:, j], deviations[:, j]) for j, terms in conditions.items()}
        H[:, k, 0] = np.prod([membership for membership, _ in found.values()], axis=0) if found else 1.0
        H[:, k, 1:] = H[:, k, :1] * X
        for j, (_, slope) in found.items():
            others = [membership for i, (membership, _) in found.items() if i != j]
            H[:, k, 1 + j] += (np.prod(others, axis=0) if others else 1.0) * slope
    return H.reshape(len(X), -1)


def _membership(
    rules: LinguisticRules, feature: int, first: int, last: int, x: Array, deviations: Array
) -> tuple[Array, Array]:
    """Expected membership of a run of terms, and ``t^2 E h'`` of it; shapes (n,)."""
    ramps = rules.ramps_of(feature)
    membership, slope = np.ones(len(x)), np.zeros(len(x))
    if first > 0:
        membership = expected_ramp(x, deviations, *ramps[first - 1])
        slope = _ramp_slope(x, deviations, *ramps[first - 1])
    if last < len(ramps):
        membership = membership - expected_ramp(x, deviations, *ramps[last])
        slope = slope - _ramp_slope(x, deviations, *ramps[last])
    return membership, slope


def _ramp_slope(x: Array, deviations: Array, start: float, end: float) -> Array:
    """``t^2 P(start < x < end) / (end - start)``."""
    t = np.where(deviations > 0.0, deviations, 1.0)
    with np.errstate(over="ignore"):
        first, last, length = (start - x) / t, (end - x) / t, (end - start) / t
        within = np.where(length < STEEP, _density(first / 2.0 + last / 2.0), (ndtr(last) - ndtr(first)) / length)
    slopes: Array = np.where(deviations > 0.0, deviations * within, 0.0)
    return slopes


def _second_order(basis: AnyBasis, X: Array, deviations: Array) -> Array:
    middle = basis.features(X)
    expected = middle.copy()
    for j in range(X.shape[1]):
        noisy = np.flatnonzero(deviations[:, j] > 0.0)
        step = np.zeros((len(noisy), X.shape[1]))
        step[:, j] = deviations[noisy, j]
        sides = basis.features(X[noisy] + step) + basis.features(X[noisy] - step)
        expected[noisy] += 0.5 * sides - middle[noisy]
    return expected
