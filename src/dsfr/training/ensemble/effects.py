"""Members of an ensemble that are sums of effects of single features, pairs and triples: from counts and two sums.

Two rounds of counts give the distribution of every feature over all rows, labelled or not; one sum over labelled rows
gives the statistics of all effects of one or two features. What the labels say of relevance and curvature follows
without further rounds. It tells which products of three features are worth a second sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.features.effects import Effects
from dsfr.core.features.quantile_curves import Distribution, quantile_curves
from dsfr.core.scaling.affine import scale_features
from dsfr.core.scaling.quantiles import N_THRESHOLDS
from dsfr.core.solve.cholesky import SingularSystemError, cholesky, solve_factored
from dsfr.core.solve.effect_priors import (
    NEGLIGIBLE,
    EffectSizes,
    constant_variance,
    effect_prior,
    effect_sizes,
    likely_products,
    product_effects,
    single_effects,
)
from dsfr.core.solve.evidence import Tuned
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
SAME = 1e-9
"""Of its mean square: a term whose variance over the labels is less does not vary."""
HELD_CONSTANT = 4.0
"""The evidence is maximised again if the constant should have had this prior variance instead of 1."""
LABELS_FOR_TRIPLES = 100.0
"""With fewer, products of three are not tried."""
CLEARLY_HIGHER = 5.0
"""Log evidence by which they must be better than what was trained before."""


@dataclass(frozen=True, slots=True)
class TrainedEffects:
    """Members that are sums of effects, and what was learnt of the target on the way."""

    members: tuple[Base, ...] = ()
    n_target_values: int | None = None
    """Different labels, if they are few."""


def agree_effects(engine: Engine, settings: Settings, population: Population) -> TrainedEffects:
    """Sums of single effects, with pairs, and with pairs and triples; none if labels do not vary or are too few."""
    allowed = settings.most_weights(population.stated_labels)
    most = MOST_EFFECTS if allowed is None else min(MOST_EFFECTS, allowed)
    if settings.effects is None or most <= len(population.ranges.low):
        return TrainedEffects()
    found = _summed(engine, settings, population, most)
    if found is None:
        return TrainedEffects()
    dictionary, total, n_values = found
    dictionary, total = _varying(dictionary, total)
    n = len(dictionary.singles)
    members = [_trained(_single(dictionary), _first(total, n + 1))]
    if len(dictionary.pairs):
        members.append(_trained(dictionary, total))
        members.append(_agree_triples(engine, settings, population, members[-1], most))
    bases = (member.base(settings) for member in members if member is not None)
    return TrainedEffects(tuple(bases), n_values)


def _agree_triples(
    engine: Engine, settings: Settings, population: Population, before: _Member | None, most: int
) -> _Member | None:
    """The single effects that count, and the likeliest products of two and of three, from one more sum over labels.

    None if they are not asked for, labels are few, owners share sums alone (a product of curves can be made for single
    rows), or the labels do not clearly speak for them.
    """
    is_asked = settings.effects == "triples" and not engine.only_sums and population.n_labeled >= LABELS_FOR_TRIPLES
    if before is None or not is_asked:
        return None
    singles = _single(before.effects.without(before.kept[1:]))
    products = likely_products(before.effects, before.found, np.diag(before.total.gram), most - singles.n_outputs)
    if not len(products[1]):
        return None
    effects = replace(singles, pairs=products[0], triples=products[1])
    found = _trained(effects, _statistics(engine, population, effects), start=before.found)
    if found is None or found.found.log_evidence < before.found.log_evidence + CLEARLY_HIGHER:
        return None
    return found


def _summed(
    engine: Engine, settings: Settings, population: Population, most: int
) -> tuple[Effects, Statistics, int | None] | None:
    """All effects that are tried, their statistics, and the number of different labels if they are few.

    Where sums alone leave the agents, these can refuse knots between which they have few rows: fewer curves are then
    tried, and None is returned if the agents refuse one.
    """
    sizes = effect_sizes(len(population.ranges.low), population.n_labeled, most)
    if not engine.only_sums:
        distribution, n_values = _distribution(engine, population)
        dictionary = _dictionary(settings, population, sizes, distribution)
        return dictionary, _statistics(engine, population, dictionary), n_values
    distribution = agree_grid_counts(engine, population.ranges)
    sizes = sizes.without_curved_products().for_rows(population.n_samples / engine.n_agents)
    while sizes.n_curves:
        dictionary = _dictionary(settings, population, sizes, distribution)
        try:
            return dictionary, _statistics(engine, population, dictionary), None
        except RefusedError:
            sizes = sizes.with_curves(sizes.n_curves // 2)
    return None


def _varying(effects: Effects, total: Statistics) -> tuple[Effects, Statistics]:
    """Without features that are the same for all labels: they would share the constant with it, whatever the target."""
    n, singles = max(total.n_labeled, 1.0), slice(1, len(effects.singles) + 1)
    squares, means = np.diag(total.gram)[singles] / n, total.feature_sum[singles] / n
    varies = np.zeros(effects.knots.shape[1], dtype=bool)
    varies[effects.singles[squares - means**2 > SAME * squares, 0]] = True
    of_features = (varies[own[:, ::2]].all(axis=1) for own in effects.by_factors)
    kept = np.concatenate([[True], *of_features])
    return effects.without(kept[1:]), _only(total, kept)


def _statistics(engine: Engine, population: Population, effects: Effects) -> Statistics:
    target = {"target_mean": scalar(population.target.mean), "target_scale": scalar(population.target.deviation)}
    return unpack_statistics(engine.sum("statistics", {**effects.arrays(), **pack(population.ranges), **target}))


def _dictionary(settings: Settings, population: Population, sizes: EffectSizes, distribution: Distribution) -> Effects:
    """All effects that are tried."""
    d = len(population.ranges.low)
    knots, ranks = distribution.knots(sizes.n_knots)
    scaled = scale_features(knots, population.ranges)
    n_terms = 0 if settings.effects == "single" else sizes.product_terms
    products = product_effects(np.arange(d), n_terms)
    curves = quantile_curves(scaled, ranks, sizes.n_curves)
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
class _Member:
    """Effects with the prior of the highest evidence."""

    effects: Effects
    total: Statistics
    prior: VariancePrior
    found: PriorVariances

    @property
    def kept(self) -> npt.NDArray[np.bool_]:
        """Effects that are not negligible, and the constant."""
        kept: npt.NDArray[np.bool_] = self.found.variances * np.diag(self.total.gram) > NEGLIGIBLE
        kept[0] = True
        return kept

    def base(self, settings: Settings) -> Base:
        """The posterior mean of the weights, without effects that are negligible."""
        kept = self.kept
        with single_threaded_blas():
            solution = _solve(_only(self.total, kept), self.found, self.found.variances[kept])
            solution = replace(solution, optimism=optimism(self.total, self.prior, self.found, settings.seed))
        return Base.of_effects(settings, self.effects.without(kept[1:]), solution)


def _trained(effects: Effects, total: Statistics, start: PriorVariances | None = None) -> _Member | None:
    """The prior of the highest evidence, sought from that of fewer effects if this is given."""
    with single_threaded_blas():
        prior = effect_prior(effects, total.n_labeled)
        found = maximize_prior_evidence(total, prior, start)
        if found is None:
            return None
        constant = constant_variance(found.noise, total.n_labeled)
        if constant > HELD_CONSTANT:
            prior = effect_prior(effects, total.n_labeled, constant)
            found = maximize_prior_evidence(total, prior, found) or found
    return _Member(effects, total, prior, found)


def _solve(total: Statistics, found: PriorVariances, variances: Array) -> Solution:
    precision = _solvable(total.gram, 1.0 / variances)
    weights = solve_factored(cholesky(total.gram + np.diag(precision)), total.moment)
    tuned = Tuned(0.0, 0.0, found.noise, found.log_evidence)
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


def _single(effects: Effects) -> Effects:
    return replace(effects, pairs=effects.pairs[:0])


def _first(total: Statistics, n: int) -> Statistics:
    kept = np.zeros(len(total.moment), dtype=bool)
    kept[:n] = True
    return _only(total, kept)


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
