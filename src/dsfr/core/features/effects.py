"""Effects of one to three features: rules with as many conditions (a functional analysis of variance).

Every feature has triangular fuzzy sets at common knots, its quantiles; neighboring sets overlap, and memberships sum
to 1. A curve over these sets is a list of zero-order rules, "IF age is about 34 THEN 2.1": piecewise linear between the
knots, constant beyond. A product of curves of two features is a table of rules with two conditions, one of three is a
table of rules with three. A level is a rule of one condition of its own, "IF school is 12 THEN -3": a set that runs
from one knot to another. The features of this basis are a constant, the line and a few curves of every feature,
products of two or three of them, and levels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, IntArray
from dsfr.core.compiled_effects import EffectTables, effect_predictions
from dsfr.core.features.basis import Kernel
from dsfr.core.features.gram import FeatureSums
from dsfr.core.features.quantile_curves import LEAST_STEP
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.scaling.affine import Ranges

EFFECT_ARRAYS = ("knots", "curves", "singles", "pairs", "triples", "levels")
"""Names of the arrays of effects; the last two are left out where there are none."""
OPTIONAL_ARRAYS = EFFECT_ARRAYS[-2:]
FARTHEST = 30.0
"""Lines are followed so far, in deviations of the feature, and are constant beyond: products of lines are finite."""


@dataclass(frozen=True, slots=True)
class Effects:
    """A constant, terms of single features, products of two or three terms of different features, and levels.

    Term 0 of a feature is its line, term ``l`` > 0 its ``l``-th curve.
    """

    knots: Array
    """Where the fuzzy sets of each feature have membership 1, in scaled units, ascending; shape (m, d)."""
    curves: Array
    """Values of the curves at the knots; shape (m, d, r)."""
    singles: IntArray
    """Feature and term of every effect of one feature; shape (s, 2)."""
    pairs: IntArray
    """Feature and term, twice, of every product of two; shape (q, 4)."""
    triples: IntArray = field(default_factory=lambda: np.empty((0, 6), dtype=np.int64))
    """Feature and term, three times, of every product of three; shape (t, 6)."""
    levels: IntArray = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))
    """Feature, first and last knot of every level, whose membership is 1 between them; shape (l, 3)."""

    unit_arrays: ClassVar[tuple[str, ...]] = ("knots",)

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Effects:
        """The effects that `arrays` describes.

        Raises
        ------
        ValueError
            If shapes do not belong together, a feature or term does not exist, or knots are not in ascending order.
        """
        own = {name: arrays[name] for name in EFFECT_ARRAYS if name in arrays}
        if not all(name in own for name in EFFECT_ARRAYS if name not in OPTIONAL_ARRAYS):
            raise ValueError("its effects lack an array")
        knots, curves = own["knots"], own["curves"]
        if knots.ndim != 2 or curves.ndim != 3 or curves.shape[:2] != knots.shape or 0 in knots.shape:
            raise ValueError("its knots and curves do not belong together")
        found = cls(**own)
        for n_factors, effects in enumerate(found.by_factors, start=1):
            _check_effects(effects, n_factors, knots.shape[1], curves.shape[2] + 1)
        _check_levels(found.levels, knots)
        steps = np.diff(knots, axis=0)
        if not ((steps >= 0).all() and (np.diff(curves, axis=0)[steps < LEAST_STEP] == 0).all()):
            raise ValueError("its knots are not in ascending order, or too near for different values")
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that define it, by name; those of triples and levels only if there are some."""
        found = {name: getattr(self, name) for name in EFFECT_ARRAYS}
        return {name: array for name, array in found.items() if len(array) or name not in OPTIONAL_ARRAYS}

    @property
    def by_factors(self) -> tuple[IntArray, IntArray, IntArray]:
        """Effects of one, of two and of three factors, in the order of their weights behind the constant's.

        Weights of levels are the last.
        """
        return self.singles, self.pairs, self.triples

    @property
    def locations(self) -> Array:
        """The knots."""
        return self.knots

    @property
    def scales(self) -> Array:
        """Triangular sets are as wide as the distance of their knots, which may be 0 where values repeat: ones."""
        return np.ones_like(self.knots)

    @property
    def n_rules(self) -> int:
        """Its rules are not of the form of `Rules`: 0."""
        return 0

    @property
    def rules(self) -> Rules:
        """Its rules are not of the form of `Rules`: a ValueError."""
        raise ValueError("this model has effects of single features and pairs, not rules of clusters")

    @property
    def n_outputs(self) -> int:
        """One for the constant, and one for every effect."""
        return 1 + sum(map(len, self.by_factors)) + len(self.levels)

    def features(self, X: Array) -> Array:
        """Constant, effects of single features, products and levels; shape (n, n_outputs)."""
        return self.features_of(self.terms(X), self.memberships(X))

    def features_of(self, terms: Array, memberships: Array) -> Array:
        """Features from line and curves of every feature, shape (n, d, 1 + r), and memberships of levels, (n, l)."""
        products = (products_of(terms, effects) for effects in self.by_factors)
        # In C order: a row is then summed in the same order whatever the number of rows.
        return np.ascontiguousarray(np.concatenate([np.ones((len(terms), 1)), *products, memberships], axis=1))

    def terms(self, X: Array) -> Array:
        """Line and curves of every feature; shape (n, d, 1 + r)."""
        terms = np.empty((*X.shape, self.curves.shape[2] + 1))
        terms[:, :, 0] = np.clip(X, -FARTHEST, FARTHEST)
        for j in range(X.shape[1]):
            for curve in range(self.curves.shape[2]):
                terms[:, j, curve + 1] = np.interp(X[:, j], self.knots[:, j], self.curves[:, j, curve])
        return terms

    def memberships(self, X: Array) -> Array:
        """Memberships of the levels; shape (n, l)."""
        found, rows = np.zeros((len(X), len(self.levels) + 1)), np.arange(len(X))
        for j in np.unique(self.levels[:, 0]).tolist():
            knots, levels = self.knots[:, j], self._levels_at_knots(j)
            places = np.clip(np.searchsorted(knots, X[:, j], side="right") - 1, 0, max(len(knots) - 2, 0))
            after = np.minimum(places + 1, len(knots) - 1)
            steps = knots[after] - knots[places]
            with np.errstate(over="ignore"):
                passed = np.clip((X[:, j] - knots[places]) / np.maximum(steps, LEAST_STEP), 0.0, 1.0)
            passed = np.where(steps < LEAST_STEP, 0.0, passed)
            found[rows, levels[places]] += 1.0 - passed
            found[rows, levels[after]] += passed
        return found[:, :-1]

    def _levels_at_knots(self, j: int) -> IntArray:
        """Number of the level that every knot of a feature belongs to, one beyond the last if to none; (m,)."""
        found = np.full(len(self.knots), len(self.levels))
        for number in np.flatnonzero(self.levels[:, 0] == j).tolist():
            found[self.levels[number, 1] : self.levels[number, 2] + 1] = number
        return found

    def sums(
        self, X: Array, y: Array, ranges: Ranges | None, weights: Array | None = None, *, fast: bool
    ) -> FeatureSums:
        """``H'H``, ``H'y`` and ``H'1``."""
        return FeatureSums.of(X, y, self, ranges, weights)

    def kernel(self, ranges: Ranges, weights: Array) -> Kernel | None:
        """Compiled predictions: all curves of a feature are one, weighted, but for those that products have."""
        shift, unit, tables = ranges.midpoints, ranges.half_widths, self._tables(weights)
        return lambda X: effect_predictions(X, shift, unit, tables)

    def _tables(self, weights: Array) -> EffectTables:
        lines, alone = self._alone(weights)
        in_products = self._curves_in_products()
        curves = np.concatenate([alone[:, :, None], self.curves[:, :, :in_products]], axis=2)
        steps = np.diff(self.knots, axis=0)[:, :, None]
        slopes = np.zeros_like(curves)
        slopes[:-1] = np.where(steps >= LEAST_STEP, np.diff(curves, axis=0) / np.maximum(steps, LEAST_STEP), 0.0)
        knots, values, slopes = (np.ascontiguousarray(array.T) for array in (self.knots, curves, slopes))
        values, slopes = (np.ascontiguousarray(array.swapaxes(0, 1)) for array in (values, slopes))
        others = (lines, self.pairs, self.triples, self._of_products(weights), float(weights[0]), FARTHEST)
        return EffectTables(knots, values, slopes, *others)

    def summed(self, weights: Array) -> tuple[Effects, Array]:
        """The same function, with one curve for all curves and levels of a feature, and those that products have."""
        lines, alone = self._alone(weights)
        sizes = np.abs(alone).max(axis=0)  # a curve of the size of weights could have slopes that overflow
        alone = alone / np.where(sizes > 0.0, sizes, 1.0)
        curves = np.concatenate([alone[:, :, None], self.curves[:, :, : self._curves_in_products()]], axis=2)
        d = len(lines)
        singles = np.stack([np.repeat(np.arange(d), 2), np.tile([0, 1], d)], axis=1).astype(np.int64)
        pairs, triples = (_behind_first(effects) for effects in (self.pairs, self.triples))
        own = np.stack([lines, sizes], axis=1).ravel()
        found = Effects(self.knots, curves, singles, pairs, triples)
        return found, np.concatenate([weights[:1], own, self._of_products(weights)])

    def _alone(self, weights: Array) -> tuple[Array, Array]:
        """Weight of every line, (d,), and the weighted sum of a feature's curves and levels at its knots, (m, d)."""
        n, (_, d, r) = len(self.singles), self.curves.shape
        single = np.zeros((d, r + 1))
        np.add.at(single, tuple(self.singles.T), weights[1 : n + 1])
        alone = np.einsum("mdr,dr->md", self.curves, single[:, 1:])
        for (j, first, last), weight in zip(self.levels.tolist(), self._of_levels(weights).tolist(), strict=True):
            alone[first : last + 1, j] += weight
        return single[:, 0].copy(), alone

    def _curves_in_products(self) -> int:
        return max(int(effects[:, 1::2].max(initial=0)) for effects in (self.pairs, self.triples))

    def _of_products(self, weights: Array) -> Array:
        start = 1 + len(self.singles)
        return weights[start : start + len(self.pairs) + len(self.triples)]

    def _of_levels(self, weights: Array) -> Array:
        return weights[len(weights) - len(self.levels) :]

    def typical_rows(self, n_rows: int, shares: Array | None, rng: np.random.Generator) -> Array:
        """Rows of knots drawn for each feature alone."""
        places = rng.integers(len(self.knots), size=(n_rows, self.knots.shape[1]))
        return np.take_along_axis(self.knots, places, axis=0)

    def without(self, kept: npt.NDArray[np.bool_]) -> Effects:
        """The basis with some effects only; ``kept`` has an entry for each effect, the constant not among them."""
        groups = (*self.by_factors, self.levels)
        parts = zip(groups, np.split(kept, np.cumsum([len(effects) for effects in groups])[:-1]), strict=True)
        return Effects(self.knots, self.curves, *(effects[own] for effects, own in parts))


