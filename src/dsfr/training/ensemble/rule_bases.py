"""Several rule bases, one after the other: each learns from those before which features matter.

A rule base is trained as ever, on features stretched by their relevance; then agents add up how steep its model is
along each feature, and the next one is clustered accordingly. Stretching moves centers and widths only: lines keep the
features' own scale, and a rule base is an ordinary one in the end. Steps come in pairs of different widths and kinds of
pairs; every two, the number of rules doubles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.prediction.scores import Scores
from dsfr.core.prediction.stacking import LeftOut, tempered_shares
from dsfr.engines import Engine, RefusedError
from dsfr.storage.bundles import Bundle
from dsfr.training.blas_threads import single_threaded_blas
from dsfr.training.clustering.clusters import Variation, agree_rules, cluster_scale
from dsfr.training.ensemble.effect_member import mean_member
from dsfr.training.ensemble.members import Base, mixture_message
from dsfr.training.ensemble.relevance import agree_polynomial, mean_square_slopes, stretch
from dsfr.training.rounds import Observer
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings
from dsfr.training.tasks.messages import pack, scalar, unpack
from dsfr.training.weights.weights import agree_weights

WIDER = 2.25
"""Factor on the widths in every second step."""
SURE_STEPS = 6
"""Steps that are always taken where their number is left open: three numbers of rules."""
MOST_STEPS = 12
MOST_WEIGHTS = 500
"""More rules are not tried where their number is left open and they would need more weights."""
NEGLIGIBLE_SHARE = 0.01
"""Share of the mean of the labels up to which it is no member."""
LEAST_OF_PLANE = 0.1
"""Share below which a plane has none: what levels off would have a slope everywhere, and the error is the same."""
LEAST_USUAL = 1.0 / 3.0
"""Of the root mean squared error, what the typical one is at least, however small nine errors in ten are: so a model
that does no better than the mean of a target that is nearly always 0 is not followed beyond the labels."""
RELEVANCE_STEPS = 3
"""Rule bases of the same kind until the relevances of a single model have settled."""


def agree_bases(
    engine: Engine, settings: Settings, population: Population, effects: Sequence[Base], observe: Observer
) -> tuple[list[Base], Weighed]:
    """Members with a share in the average of their predictions; those of effects are trained already."""
    curvature = agree_polynomial(engine, settings, population)
    trained = _agree_each(engine, settings, population, curvature, observe)
    if settings.n_models == 1 and trained:
        trained = [trained[-1] if settings.tune is None else max(trained, key=lambda base: base.score)]
    members = [*effects, *trained]
    if not members:
        raise ValueError(_nothing_fits(settings, population))
    weighed = weigh(engine, settings, population, members)
    members = [member for member, share in zip(members, weighed.shares, strict=True) if share > 0.0]
    weighed = replace(weighed, shares=weighed.shares[weighed.shares > 0.0])
    if weighed.of_mean <= NEGLIGIBLE_SHARE:
        return members, weighed
    return [*members, mean_member(effects[0])], weighed.with_mean()


def _agree_each(
    engine: Engine, settings: Settings, population: Population, curvature: Array | None, observe: Observer
) -> list[Base]:
    """Rule bases one after the other. Agents may refuse clusters with few of their rows: then fewer rules are tried."""
    trained: list[Base] = []
    for step in _steps(settings, population, trained):
        variation = Variation(len(trained), _stretch(settings, trained, curvature))
        try:
            trained.append(_agree_base(engine, step, population, variation, observe))
        except RefusedError:
            fewer = step.n_rules // 2
            if trained:
                return trained
            if settings.n_models != "auto" or fewer == 0:
                raise
            return _agree_each(engine, replace(settings, n_rules=fewer), population, curvature, observe)
        if trained[-1].tuned is None and settings.tune is not None:  # the labels do not vary: nothing can be learnt
            return trained[-1:]
    return trained


def _nothing_fits(settings: Settings, population: Population) -> str:
    d, n = len(population.ranges.low), int(population.stated_labels)
    if settings.max_weights_per_label is None:
        return f"n_models=0 trains effects alone, and the {n} labels do not vary, or are too few: label other rows"
    return (
        f"max_weights_per_label={settings.max_weights_per_label:g} allows {settings.most_weights(n)} weights for {n} "
        f"labels, and a line along {d} features has {d + 1}: use fewer columns, label more rows, or raise it"
    )


def _agree_base(
    engine: Engine, settings: Settings, population: Population, variation: Variation, observe: Observer
) -> Base:
    def noted(info: RoundInfo) -> None:
        observe(replace(info, base=variation.number))

    varied = varied_message(population, variation)
    with single_threaded_blas():
        rules, shares, converged = agree_rules(engine, settings, population, noted, variation)
        found = agree_weights(engine, settings, rules, population, noted, varied)
    sample = {"sample": scalar(population.sample_of_means)}
    mean_squares = mean_square_slopes(
        engine, {**rules.arrays(), **varied, "weights": found.weights, **sample}, settings
    )
    stretched = np.ones(len(population.ranges.low)) if variation.stretch is None else variation.stretch
    return Base(settings, rules, shares, converged, found, cluster_scale(settings, stretched), mean_squares)


def varied_message(population: Population, variation: Variation) -> Bundle:
    """What agents must know of a rule base beside its rules: the ranges of its lines, its number and its stretch."""
    stretch = {} if variation.stretch is None else {"stretch": variation.stretch}
    return {**pack(population.ranges), **stretch, "variation": np.asarray(variation.number, dtype=np.int64)}


def _steps(settings: Settings, population: Population, trained: list[Base]) -> Iterator[Settings]:
    """Settings of one rule base after the other; what has been trained decides how long it goes on."""
    n_features = len(population.ranges.low)
    most_weights = settings.most_weights(population.stated_labels)
    most_rules = settings.most_rules if most_weights is None else most_weights // (n_features + 1)
    if most_rules < settings.n_rules:
        if most_rules == 0:
            return
        settings = replace(settings, n_rules=most_rules)
    if settings.n_models == 1:
        yield from [settings] * (1 if settings.relevance is None else RELEVANCE_STEPS)
        return
    most = MOST_STEPS if settings.n_models == "auto" else int(settings.n_models)
    rules = settings.rules
    for step in range(most):
        rung, second = divmod(step, 2)
        n_rules = settings.n_rules * 2**rung  # as `Settings.most_rules` has it
        if most_weights is not None and n_rules > most_rules:
            return
        if settings.n_models == "auto" and not second and rung:
            too_many = n_rules * (n_features + 1) > MOST_WEIGHTS
            if too_many or (step >= SURE_STEPS and not _still_better(trained)):
                return
        yield replace(
            settings,
            n_rules=n_rules,
            rules=replace(rules, width_scale=WIDER * rules.width_scale) if second else rules,
            unlabeled=settings.unlabeled and settings.unlabeled.alternative() if second else settings.unlabeled,
        )


def _still_better(trained: list[Base]) -> bool:
    """Whether the last number of rules was better than all before."""
    newest, before = (max(base.score for base in bases) for bases in (trained[-2:], trained[:-2]))
    return newest > before


def _stretch(settings: Settings, trained: list[Base], curvature: Array | None) -> Array | None:
    """Relevances by curvature and by the models so far, weighed as in their average; without tuning, by the last.

    By bends alone in every first step of two, where these are known: which is better depends on the table.
    """
    if settings.relevance is None:
        return None
    if not trained or (curvature is not None and len(trained) % 2 == 0):
        return curvature
    total = trained[-1].found.statistics
    scores = np.array([base.score for base in trained])
    shares = tempered_shares(scores, total.n_labeled if total is not None else 1.0)
    if settings.tune is None:
        shares = np.append(np.zeros(len(trained) - 1), 1.0)
    return stretch(curvature, [base.mean_square_slopes for base in trained], shares)


@dataclass(frozen=True, slots=True)
class Weighed:
    """Shares of members in their average."""

    shares: Array
    optimism: float = 1.0
    """Factor by which the leave-one-out errors of the average are too small."""
    error: tuple[float, float] | None = None
    """Mean squared leave-one-out error, in variances of the target, and the number of labels, where both follow from
    sums."""
    left_out: float | None = None
    """Root mean squared leave-one-out error, in deviations of the target, where it is known."""
    of_mean: float = 0.0
    """Share that the mean of the labels is to have, as a further member."""

    def with_mean(self) -> Weighed:
        """Shares with that of the mean behind them."""
        return replace(self, shares=np.append((1.0 - self.of_mean) * self.shares, self.of_mean), of_mean=0.0)

    def typical_error(self, scores: Scores, deviation: float) -> float:
        """The smallest of three estimates of the error of the average, in units of the target's ``deviation``.

        Scores are for rows of the mean variance. A few outlying labels, of which a model without their own label knows
        little, make that large, however small all errors are. A few large errors do not tell how far the model is worth
        following either, but count for something: see `LEAST_USUAL`.
        """
        error = scores.deviation
        if self.left_out is not None:
            error = min(error, scores.with_caution(self.left_out * deviation, deviation))
        return min(error, max(scores.usual_deviation, LEAST_USUAL * error))


def weigh(engine: Engine, settings: Settings, population: Population, trained: Sequence[Base]) -> Weighed:
    """Rule bases by evidence, and their average stacked with effects on leave-one-out predictions; or all stacked.

    With effects, it says what share the mean of the labels is to have.
    """
    if len(trained) == 1:
        return Weighed(np.ones(1))
    ruled = np.array([base.has_rules for base in trained])
    by_evidence = np.zeros(len(trained))
    total = trained[-1].found.statistics
    if ruled.any():
        scores = np.array([base.score for base in trained if base.has_rules])
        by_evidence[ruled] = tempered_shares(scores, total.n_labeled if total is not None else 1.0)
    if total is None or (settings.tune != "loo" and ruled.all()):
        return Weighed(by_evidence)
    groups = np.eye(len(trained))
    if settings.tune != "loo" and ruled.any():
        groups = np.column_stack([groups[:, ~ruled], by_evidence])
    measured = _left_out(engine, population, trained)
    larger = measured.inflated(np.array([base.optimism for base in trained]))
    shares = _stacked(larger, groups, np.array([base.is_plane for base in trained]))
    trust = 1.0 if ruled.all() else larger.trust(shares)
    error = larger.mean_square(trust * shares)
    too_small = error / max(measured.mean_square(trust * shares), np.finfo(np.float64).tiny)
    of_sums = (error, larger.n) if engine.only_sums else None
    return Weighed(shares, float(np.sqrt(max(too_small, 1.0))), of_sums, float(np.sqrt(error)), 1.0 - trust)


def _stacked(larger: LeftOut, groups: Array, is_plane: npt.NDArray[np.bool_]) -> Array:
    """Shares of members by those of groups of them, whose shares of the members are columns."""
    of_groups = larger.grouped(groups).shares()
    kept = (of_groups >= LEAST_OF_PLANE) | (groups.T @ is_plane == 0.0)
    if not kept.all():
        groups = groups[:, kept]
        of_groups = larger.grouped(groups).shares()
    shares: Array = groups @ of_groups
    return shares


def _left_out(engine: Engine, population: Population, trained: Sequence[Base]) -> LeftOut:
    """Products of leave-one-out predictions; where sums alone leave the agents, by generalised cross-validation."""
    equal = np.full(len(trained), 1.0 / len(trained))
    if not engine.only_sums:
        return unpack(LeftOut, engine.sum("stack", mixture_message(population, trained, equal)))
    message = mixture_message(population, trained, equal, with_factors=False)
    seen = unpack(LeftOut, engine.sum("label_products", message))
    return seen.inflated(np.array([base.found.cross_validation_factor() for base in trained]))
