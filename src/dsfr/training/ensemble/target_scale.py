"""Whether a target is learnt as it is or as its logarithm, and how predictions return to its own scale.

Both scales are compared by members of effects alone, which take one sum over labels each: rule bases are then trained
on the better scale. Logarithms need both more evidence, with the Jacobian of the transformation, by more than it varies
by chance, and a clearly smaller squared leave-one-out error on the target's own scale: the likelihood of a long-tailed
target is dominated by its small values, the squared error by its large ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.prediction.link import Link, held_link, log_link, may_be_negative, reach_of
from dsfr.core.prediction.scores import Scores
from dsfr.engines import Engine
from dsfr.training.ensemble.effects import TrainedEffects, agree_effects, with_polynomials
from dsfr.training.ensemble.members import Base
from dsfr.training.ensemble.own_errors import OwnErrors, own_errors
from dsfr.training.ensemble.rule_bases import Weighed, weigh
from dsfr.training.scaling.robust import agree_scaling
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings

LEAST_RATIO = 3.0
"""Of the highest over the lowest label: logarithms of a target that varies less are nearly a line of it."""
CHANCE = 1.2
"""Roots of the number of labels that the log evidence of logarithms must be ahead by: two log evidences differ by
chance in the order of one. Chosen on the design tables of benchmarks/tables."""
CLEARLY_LESS = 0.97
"""Leave-one-out error of logarithms over that of targets as they are, on the target's own scale, below which logarithms
are taken: chosen on the design tables of benchmarks/tables."""
LEAST_LABELS = 10
"""With fewer labels, neither logarithms nor labels far off are tried."""
PREDICTED = 0.5
"""Squared leave-one-out error with labels far off as they are, over that with these moved to the limits, below which
others predict them. A mistake takes part in the mean of all labels, so it seems to be predicted a little."""
EXPLAINED = 0.5
"""Leave-one-out error, in deviations of the target, above which features are not followed farther: rows far off are
worth a second training only where labels are explained well but for these."""

SPOILT = 0.12
"""Squared leave-one-out error that other labels may gain where labels far off are as they are, over what all labels
together lose, is this over the number of labels at most. Where nearly all targets are the same, these are predicted
nearly without error before, and anything is worse. The dearest of 50 houses of a design table spoils 0.0033 of the
gain: the test error grows by half.
"""


@dataclass(frozen=True, slots=True)
class AgreedTarget:
    """The population on the scale of learning, what was trained on it already, and the way back."""

    population: Population
    link: Link
    own_mean: float
    """Of the labels, on the target's own scale."""
    own_deviation: float
    own_ends: tuple[float, float]
    effects: TrainedEffects = field(default_factory=TrainedEffects)


def agree_target(engine: Engine, settings: Settings, sample: float | None = None) -> AgreedTarget:
    """Agree on the scale of the target, and on its mean and deviation there; ``sample`` as in `agree_scaling`.

    Raises
    ------
    ValueError
        If logarithms are asked for, and a label is not positive or extremes are not shared.
    """
    return _with_polynomials(engine, settings, _agree_scale(engine, settings, sample))


def _with_polynomials(engine: Engine, settings: Settings, target: AgreedTarget) -> AgreedTarget:
    """With all members, on the scale that agents are on."""
    return replace(target, effects=with_polynomials(engine, settings, target.population, target.effects))


def _agree_scale(engine: Engine, settings: Settings, sample: float | None) -> AgreedTarget:
    own = agree_scaling(engine, settings, sample=sample)
    plain = _as_it_is(settings, own)
    if settings.target == "log":
        _check_positive(engine, own)
        logs = agree_scaling(engine, settings, log=True, sample=sample)
        effects = agree_effects(engine, settings, logs)
        return replace(plain, population=logs, link=_log_link(own, logs), effects=effects)
    plain = _with_rows_far_off(engine, settings, replace(plain, effects=agree_effects(engine, settings, own)))
    own = plain.population
    if settings.target is None or engine.only_sums or not _may_be_long_tailed(own) or not plain.effects.members:
        return plain
    return _compared(engine, settings, plain)


def _with_rows_far_off(engine: Engine, settings: Settings, limited: AgreedTarget) -> AgreedTarget:
    """With labels beyond the limits of the target as they are, and then with features followed farther.

    Each only if others predict the labels far off: they are no mistakes then.
    """
    own = limited.population
    if own.n_labeled < LEAST_LABELS or not limited.effects.members:
        return limited
    if own.limits_labels:
        limited = _if_predicted(engine, settings, limited, is_far=False)
    return _if_predicted(engine, settings, limited, is_far=True) if own.limits_features else limited