def products_of(terms: Array, effects: IntArray) -> Array:
    """Products of the terms that effects name, shape (n, e), from terms of every feature, shape (n, d, 1 + r)."""
    found: Array = terms[:, effects[:, 0], effects[:, 1]]
    for feature, term in zip(effects.T[2::2], effects.T[3::2], strict=True):
        found = found * terms[:, feature, term]
    return found


def _behind_first(effects: IntArray) -> IntArray:
    """The same products, where a curve was put before those that there are."""
    moved = effects.copy()
    moved[:, 1::2] += moved[:, 1::2] > 0
    return moved


def _check_levels(levels: npt.NDArray[Any], knots: npt.NDArray[Any]) -> None:
    n_knots, n_features = knots.shape
    if levels.ndim != 2 or levels.shape[1] != 3 or levels.dtype != np.int64:
        raise ValueError("its levels are not numbers of features and knots")
    features, first, last = levels.T
    if (levels < 0).any() or (features >= n_features).any() or (last >= n_knots).any() or (last < first).any():
        raise ValueError("its levels name a feature or a knot that does not exist")
    order = np.lexsort((first, features))
    follows = features[order][1:] == features[order][:-1]
    if (first[order][1:] <= last[order][:-1])[follows].any():
        raise ValueError("its levels overlap")
    before, after = np.maximum(first - 1, 0), np.minimum(last + 1, n_knots - 1)
    ends = np.stack([knots[first, features] - knots[before, features], knots[after, features] - knots[last, features]])
    if (ends < LEAST_STEP)[np.stack([first > 0, last < n_knots - 1])].any():
        raise ValueError("its levels end between knots that are too near")


def _check_effects(effects: npt.NDArray[Any], n_factors: int, n_features: int, n_terms: int) -> None:
    if effects.ndim != 2 or effects.shape[1] != 2 * n_factors:
        raise ValueError("its effects are not numbers of features and terms")
    if effects.dtype != np.int64:
        raise ValueError("its effects are not whole numbers")
    features, terms = effects[:, ::2], effects[:, 1::2]
    if (effects < 0).any() or (features >= n_features).any() or (terms >= n_terms).any():
        raise ValueError("its effects name a feature or a curve that does not exist")
    if (np.diff(np.sort(features, axis=1), axis=1) == 0).any():
        raise ValueError("its products are not of different features")
