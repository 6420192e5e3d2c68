"""How sure a model is: leave-one-out errors of all agents' labels, counted; and how much its rule bases agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.prediction.link import reach_of
from dsfr.core.prediction.mixture import Member, Mixture
from dsfr.core.prediction.posterior import Posterior
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.scores import Scores
from dsfr.core.scaling.quantiles import counts_below, floats_up_to
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.ensemble.members import Base, left_out_rows, member_predictions, mixture_message
from dsfr.training.ensemble.rule_bases import Weighed
from dsfr.training.rows import ArrayRows
from dsfr.training.scaling.robust import KEPT_LIMITS
from dsfr.training.scaling.survey import Population
from dsfr.training.shard import Purpose, Shard
from dsfr.training.tasks.declaration import array, at_least
from dsfr.training.tasks.fields import ASCENDING, COUNT, MIXTURE, MIXTURE_WITH_FACTORS, SAMPLE, SCORE
from dsfr.training.tasks.messages import scalar
from dsfr.training.tasks.registry import remember, task
from dsfr.training.tasks.semidefinite import GRAM

N_THRESHOLDS = 400
"""Errors at which agents count, in each of two rounds or more; each spaces them by the counts of the one before."""
CROWDED, FINEST = 0.05, 1e-3
"""Share of all errors between two thresholds, and relative distance of these, above which another round is worth it:
one label far off makes the first rounds coarse."""
MOST_REFINEMENTS = 8
COUNT_DIGITS = 9
"""Decimals of counts: weights whose mean is 1 must add up to the number of labels."""
MAX_SCORES = 10_000
"""Labelled rows of an agent that errors are taken of."""

KEPT_ERRORS = remember(
    __name__, {name: array("e", rules=(at_least(0.0),)) for name in ("errors", "deviations", "error_weights")}
)
"""Errors on the agent's labels, their deviations, and how often each counts."""


