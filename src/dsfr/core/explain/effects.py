"""Effects of single features and of pairs, of all members that consist of them, in the units of the data.

A product of two terms is taken apart about an origin ``o`` of the terms: ``s t = (s - o_s)(t - o_t) + o_t s + o_s t -
o_s o_t``. The first part is what two features do together; the others belong to one feature each, or are constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.explain.rule_base import N_SYNTHETIC, domain_of, scaled_rows
from dsfr.core.features.effects import FARTHEST, Effects
from dsfr.core.features.expectation import expected_terms
from dsfr.core.prediction.mixture import Member


@dataclass(frozen=True, slots=True)
class EffectBase:
    """All members of a mixture that are sums of effects, weighted by their shares."""

    members: tuple[Member, ...]

    @classmethod
    def of(cls, members: Sequence[Member]) -> EffectBase | None:
        """Those of a mixture that count; None if there are none."""
        kept = tuple(member for member in members if isinstance(member.predictor.basis, Effects) and member.share > 0)
        return cls(kept) if kept else None

    @property
    def share(self) -> float:
        """Share of the prediction."""
        return float(sum(member.share for member in self.members))

    @property
    def bases(self) -> list[Effects]:
        """The basis of every member."""
        return list(map(_basis, self.members))

    @property
    def pairs(self) -> IntArray:
        """Features of every pair that some member has a product of, ascending; shape (q, 2)."""
        return np.unique(np.concatenate(list(map(_features_of_pairs, self.bases))), axis=0)

    @property
    def typical_row(self) -> Array:
        """The middle knot of every feature, nearly its median; (d,)."""
        first = self.members[0].predictor
        knots = _data_knots(self.members[0])
        clipped: Array = domain_of(first).clip(knots[len(knots) // 2])
        return clipped

    def synthetic_rows(self) -> Array:
        """Rows of knots drawn for each feature alone, clipped to the domain; the same model gives the same rows."""
        first = self.members[0].predictor
        rows = first.basis.typical_rows(N_SYNTHETIC, None, np.random.default_rng(0))
        return domain_of(first).clip(first.ranges.midpoints + first.ranges.half_widths * rows)

    def terms(self, X: Array, deviations: Array | None = None) -> list[Array]:
        """Terms of every member on rows, expected ones with deviations of their values; each of shape (n, d, 1 + r)."""
        return [_terms(member, X, deviations) for member in self.members]

    def mean_terms(self, X: Array) -> list[Array]:
        """Means of the terms over rows: effects about these have mean 0; each of shape (d, 1 + r)."""
        return [terms.mean(axis=0) for terms in self.terms(X)]

    def constant(self, origins: Sequence[Array]) -> float:
        """Weighted output of all members where the terms are at their origins."""
        return float(sum(_constant(member, origin) for member, origin in zip(self.members, origins, strict=True)))

    def parts(self, X: Array, origins: Sequence[Array], deviations: Array | None = None) -> tuple[Array, Array]:
        """Effects of every feature, (n, d), and of every pair together, (n, q), about the origins of the terms.

        With `constant` they sum to the members' weighted outputs. With deviations of the values of the rows they are
        expectations; those of a product are products of expectations, since its features differ.
        """
        pairs = self.pairs
        singles, together = np.zeros(X.shape), np.zeros((len(X), len(pairs)))
        for member, terms, origin in zip(self.members, self.terms(X, deviations), origins, strict=True):
            basis, unit = _basis(member), member.share * member.predictor.target_scale
            moved = terms - origin
            singles += unit * np.einsum("ndt,dt->nd", moved, _coefficients(member, origin))
            first, second = (moved[:, at[:, 0], at[:, 1]] for at in (basis.pairs[:, :2], basis.pairs[:, 2:]))
            products = unit * first * second * _split(member)[2]
            np.add.at(together.T, _places(_features_of_pairs(basis), pairs), products.T)
        return singles, together

    def curves(self, origins: Sequence[Array]) -> list[tuple[Array, Array]]:
        """Knots within the domain, in the data's units, and the effect there, of every feature.

        Effects are linear in between. Knots of all members are among them, and where a line becomes constant.
        """
        grids = [self._grid(j) for j in range(self.members[0].predictor.n_features)]
        most = max(map(len, grids))
        rows = np.stack([np.pad(grid, (0, most - len(grid)), mode="edge") for grid in grids], axis=1)
        values = self.parts(rows, origins)[0]
        return [(grid, values[: len(grid), j]) for j, grid in enumerate(grids)]

    def _grid(self, j: int) -> Array:
        domain = domain_of(self.members[0].predictor)
        low, high = domain.low[j], domain.high[j]
        places = [np.array([low, high])]
        for member in self.members:
            middle, half = member.predictor.ranges.midpoints[j], member.predictor.ranges.half_widths[j]
            places += [_data_knots(member)[:, j], middle + half * np.array([-FARTHEST, FARTHEST])]
        grid: Array = np.unique(np.clip(np.concatenate(places), low, high))
        return grid


def _basis(member: Member) -> Effects:
    basis = member.predictor.basis
    assert isinstance(basis, Effects)
    return basis


def _terms(member: Member, X: Array, deviations: Array | None) -> Array:
    z = scaled_rows(X, member.predictor)
    if deviations is None:
        return _basis(member).terms(z)
    return expected_terms(_basis(member), z, deviations / member.predictor.ranges.half_widths)


def _data_knots(member: Member) -> Array:
    ranges = member.predictor.ranges
    knots: Array = ranges.midpoints + ranges.half_widths * _basis(member).knots
    return knots


def _features_of_pairs(basis: Effects) -> IntArray:
    return np.sort(basis.pairs[:, ::2], axis=1)


def _places(found: IntArray, pairs: IntArray) -> IntArray:
    """Row of every found pair among all pairs, which are in order."""
    n = int(pairs.max(initial=0)) + 1
    return np.searchsorted(pairs @ [n, 1], found @ [n, 1])


def _split(member: Member) -> tuple[float, Array, Array]:
    """Weights of the constant, of the single effects and of the products."""
    weights, n = member.predictor.weights, len(_basis(member).singles)
    return float(weights[0]), weights[1 : n + 1], weights[n + 1 :]


def _constant(member: Member, origin: Array) -> float:
    basis, predictor = _basis(member), member.predictor
    constant, singles, products = _split(member)
    first, second = (origin[at[:, 0], at[:, 1]] for at in (basis.pairs[:, :2], basis.pairs[:, 2:]))
    total = constant + singles @ origin[basis.singles[:, 0], basis.singles[:, 1]] + products @ (first * second)
    return member.share * (predictor.target_mean + predictor.target_scale * float(total))


def _coefficients(member: Member, origin: Array) -> Array:
    """Coefficients of terms alone: their own, and those of products whose other term is at its origin."""
    basis = _basis(member)
    _, singles, products = _split(member)
    one, other = basis.pairs[:, :2], basis.pairs[:, 2:]
    total = np.zeros_like(origin)
    np.add.at(total, tuple(basis.singles.T), singles)
    np.add.at(total, tuple(one.T), products * origin[tuple(other.T)])
    np.add.at(total, tuple(other.T), products * origin[tuple(one.T)])
    return total
