"""Largest and smallest numbers that data and models may have, so that everything computed from them is finite.

Data are bounded where training begins, models where a file is read or written. The bounds fit together: a model that
was trained on data within bounds is within bounds. With features and targets up to 1e100, and scaled rows clipped at
1e100 (`MAX_SCALED`), predictions stay under 1e250, and squares in units of the target under 1e300.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dtrcon

from dsfr.core.arrays import Array
from dsfr.core.density import RowDensity
from dsfr.core.features.effects import Effects
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.prediction.link import Link
from dsfr.core.prediction.mixture import Mixture
from dsfr.core.prediction.posterior import Posterior
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.scores import Scores
from dsfr.core.scaling.affine import MAX_SCALED, MAX_VALUE, Ranges

MAX_UNIT = 10.0 * MAX_VALUE
"""Of ranges, limits and the target's mean and deviation: limits may lie beyond the data."""
MAX_WEIGHT = 1e40
"""Of a weight, for targets of deviation 1. Its product with `MAX_SCALED` can be squared."""
MIN_DIVISOR = 1e-50
"""Narrowest set or wavelet: at `MAX_SCALED`, the square of the distance in widths is finite."""
MAX_ERROR = 1e150
"""Of a leave-one-out error, in the target's units: it can be squared."""
MAX_NOISE = 1e10
"""Of the noise, in deviations of the target."""
MAX_WAVELET = 1e50
"""Of a wavelet node's output."""
MAX_CURVE = 1e25
"""Of a curve of effects: the product of three is less than `MAX_SCALED`."""
MIN_CONDITION, MIN_FACTOR, MAX_FACTOR = 1e-16, 1e-20, 1e50
"""Reciprocal condition and norms of a posterior's Cholesky factor; training refuses conditions under 1e-8."""
MIN_PIVOT = 1e-7
"""Of a Cholesky factor of correlations; training holds these back so far that it is larger."""
MIN_SHARE = 1e-6
"""Part of the training rows that all rules of a predictor have together, at least."""
MAX_LABELS = 2.0**53
"""Counts up to this are whole numbers in double precision."""
SHARE_ERROR = 1e-6
"""Largest distance of the sum of the members' shares from 1, by rounding."""
MIN_LINK_FACTOR, MAX_LINK_FACTOR = 0.1, 10.0
"""Of exponentials of logarithms; training finds 0.5 to 2."""
MAX_LOG = 250.0
"""Of the highest logarithm that is predicted: its exponential is about `MAX_VALUE` squared at most."""
TOO_LARGE = "its numbers are too large or too small to compute with"


def check_predictor(predictor: Predictor) -> None:
    """Refuse numbers that no training gives, and with which predictions or rules would overflow or be NaN.

    Raises
    ------
    ValueError
        Naming what is wrong.
    """
    places, divisors = predictor.basis.locations, predictor.basis.scales
    shares, ranges, limits, domain = predictor.shares, predictor.ranges, predictor.limits, predictor.domain
    if not ((divisors > 0).all() and predictor.target_scale > 0 and (shares >= 0).all() and _in_order(ranges)):
        raise ValueError("its widths, scales, shares or ranges are not positive")
    if len(shares) and not (shares.max() <= 1.0 and MIN_SHARE <= shares.sum() <= 1.0 + MIN_SHARE):
        raise ValueError("its rules' shares do not add up to a part of the rows")
    if limits is not None and not _in_order(limits):
        raise ValueError("its limits are not in order")
    if not _in_order(domain):
        raise ValueError("its domain is not in order")
    units = [
        np.array([predictor.target_mean, predictor.target_scale]),
        ranges.low,
        ranges.high,
        domain.low,
        domain.high,
    ]
    units += [] if limits is None else [limits.low, limits.high]
    fits = all(_at_most(array, MAX_UNIT) for array in units) and _weights_fit(predictor)
    if not (
        fits and _at_most(places, MAX_SCALED) and _at_most(divisors, MAX_SCALED) and (divisors >= MIN_DIVISOR).all()
    ):
        raise ValueError(TOO_LARGE)
    if not predictor.basis.n_rules and _highest_wavelet(divisors) > MAX_WAVELET:
        raise ValueError(TOO_LARGE)
    if isinstance(predictor.basis, Effects) and not _at_most(predictor.basis.curves, MAX_CURVE):
        raise ValueError(TOO_LARGE)


def _weights_fit(predictor: Predictor) -> bool:
    """Whether lines can be computed with: in scaled units, or for `LinguisticRules` in the units of the data."""
    if not isinstance(predictor.basis, LinguisticRules):
        return _at_most(predictor.weights, MAX_WEIGHT)
    lines, limits = predictor.weights.reshape(predictor.basis.n_rules, -1), predictor.limits
    farthest = np.full(predictor.n_features, MAX_SCALED)
    if limits is not None:
        farthest = np.minimum(np.maximum(np.abs(limits.low), np.abs(limits.high)), MAX_SCALED)
    ramps = np.concatenate([predictor.basis.ramp_starts, predictor.basis.ramp_ends])
    with np.errstate(over="ignore"):
        return (
            _at_most(ramps, MAX_UNIT)
            and _at_most(lines[:, 0], MAX_ERROR)
            and _at_most(lines[:, 1:] * farthest, MAX_ERROR)
        )