@task(
    verb="max",
    stage="averaging",
    reveals="The largest error on one of the agent's labels. With `uncertainty=True`.",
    broadcast=MIXTURE_WITH_FACTORS,
    contributes={"largest": SCORE},
    needs=("seed",),
    recalls=(*KEPT_LIMITS, "label_groups"),
    remembers=KEPT_ERRORS,
    limited=False,
)
def score(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (max): leave-one-out errors of the average on the own labels, kept; only the largest is sent.

    An error is divided by the leave-one-out deviation of its row, in deviations of the target: so errors where much and
    where little is known can be compared. Targets are as they are, not moved to the limits: an interval must hold them.
    """
    sample = labeled_sample(shard, int(memory["seed"]))
    mean, scale = float(broadcast["target_mean"]), float(broadcast["target_scale"])
    rows = list(left_out_rows(Shard(sample, shard.key).within_limits(memory), memory, broadcast))
    averages = np.concatenate([np.empty(0), *(part.averages(broadcast["shares"]) for part in rows)])
    deviations = np.concatenate([np.empty(0), *(part.deviations(broadcast["shares"]) for part in rows)])
    errors = np.abs(sample.y - mean - scale * averages) / np.where(deviations > 0.0, deviations, 1.0)
    kept = {"errors": errors, "deviations": deviations, "error_weights": label_weights(sample)}
    return {**memory, **kept}, {"largest": scalar(errors.max(initial=0.0))}


def label_weights(sample: ArrayRows) -> Array:
    """How often each of the labels counts."""
    return np.ones(len(sample.y)) if sample.weights is None else sample.weights


def labeled_sample(shard: Shard, seed: int) -> ArrayRows:
    """Labelled rows: all, or `MAX_SCORES` of them at random; unscaled."""
    n = shard.n_labeled
    wanted = np.arange(n)
    if n > MAX_SCORES:
        wanted = np.sort(shard.rng(seed, Purpose.SAMPLE, repeat=1).choice(n, MAX_SCORES, replace=False))
    parts, passed = [(np.empty((0, shard.n_features)), np.empty(0), np.empty(0))], 0
    for X, y, weights in shard.labeled().weighted_batches():
        first, last = np.searchsorted(wanted, (passed, passed + len(y)))
        chosen = wanted[first:last] - passed
        parts.append((X[chosen].astype(np.float64), y[chosen], np.empty(0) if weights is None else weights[chosen]))
        passed += len(y)
    X, y, own = (np.concatenate(part) for part in zip(*parts, strict=True))
    return ArrayRows(X, y, own if shard.has_weights else None)


@task(
    verb="sum",
    stage="averaging",
    reveals="The distribution of the agent's errors: how many lie below thresholds. With `uncertainty=True`.",
    broadcast={"thresholds": array(N_THRESHOLDS, rules=(ASCENDING,))},
    contributes={"counts": array(N_THRESHOLDS, rules=(at_least(0.0),)), "squares": SCORE},
    needs=KEPT_ERRORS,
    limited=False,
    distinct=False,
)
def count_errors(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): how many of the errors kept lie at or below each threshold; and the sum of squared deviations."""
    deviations, weights = memory["deviations"], memory["error_weights"]
    counts = counts_below(memory["errors"], broadcast["thresholds"], weights)
    return memory, {"counts": counts, "squares": scalar(float(weights @ deviations**2))}


@task(
    verb="sum",
    stage="averaging",
    reveals="Averages of known functions over the agent's rows: products of predictions. With several models.",
    broadcast={**MIXTURE, "sample": SAMPLE},
    contributes={"products": array("m", "m", rules=(GRAM,)), "total": array("m"), "n_samples": COUNT},
)
def compare(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): products of the predictions of all rule bases with each other, over own rows."""
    m = len(broadcast["shares"])
    products, total = np.zeros((m, m)), np.zeros(m)
    n_rows = 0
    for X, _ in shard.sampled(float(broadcast["sample"])).batches():
        n_rows += len(X)
        for F in member_predictions(X, broadcast, fast=shard.fast):
            products += F.T @ F
            total += F.sum(axis=0)
    return memory, {"products": products, "total": total, "n_samples": scalar(n_rows)}


def calibrate(
    engine: Engine, population: Population, bases: Sequence[Base], weighed: Weighed, *, sure: bool, is_log: bool
) -> Mixture:
    """The mixture of rule bases; with ``sure``, also what tells how sure it is. ``is_log``: it learns logarithms.

    A model with small errors follows features farther, as it does the target: see `reach_of`.
    """
    shares, deviation = weighed.shares, population.target.deviation
    if not sure:
        return Mixture(tuple(_members(bases, population, shares, sure=False)))
    largest = float(engine.max("score", mixture_message(population, bases, shares))["largest"])
    scores = in_units(counted_scores(engine, largest), deviation)
    scores = replace(scores, thresholds=weighed.optimism * scores.thresholds).cautious(deviation)
    reach = reach_of(weighed.typical_error(scores, deviation), deviation, is_log=is_log)
    members = _members(bases, replace(population, limits=population.followed(reach)), shares, sure=True)
    seen = population.seen(reach)
    return Mixture(tuple(replace(one, predictor=replace(one.predictor, seen=seen)) for one in members), scores)


def _members(bases: Sequence[Base], population: Population, shares: Array, *, sure: bool) -> Iterator[Member]:
    for base, share in zip(bases, shares.tolist(), strict=True):
        yield Member(predictor_of(base, population), share, _posterior(base, population) if sure else None)


def counted_scores(engine: Engine, largest: float) -> Scores:
    """Errors of all agents' labels by count, as finely as coverages may ask for."""
    scores = _counted(engine, np.linspace(0.0, largest, N_THRESHOLDS))
    if scores.counts[1] > scores.counts[-1] / 2.0:  # one is so far off that the others look alike
        scores = _counted(engine, floats_up_to(largest, N_THRESHOLDS))
    for _ in range(MOST_REFINEMENTS):
        levels = np.linspace(0.0, float(scores.counts[-1]), N_THRESHOLDS)
        thresholds = np.maximum.accumulate(np.interp(levels, scores.counts, scores.thresholds))
        thresholds[-1] = largest
        scores = _counted(engine, thresholds)
        # Equal errors stay together, however often thresholds move closer.
        apart = np.diff(thresholds) > FINEST * thresholds[1:]
        if not (apart & (np.diff(scores.counts) > max(CROWDED * scores.counts[-1], 2.0))).any():
            break
    return scores


def in_units(scores: Scores, unit: float) -> Scores:
    """Scores of standardised rows in the target's units: those of a row with the typical deviation."""
    typical = scores.typical_deviation
    if typical == 0.0:
        return scores
    return Scores(scores.thresholds * typical, scores.counts, typical * unit)


def _counted(engine: Engine, thresholds: Array) -> Scores:
    counted = engine.sum("count_errors", {"thresholds": thresholds})
    counts = counted["counts"].round(COUNT_DIGITS)
    return Scores(thresholds, counts, float(np.sqrt(counted["squares"] / max(counts[-1], 1.0))))


def agreement(engine: Engine, population: Population, bases: Sequence[Base], shares: Array) -> Array:
    """R^2 of every rule base's predictions as predictions of the average, over all rows; shape (m,)."""
    message = mixture_message(population, bases, shares, with_factors=False)
    summed = engine.sum("compare", message | {"sample": scalar(population.sample_of_means)})
    n = max(float(summed["n_samples"]), 1.0)
    covariance = summed["products"] / n - np.outer(summed["total"], summed["total"]) / n**2
    variance = float(shares @ covariance @ shares)
    apart = np.diag(covariance) - 2.0 * covariance @ shares + variance
    return np.ones(len(shares)) if variance <= 0.0 else 1.0 - np.maximum(apart, 0.0) / variance


def predictor_of(base: Base, population: Population) -> Predictor:
    """A rule base as a predictor of its own."""
    target = population.target
    found = (base.found.weights, target.mean, target.deviation, base.shares, population.limits)
    return Predictor(population.ranges, base.basis, *found)


def _posterior(base: Base, population: Population) -> Posterior:
    return Posterior(base.factor, base.found.noise() * population.target.deviation)