def _if_predicted(engine: Engine, settings: Settings, limited: AgreedTarget, *, is_far: bool) -> AgreedTarget:
    """With labels as they are, and with ``is_far`` features followed farther, if that clearly lowers the error.

    One label far off outweighs all others, so these must be predicted hardly worse than before. A mistake spoils their
    predictions; a group of rows that is far off in its features too does where its labels or its features are moved.
    Members count by their shares: those that cannot predict the target at all would hide that another one does.
    """
    limited, own = _with_polynomials(engine, settings, limited), limited.population
    unit, usual = float(np.abs(own.target_ends).max()), own.target_limits
    before = _stacked_errors(engine, settings, limited, unit, usual)
    if is_far and before.error > before.n * (EXPLAINED * own.target.deviation / unit) ** 2:
        return limited
    population = agree_scaling(engine, settings, sample=own.sample, limit_target=False, is_far=is_far)
    whole = replace(_as_it_is(settings, population), effects=agree_effects(engine, settings, population))
    if whole.effects.members:
        whole = _with_polynomials(engine, settings, whole)
        found = _stacked_errors(engine, settings, whole, unit, usual)
        spoilt, gained = found.usual - before.usual, before.error - found.error
        if found.error < PREDICTED * before.error and spoilt * before.n <= SPOILT * gained:
            return whole
    return replace(limited, population=_agreed_again(engine, settings, own))


def _as_it_is(settings: Settings, own: Population) -> AgreedTarget:
    """A target on its own scale, before anything is trained."""
    return AgreedTarget(own, hold(settings, own), own.target_mean, own.target_scale, own.target_ends)


def _agreed_again(engine: Engine, settings: Settings, own: Population) -> Population:
    """The same population; agents are on its scale afterwards."""
    return agree_scaling(engine, settings, sample=own.sample, limit_target=own.limits_labels, is_far=own.is_far)


def _check_positive(engine: Engine, own: Population) -> None:
    if engine.only_sums:
        raise ValueError(
            'target="log" asks agents for extremes, and on this engine sums alone leave them: leave it out'
        )
    if own.target_ends[0] <= 0.0:
        raise ValueError(
            f'target="log" needs targets > 0, and the lowest label is {own.target_ends[0]:g}: take target="auto", or '
            "train on targets that are shifted"
        )


def _may_be_long_tailed(own: Population) -> bool:
    low, high = own.target_ends
    return low > 0.0 and high >= LEAST_RATIO * low and own.n_labeled >= LEAST_LABELS


def _compared(engine: Engine, settings: Settings, plain: AgreedTarget) -> AgreedTarget:
    """The better scale; agents are left on it."""
    own, members = plain.population, plain.effects.members
    unit = _unit(plain.link)
    error = _effect_errors(engine, own, members, plain.link, unit)
    logs = agree_scaling(engine, settings, log=True, sample=own.sample)
    link = _log_link(own, logs)
    effects = agree_effects(engine, settings, logs)
    if effects.members and _log_evidence(effects.members, logs, is_log=True) > (
        _log_evidence(members, own, is_log=False) + CHANCE * np.sqrt(own.n_labeled)
    ):
        found = _effect_errors(engine, logs, effects.members, link, unit)
        if found.error_with(found.factor) < CLEARLY_LESS**2 * error.error:
            return replace(plain, population=logs, link=link, effects=effects)
    return replace(plain, population=_agreed_again(engine, settings, own))


def _log_evidence(members: Sequence[Base], population: Population, *, is_log: bool) -> float:
    """Largest log evidence of the labels on the target's own scale, up to a constant: the Jacobian is included."""
    n, target = population.n_labeled, population.target
    jacobian = n * np.log(target.deviation) + (n * target.mean if is_log else 0.0)
    return max(base.score for base in members) - float(jacobian)


def _effect_errors(
    engine: Engine,
    population: Population,
    members: Sequence[Base],
    link: Link,
    unit: float,
    usual: Array | None = None,
) -> OwnErrors:
    """Of the plain average of members, before their shares are known."""
    equal = np.full(len(members), 1.0 / len(members))
    return own_errors(engine, population, members, equal, link, unit, usual)


def _stacked_errors(
    engine: Engine, settings: Settings, target: AgreedTarget, unit: float, usual: Array | None
) -> OwnErrors:
    """Of the average of effects by shares that their leave-one-out errors have on the scale of this target."""
    population, members = target.population, target.effects.all_members
    shares = weigh(engine, settings, population, members).shares
    return own_errors(engine, population, members, shares, target.link, unit, usual)


def _unit(link: Link) -> float:
    """Of positive targets: the highest that is predicted."""
    return float(np.exp(link.high)) if link.is_log else link.high


def final_link(
    engine: Engine, target: AgreedTarget, bases: Sequence[Base], weighed: Weighed, scores: Scores | None
) -> Link:
    """The link of the finished average: limits by its errors where these are known, and the factor of logarithms."""
    population, link = target.population, target.link
    if link.is_identity:
        return link
    deviation = population.target.deviation
    error = deviation if scores is None else weighed.typical_error(scores, deviation)
    reach = reach_of(error, deviation, is_log=link.is_log)
    if not link.is_log:
        own = (target.own_mean, target.own_deviation, population.n_labeled, reach)
        is_signed = may_be_negative(target.own_ends, *own)
        return held_link(*target.own_ends, target.own_deviation, reach, is_signed=is_signed)
    link = log_link(*target.own_ends, target.own_deviation, deviation, reach)
    return replace(link, factor=own_errors(engine, population, bases, weighed.shares, link, _unit(link)).factor)


def hold(settings: Settings, own: Population) -> Link:
    """Targets as they are, held near the labels unless ``target=None`` asks for lines without an end."""
    low, high = own.target_ends
    return Link() if settings.target is None or low >= high else held_link(low, high, own.target.deviation)


def _log_link(own: Population, logs: Population) -> Link:
    return log_link(*own.target_ends, own.target.deviation, logs.target.deviation)
