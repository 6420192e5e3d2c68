"""Effects of single features, pairs and triples, of all members that consist of them, in the units of the data.

A product of terms is taken apart about an origin ``o`` of the terms: ``s t = (s - o_s)(t - o_t) + o_t s + o_s t -
o_s o_t``, and likewise for three. A part belongs to the features whose terms are moved: what several do together,
beyond what fewer of them do, what one does alone, or a constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from dsfr.core.arrays import Array, IntArray
from dsfr.core.explain.rule_base import N_SYNTHETIC, scaled_rows
from dsfr.core.features.effects import FARTHEST, Effects, products_of
from dsfr.core.features.expectation import expected_terms
from dsfr.core.prediction.mixture import Member


@dataclass(frozen=True, slots=True)
class EffectBase:
    """All members of a mixture that are sums of effects, weighted by their shares."""

    members: tuple[Member, ...]
    """Each with one curve for all that a feature does alone."""

    @classmethod
    def of(cls, members: Sequence[Member]) -> EffectBase | None:
        """Those of a mixture that count; None if there are none."""
        kept = [member for member in members if isinstance(member.predictor.basis, Effects) and member.share > 0]
        return cls(tuple(map(_summed, kept))) if kept else None

    @property
    def share(self) -> float:
        """Share of the prediction."""
        return float(sum(member.share for member in self.members))

    @property
    def bases(self) -> list[Effects]:
        """The basis of every member."""
        return list(map(_basis, self.members))

    @property
    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Features, ascending, of every pair that some member has a product of, and then of every triple."""
        found = {
            group
            for basis in self.bases
            for effects in basis.by_factors
            for features in np.unique(np.sort(effects[:, ::2], axis=1), axis=0).tolist()
            for size in range(2, len(features) + 1)
            for group in combinations(features, size)
        }
        return tuple(sorted(found, key=lambda group: (len(group), group)))

    @property
    def typical_row(self) -> Array:
        """The middle knot of every feature, nearly its median; (d,)."""
        first = self.members[0].predictor
        knots = _data_knots(self.members[0])
        clipped: Array = first.domain.clip(knots[len(knots) // 2])
        return clipped

    def synthetic_rows(self) -> Array:
        """Rows of knots drawn for each feature alone, clipped to the domain; the same model gives the same rows."""
        first = self.members[0].predictor
        rows = first.basis.typical_rows(N_SYNTHETIC, None, np.random.default_rng(0))
        return first.domain.clip(first.ranges.midpoints + first.ranges.half_widths * rows)

    def terms(self, X: Array, deviations: Array | None = None) -> list[Array]:
        """Terms of every member on rows, expected ones with deviations of their values; each of shape (n, d, 1 + r)."""
        return [_terms(member, X, deviations) for member in self.members]

    def mean_terms(self, X: Array) -> list[Array]:
        """Means of the terms over rows: effects about these have mean 0; each of shape (d, 1 + r)."""
        return [terms.mean(axis=0) for terms in self.terms(X)]

    def constant(self, origins: Sequence[Array]) -> float:
        """Weighted output of all members where the terms are at their origins."""
        total = 0.0
        for member, origin in zip(self.members, origins, strict=True):
            fixed = sum(float(weights.sum()) for effects, weights in _about(member, origin) if not effects.shape[1])
            total += member.share * (member.predictor.target_mean + member.predictor.target_scale * fixed)
        return total

    def parts(self, X: Array, origins: Sequence[Array], deviations: Array | None = None) -> tuple[Array, Array]:
        """Effects of every feature, (n, d), and of every group together, (n, g), about the origins of the terms.

        With `constant` they sum to the members' weighted outputs. With deviations of the values of the rows they are
        expectations; those of a product are products of expectations, since its features differ.
        """
        d, groups = X.shape[1], self.groups
        places = {group: i for i, group in enumerate([*((j,) for j in range(d)), *groups])}
        total = np.zeros((len(places), len(X)))
        for member, terms, origin in zip(self.members, self.terms(X, deviations), origins, strict=True):
            unit, moved = member.share * member.predictor.target_scale, terms - origin
            for effects, weights in _about(member, origin):
                if effects.shape[1]:
                    columns = [places[tuple(sorted(features))] for features in effects[:, ::2].tolist()]
                    np.add.at(total, columns, (unit * products_of(moved, effects) * weights).T)
        return total[:d].T, total[d:].T

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
        domain = self.members[0].predictor.domain
        low, high = domain.low[j], domain.high[j]
        places = [np.array([low, high])]
        for member in self.members:
            middle, half = member.predictor.ranges.midpoints[j], member.predictor.ranges.half_widths[j]
            places += [_data_knots(member)[:, j], middle + half * np.array([-FARTHEST, FARTHEST])]
        grid: Array = np.unique(np.clip(np.concatenate(places), low, high))
        return grid


def _summed(member: Member) -> Member:
    basis, weights = _basis(member).summed(member.predictor.weights)
    return replace(member, predictor=replace(member.predictor, basis=basis, weights=weights), posterior=None)


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


def _about(member: Member, origin: Array) -> Iterator[tuple[IntArray, Array]]:
    """The member's effects as products of terms less their origins, and the weights of these.

    Of every effect, some factors are moved and the others are at their origins; effects without a factor are constant.
    """
    weights, passed = member.predictor.weights, 1
    yield np.empty((1, 0), dtype=np.int64), weights[:1]
    for effects in _basis(member).by_factors:
        factors, own = effects.reshape(len(effects), effects.shape[1] // 2, 2), weights[passed : passed + len(effects)]
        at_origin, numbers = origin[factors[:, :, 0], factors[:, :, 1]], range(factors.shape[1])
        for moved in (list(chosen) for size in range(len(numbers) + 1) for chosen in combinations(numbers, size)):
            held = [number for number in numbers if number not in moved]
            yield factors[:, moved].reshape(len(effects), 2 * len(moved)), own * at_origin[:, held].prod(axis=1)
        passed += len(effects)
