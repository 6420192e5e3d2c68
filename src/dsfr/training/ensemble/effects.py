"""Members of an ensemble that are sums of effects of single features, and of pairs: from counts and two sums.

Two rounds of counts give the distribution of every feature over all rows, labelled or not; two sums over labelled rows
give the statistics of all effects, with curves of ranks and with curves of values. What the labels say of scale,
relevance and curvature follows without further rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.features.effects import Effects
from dsfr.core.features.quantile_curves import Distribution, quantile_curves
from dsfr.core.scaling.affine import scale_features
from dsfr.core.scaling.quantiles import N_THRESHOLDS
from dsfr.core.solve import evidence
from dsfr.core.solve.cholesky import SingularSystemError, cholesky, solve_factored
from dsfr.core.solve.effect_priors import EffectSizes, effect_prior, effect_sizes, product_effects, single_effects
from dsfr.core.solve.prior_variances import PriorVariances, VariancePrior, maximize_prior_evidence, optimism
from dsfr.core.solve.statistics import Statistics
from dsfr.engines import Engine, RefusedError
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.ensemble.members import Base
from dsfr.training.scaling.grid_counts import agree_grid_counts
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings
from dsfr.training.tasks.messages import ask_sample, pack, scalar, unpack_statistics
from dsfr.training.weights.problem import Solution

MOST_EFFECTS = 600
"""More effects are not tried."""
FEW_VALUES, LABELS_PER_VALUE = 10, 3.0
"""Different labels that are few, at most, and labels for each of them at least."""
CLEARLY = 0.5
"""Roots of the number of labels by which a log evidence is clearly above another: two of them differ by chance in the
order of one. Chosen on the design tables of benchmarks/tables."""
NEGLIGIBLE = 1e-2
"""Of the noise, over all labels: effects whose prior variance adds less are left out."""


Summed = tuple[Effects, Statistics]
"""Effects that are tried, and their sums over labels."""


@dataclass(frozen=True, slots=True)
class TrainedEffects:
    """Members that are sums of effects, and what was learnt of the target on the way."""

    members: tuple[Base, ...] = ()
    n_target_values: int | None = None
    """Different labels, if they are few."""


def agree_effects(engine: Engine, settings: Settings, population: Population) -> TrainedEffects:
    """Sums of lines, of single effects, and of these and products; none if labels do not vary or are too few."""
    allowed = settings.most_weights(population.stated_labels)
    most = MOST_EFFECTS if allowed is None else min(MOST_EFFECTS, allowed)
    if settings.effects is None or most <= len(population.ranges.low):
        return TrainedEffects()
    tried, n_values = _summed(engine, settings, population, most)
    with single_threaded_blas():
        members = tuple(_trained(settings, tuned) for tuned in _tuned(settings, tried))
    return TrainedEffects(members, n_values)


def _summed(engine: Engine, settings: Settings, population: Population, most: int) -> tuple[list[Summed], int | None]:
    """All effects that are tried, with their statistics, and the number of different labels if they are few.

    Curves are smooth in the ranks of a feature, or in its values. Where sums alone leave the agents, these can refuse
    knots between which they have few rows: fewer curves are then tried, of ranks alone, or nothing at all.
    """
    sizes = effect_sizes(len(population.ranges.low), population.n_labeled, most)
    if not engine.only_sums:
        distribution, n_values = _distribution(engine, population)
        scales = [_dictionary(settings, population, sizes, distribution, by_value=scale) for scale in (False, True)]
        return [(effects, _statistics(engine, population, effects)) for effects in scales], n_values
    distribution = agree_grid_counts(engine, population.ranges)
    sizes = sizes.without_curved_products().for_rows(population.n_samples / engine.n_agents)
    while sizes.n_curves:
        dictionary = _dictionary(settings, population, sizes, distribution)
        try:
            return [(dictionary, _statistics(engine, population, dictionary))], None
        except RefusedError:
            sizes = sizes.with_curves(sizes.n_curves // 2)
    return [], None


def _statistics(engine: Engine, population: Population, effects: Effects) -> Statistics:
    target = {"target_mean": scalar(population.target.mean), "target_scale": scalar(population.target.deviation)}
    return unpack_statistics(engine.sum("statistics", {**effects.arrays(), **pack(population.ranges), **target}))


def _dictionary(
    settings: Settings,
    population: Population,
    sizes: EffectSizes,
    distribution: Distribution,
    *,
    by_value: bool = False,
) -> Effects:
    """All effects that are tried, with curves of ranks or of values."""
    d = len(population.ranges.low)
    knots, ranks = distribution.knots((2 if by_value else 1) * sizes.n_knots, by_value=by_value)
    scaled = scale_features(knots, population.ranges)
    n_terms = sizes.product_terms if settings.effects == "pairs" else 0
    products = product_effects(np.arange(d), n_terms)
    curves = quantile_curves(scaled, ranks, sizes.n_curves, by_value=by_value)
    return Effects(scaled, curves, single_effects(d, sizes.n_curves), products)


def _distribution(engine: Engine, population: Population) -> tuple[Distribution, int | None]:
    """Counts of all rows at thresholds, at first evenly spaced, then by the counts of the first round.

    Labels are counted like a feature. The number of different ones comes along if it is small.
    """
    limits, target = population.ranges if population.limits is None else population.limits, population.target
    low, high = target.origin - target.unit, target.origin + target.unit
    share = np.linspace(0.0, 1.0, 2 * N_THRESHOLDS)[:, None]
    first = np.append(limits.low, low) * (1.0 - share) + np.append(limits.high, high) * share
    counts = _counted(engine, first, population.sample)
    levels = np.linspace(0.0, 1.0, 2 * N_THRESHOLDS)
    columns = [np.interp(levels * of[-1], of, at) for of, at in zip(counts.T, first.T, strict=True)]
    second = np.stack(columns, axis=1)
    finer = _counted(engine, second, population.sample)
    all_of = Distribution.of(np.concatenate([first, second]), np.concatenate([counts, finer]))
    features = Distribution(all_of.thresholds[:, :-1], all_of.counts[:, :-1])
    return features, _few_values(all_of.counts[:, -1])


def _few_values(counts: Array) -> int | None:
    """Number of different labels, from their counts at ascending thresholds; None if they are not few."""
    different = int(np.count_nonzero(np.diff(counts, prepend=0.0)))
    return different if 1 < different <= min(FEW_VALUES, counts[-1] / LABELS_PER_VALUE) else None


def _counted(engine: Engine, thresholds: Array, sample: float | None) -> Array:
    """Number of rows, and in the last column labels, at or below thresholds; shape (2 `N_THRESHOLDS`, d + 1).

    The last ones are taken to hold all.
    """
    halves = np.stack(np.split(np.maximum.accumulate(thresholds, axis=0), 2)).transpose(0, 2, 1)
    asked = {"thresholds": halves[:, :-1], "target_thresholds": halves[:, -1]}
    counted = engine.sum("count_below", asked | ask_sample(sample))
    both = np.concatenate([counted["counts"], counted["target_counts"][:, None]], axis=1)
    counts: Array = both.transpose(0, 2, 1).reshape(thresholds.shape)
    counts[-1] = np.append(np.full(thresholds.shape[1] - 1, float(counted["n_samples"])), float(counted["n_labeled"]))
    return counts


@dataclass(frozen=True, slots=True)
class Tuned:
    """Effects with the prior of the highest evidence."""

    effects: Effects
    total: Statistics
    prior: VariancePrior
    found: PriorVariances

    @classmethod
    def of(cls, effects: Effects, total: Statistics) -> Tuned | None:
        """None if the labels do not vary."""
        prior = effect_prior(effects)
        found = maximize_prior_evidence(total, prior)
        return None if found is None else cls(effects, total, prior, found)


def _tuned(settings: Settings, tried: Sequence[Summed]) -> list[Tuned]:
    """Lines, single effects, and these with products, unless simpler ones have clearly more evidence.

    Their scale is the first, unless the single effects of another have clearly more evidence.
    """
    chosen = single = None
    for summed in tried:
        found = Tuned.of(*_without_products(*summed))
        if found is None:
            return []
        if single is None or _is_clearly_better(found, single):
            chosen, single = summed, found
    if chosen is None or single is None:
        return []
    parts = [Tuned.of(*_lines(single.effects, single.total)), single]
    if len(chosen[0].pairs) and settings.effects == "pairs":
        parts.append(Tuned.of(*chosen))
    kept: list[Tuned] = []
    for part in parts:
        if part is not None and not any(_is_clearly_better(simpler, part) for simpler in kept):
            kept.append(part)
    return kept


def _is_clearly_better(one: Tuned, other: Tuned) -> bool:
    ahead = one.found.log_evidence - other.found.log_evidence
    return ahead > CLEARLY * float(np.sqrt(one.total.n_labeled))


def _trained(settings: Settings, tuned: Tuned) -> Base:
    """The posterior mean, without effects that are negligible."""
    total, found = tuned.total, tuned.found
    matter = found.variances * np.diag(total.gram) > NEGLIGIBLE
    effects, kept = _part(tuned.effects, total, matter[1:])
    solution = _solve(kept, found, found.variances[np.append(True, matter[1:])])
    cost = optimism(total, tuned.prior, found, settings.seed)
    return Base.of_effects(settings, effects, replace(solution, optimism=cost))


def _solve(total: Statistics, found: PriorVariances, variances: Array) -> Solution:
    precision = _solvable(total.gram, 1.0 / variances)
    weights = solve_factored(cholesky(total.gram + np.diag(precision)), total.moment)
    tuned = evidence.Tuned(0.0, 0.0, found.noise, found.log_evidence)
    return Solution(weights, tuned=tuned, statistics=total, prior_precision=precision)


def _solvable(gram: Array, precision: Array) -> Array:
    """The precisions, or the first of 10, 100, ... times them with which the system can be solved.

    Labels without noise speak for hardly any prior, and the evidence does not notice that the system became singular.
    """
    while True:
        try:
            cholesky(gram + np.diag(precision))
        except SingularSystemError:
            precision = 10.0 * precision
        else:
            return precision


def _without_products(effects: Effects, total: Statistics) -> Summed:
    """Effects of single features alone."""
    return _part(effects, total, np.arange(effects.n_outputs - 1) < len(effects.singles))


def _lines(effects: Effects, total: Statistics) -> Summed:
    """Lines alone, of effects without products."""
    return _part(effects, total, effects.singles[:, 1] == 0)


def _part(effects: Effects, total: Statistics, kept: npt.NDArray[np.bool_]) -> Summed:
    return effects.without(kept), _only(total, np.append(True, kept))


def _only(total: Statistics, kept: npt.NDArray[np.bool_]) -> Statistics:
    """Statistics of some features."""
    both = np.ix_(kept, kept)
    return replace(
        total,
        gram=total.gram[both],
        moment=total.moment[kept],
        feature_sum=total.feature_sum[kept],
        unlabeled_gram=total.unlabeled_gram[both],
    )