def check_mixture(mixture: Mixture) -> None:
    """Refuse members that do not belong together, and uncertainty that cannot be computed with.

    Raises
    ------
    ValueError
        Naming what is wrong.
    """
    shares = np.array([member.share for member in mixture.members])
    if (shares < 0).any() or abs(shares.sum() - 1.0) > SHARE_ERROR:
        raise ValueError("its shares are not numbers >= 0 that sum to 1")
    first = mixture.members[0].predictor
    for member in mixture.members:
        check_predictor(member.predictor)
        if not _same_units(member.predictor, first):
            raise ValueError("its members have different targets or limits")
        if member.posterior is not None:
            _check_posterior(member.posterior, first.target_scale)
    if mixture.scores is not None:
        _check_scores(mixture.scores)
        _check_rule_deviations(mixture.scores.rule_deviations, mixture)
    if mixture.density is not None:
        _check_density(mixture.density)
    _check_link(mixture.link)


def _check_link(link: Link) -> None:
    if not (link.low <= link.high and link.floor <= link.ceiling):
        raise ValueError("the limits of its predictions are not in order")
    if not link.is_log:
        if link.factor != 1.0 or link.high < link.floor or link.low > link.ceiling:
            raise ValueError("its predictions are not on the scale of the target")
    elif not (MIN_LINK_FACTOR <= link.factor <= MAX_LINK_FACTOR and abs(link.high) <= MAX_LOG and link.floor >= 0.0):
        raise ValueError(TOO_LARGE)


def _check_posterior(posterior: Posterior, unit: float) -> None:
    if not (np.diag(posterior.factor) > 0).all():
        raise ValueError("its uncertainty is not that of any weights")
    size = np.abs(posterior.factor).max()
    if not (0 <= posterior.noise / MAX_NOISE <= unit and MIN_FACTOR <= size <= MAX_FACTOR):
        raise ValueError(TOO_LARGE)
    condition, _ = dtrcon(posterior.factor, norm="1", uplo="U")
    if condition < MIN_CONDITION:
        raise ValueError(TOO_LARGE)


def _check_scores(scores: Scores) -> None:
    for values, largest in ((scores.thresholds, MAX_ERROR), (scores.counts, MAX_LABELS)):
        if not (len(values) and (np.diff(values) >= 0).all() and values[0] >= 0 and values[-1] <= largest):
            raise ValueError("its counts of errors are not counts")
    if not 0.0 <= scores.typical_deviation <= MAX_ERROR:
        raise ValueError(TOO_LARGE)
    if scores.counts[-1] < 1:
        raise ValueError("its counts of errors are not counts")


def _check_rule_deviations(by_rule: Array | None, mixture: Mixture) -> None:
    if by_rule is None:
        return
    first = mixture.members[0].predictor
    if len(mixture.members) > 1 or not isinstance(first.basis, LinguisticRules):
        raise ValueError("it has deviations of short rules, and is none")
    if by_rule.shape != (first.basis.n_rules,) or not ((by_rule >= 0.0).all() and _at_most(by_rule, MAX_ERROR)):
        raise ValueError("its deviations are not those of its rules")


def _check_density(density: RowDensity) -> None:
    ends = Ranges(density.low, density.high)
    if not (_in_order(ends) and (density.low <= density.mean).all() and (density.mean <= density.high).all()):
        raise ValueError("its distribution of the rows is not in order")
    if not (_at_most(density.low, MAX_UNIT) and _at_most(density.high, MAX_UNIT)):
        raise ValueError(TOO_LARGE)
    sizes = (density.deviation, density.shift)
    if not ((density.deviation >= 0).all() and all(_at_most(values, MAX_UNIT) for values in sizes)):
        raise ValueError(TOO_LARGE)
    if not ((density.spread >= 0.0).all() and (density.spread <= 1.0).all()):
        raise ValueError("its distribution of the rows has parts that are not from 0 to 1")
    if density.correlation is not None and not _is_correlation(density.correlation):
        raise ValueError("its correlations of the rows are not those of any rows")


def _is_correlation(matrix: Array) -> bool:
    if not (_at_most(matrix, 1.0) and (np.diag(matrix) == 1.0).all()):
        return False
    try:
        return bool(np.diag(np.linalg.cholesky(matrix)).min() > MIN_PIVOT)
    except np.linalg.LinAlgError:
        return False


def _highest_wavelet(dilations: Array) -> float:
    """Bound of the output of every node: ``|psi| <= exp(-1/2)``, over the root of the dilation, for every feature."""
    logs = (-0.5 - 0.5 * np.log(dilations)).sum(axis=1)
    return float(np.exp(min(logs.max(), 700.0)))


def _same_units(one: Predictor, other: Predictor) -> bool:
    if (one.target_mean, one.target_scale) != (other.target_mean, other.target_scale):
        return False
    if one.limits is None or other.limits is None:
        return one.limits is other.limits
    return np.array_equal(one.limits.low, other.limits.low) and np.array_equal(one.limits.high, other.limits.high)


def _in_order(ranges: Ranges) -> bool:
    return bool((ranges.low <= ranges.high).all())


def _at_most(values: Array, largest: float) -> bool:
    return bool((np.abs(values) <= largest).all())
