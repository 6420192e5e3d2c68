"""A member of an ensemble that is a sum of effects: trained from one sum over labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.features.effects import Effects
from dsfr.core.solve.cholesky import SingularSystemError, cholesky, solve_factored
from dsfr.core.solve.effect_priors import (
    NEGLIGIBLE,
    RANK_CURVES,
    CurveKind,
    constant_variance,
    effect_prior,
    plane_prior,
)
from dsfr.core.solve.evidence import Tuned
from dsfr.core.solve.label_rows import LabelRows
from dsfr.core.solve.prior_variances import PriorVariances, VariancePrior, maximize_prior_evidence, optimism
from dsfr.core.solve.statistics import Statistics, same_for_all
from dsfr.engines import Engine
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.ensemble.members import Base
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings
from dsfr.training.tasks.messages import pack, scalar, unpack_statistics
from dsfr.training.weights.problem import Solution

HELD_CONSTANT = 4.0
"""The evidence is maximised again if the constant should have had this prior variance instead of 1."""
CLEARLY_HIGHER = 5.0
"""Log evidence by which a further member must be better than what was trained before."""


def label_statistics(engine: Engine, population: Population, effects: Effects) -> Statistics:
    """Sums over the labels of all agents."""
    target = {"target_mean": scalar(population.target.mean), "target_scale": scalar(population.target.deviation)}
    return unpack_statistics(engine.sum("statistics", {**effects.arrays(), **pack(population.ranges), **target}))


@dataclass(frozen=True, slots=True)
class EffectMember:
    """Effects with the prior of the highest evidence."""

    effects: Effects
    total: Statistics
    rows: LabelRows
    """Rows that have these statistics."""
    prior: VariancePrior
    found: PriorVariances
    kind: CurveKind

    @property
    def kept(self) -> npt.NDArray[np.bool_]:
        """Effects that are not negligible, and the constant."""
        return self.strongest(self.effects.n_outputs)

    def strongest(self, most: int) -> npt.NDArray[np.bool_]:
        """The constant and effects that are not negligible, ``most`` in all: those that may vary most over labels."""
        variation = self.found.variances * np.diag(self.total.gram)
        variation[0] = np.inf
        kept = np.zeros(len(variation), dtype=bool)
        kept[np.argsort(-variation, kind="stable")[:most]] = True
        return kept & (variation > NEGLIGIBLE)

    def is_clearly_better(self, than: EffectMember) -> bool:
        """Whether the labels clearly speak for it rather than for another one."""
        return self.found.log_evidence >= than.found.log_evidence + CLEARLY_HIGHER

    def base(self, settings: Settings) -> Base:
        """The posterior mean of the weights, without effects that are negligible."""
        kept = self.kept
        with single_threaded_blas():
            solution = _solve(self.total.only(kept), self.found, self.found.variances[kept])
        return Base.of_effects(
            settings, self.effects.without(kept[1:]), solution, lambda: self._optimism(settings.seed)
        )

    def _optimism(self, seed: int) -> float:
        with single_threaded_blas():
            return optimism(self.rows, self.prior, self.found, seed)


def mean_member(like: Base) -> Base:
    """A sum of no effects: the mean of the labels, over the knots of another member."""
    basis, total = like.basis, like.found.statistics
    assert isinstance(basis, Effects)
    assert total is not None
    n, no_effects = total.n_labeled, np.zeros(basis.n_outputs - 1, dtype=bool)
    noise = float(np.sqrt(total.target_square / n))
    height = -n * float(np.log(max(noise, np.finfo(np.float64).tiny)))
    alone = first_ones(total, 1)
    found = Solution(
        alone.moment / n, tuned=Tuned(0.0, 0.0, noise, height), statistics=alone, prior_precision=np.zeros(1)
    )
    effects = replace(basis.without(no_effects), curves=basis.curves[:, :, :0])
    return Base.of_effects(like.settings, effects, found)


def trained(
    effects: Effects, total: Statistics, start: PriorVariances | None = None, kind: CurveKind = RANK_CURVES
) -> EffectMember | None:
    """The prior of the highest evidence, sought from that of fewer effects if this is given."""

    def prior_of(constant: float) -> VariancePrior:
        return effect_prior(effects, total.n_labeled, constant, kind)

    return _sought(effects, total, prior_of, start, kind)


def trained_plane(effects: Effects, total: Statistics) -> EffectMember | None:
    """The lines among some effects, of one prior variance: ridge regression on features within their limits.

    It is the member for few labels: these say little of relevances, and with heavy tails nothing of curves there.
    """
    lines = np.zeros(effects.n_outputs, dtype=np.bool_)
    lines[1 : len(effects.singles) + 1] = effects.singles[:, 1] == 0
    plane = replace(effects.without(lines[1:]), curves=effects.curves[:, :, :0])
    lines[0] = True
    return _sought(plane, total.only(lines), lambda constant: plane_prior(plane, constant))


def _sought(
    effects: Effects,
    total: Statistics,
    prior_of: Callable[[float], VariancePrior],
    start: PriorVariances | None = None,
    kind: CurveKind = RANK_CURVES,
) -> EffectMember | None:
    """The highest evidence under a prior that has a variance of the constant."""
    with single_threaded_blas():
        prior, rows = prior_of(1.0), LabelRows.of(total)
        found = maximize_prior_evidence(rows, prior, start)
        if found is None:
            return None
        constant = constant_variance(found.noise, total.n_labeled)
        if constant > HELD_CONSTANT:
            prior = prior_of(constant)
            found = maximize_prior_evidence(rows, prior, found) or found
    return EffectMember(effects, total, rows, prior, found, kind)


def _solve(total: Statistics, found: PriorVariances, variances: Array) -> Solution:
    precision, factor = _solvable(total.gram, 1.0 / variances)
    weights, tuned = solve_factored(factor, total.moment), Tuned(0.0, 0.0, found.noise, found.log_evidence)
    return Solution(weights, tuned=tuned, statistics=total, prior_precision=precision, own_factor=factor)


def _solvable(gram: Array, precision: Array) -> tuple[Array, Array]:
    """The precisions, or the first of 10, 100, ... times them with which the system can be solved; and its factor.

    Labels without noise speak for hardly any prior, and the evidence does not notice that the system became singular.
    """
    while True:
        try:
            return precision, cholesky(gram + np.diag(precision))
        except SingularSystemError:
            precision = 10.0 * precision


def varying(effects: Effects, total: Statistics) -> tuple[Effects, Statistics]:
    """Without features that are the same for all labels: they would share the constant with it, whatever the target."""
    singles = slice(1, len(effects.singles) + 1)
    same = same_for_all(np.diag(total.gram)[singles], total.feature_sum[singles], total.n_labeled)
    varies = np.zeros(effects.knots.shape[1], dtype=bool)
    varies[effects.singles[~same, 0]] = True
    of_features = (varies[own[:, ::2]].all(axis=1) for own in effects.by_factors)
    kept = np.concatenate([[True], *of_features])
    return effects.without(kept[1:]), total.only(kept)


def single_ones(effects: Effects) -> Effects:
    """The effects of single features among them."""
    return replace(effects, pairs=effects.pairs[:0])


def first_ones(total: Statistics, n: int) -> Statistics:
    """Statistics of the first ``n`` features."""
    kept = np.zeros(len(total.moment), dtype=bool)
    kept[:n] = True
    return total.only(kept)
