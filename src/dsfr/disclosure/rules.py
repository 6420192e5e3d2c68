"""The rules that a task must keep: each looks at what was asked, or at what would leave, and names what is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.features.effects import EFFECT_ARRAYS, Effects
from dsfr.core.features.takagi_sugeno import Rules, firing_strengths
from dsfr.core.relevance.polynomial import Polynomial
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.disclosure.policy import Policy
from dsfr.storage.bundles import Bundle
from dsfr.training.penalties.icr import AS_MANY_AS_ROWS
from dsfr.training.shard import Shard
from dsfr.training.tasks.messages import scaling_ranges


@dataclass(frozen=True, slots=True)
class Request:
    """What an owner is asked, and what it would answer."""

    policy: Policy
    shard: Shard
    memory: Bundle
    broadcast: Bundle
    pooled_labels: int
    """Labels of all owners together, as they have stated."""
    contribution: Bundle
    """Empty before the task has run."""
    declared: Ranges | None = None
    """Ranges of the features that the fit began with."""
    task: str = ""
    answered: Sequence[Bundle] = ()
    """What was asked before in this fit, as `dsfr.disclosure.history` keeps it."""


MOST_STARTS = 40
"""Questions about start centers that an owner answers in a fit; rule bases need one each."""
DisclosureRule: TypeAlias = Callable[[Request], str | None]
"""What is wrong, or None."""


def fuzzifier(request: Request) -> str | None:
    """Clusters are not hard ones."""
    found = request.broadcast.get("fuzzifier", request.memory.get("fuzzifier"))
    least = request.policy.min_fuzzifier
    if found is not None and float(found) < least:
        return f"a fuzzifier of {float(found)!r}, and min_fuzzifier is {least:g}"
    return None


def centers(request: Request) -> str | None:
    """Clusters and rules are few."""
    most = request.policy.max_centers
    numbers = [array.shape[-2] for name, array in request.broadcast.items() if name.startswith(("centers", "starts"))]
    if any(number > most for number in numbers):
        return f"{max(numbers)} centers, and max_centers is {most}"
    return None


def weights(request: Request) -> str | None:
    """Weights are few against labels."""
    n_features = request.shard.n_features
    numbers = [len(rules.centers) * (n_features + 1) for rules in _rule_bases(request.broadcast)]
    numbers += [effects.n_outputs for effects in effects_of(request.broadcast)]
    numbers += [len(request.broadcast[name]) for name in ("weights", "consensus") if name in request.broadcast]
    return _too_many(request, max(numbers, default=0), "weights")


def terms(request: Request) -> str | None:
    """Terms of a polynomial are few against labels."""
    polynomial = Polynomial.of(request.shard.n_features)
    return _too_many(request, polynomial.n_outputs if polynomial else 0, "terms of a polynomial")


def pairs(request: Request) -> str | None:
    """Pairs of unlabelled rows that a penalty is made of are not few against weights."""
    asked = _pairs_asked(request)
    n_weights = max(
        (len(rules.centers) * (request.shard.n_features + 1) for rules in _rule_bases(request.broadcast)), default=0
    )
    least = int(np.ceil(n_weights / request.policy.max_weights_per_label))
    if asked is None or asked >= least:
        return None
    return f"{asked} pairs of unlabelled rows for {n_weights} weights, and at least {least} are needed"


def _pairs_asked(request: Request) -> int | None:
    """Pairs at most; None if there are none, or no fewer than unlabelled rows."""
    if "n_pairs" not in request.broadcast:
        return None
    asked = int(request.broadcast["n_pairs"])
    if asked != AS_MANY_AS_ROWS:
        return asked
    most = int(request.broadcast["most_pairs"])
    return most if most < request.shard.n_samples - request.shard.n_labeled else None


def cluster_mass(request: Request) -> str | None:
    """No cluster is made of a few rows."""
    return too_light(request.policy.min_mass, request.contribution["mass"], "cluster")


def starts(request: Request) -> str | None:
    """Start centers are not tried often: whether a cluster has few rows is an answer as well."""
    tried = sum("starts" in one for one in request.answered)
    if tried >= MOST_STARTS:
        return f"{tried} questions about start centers, and no more than {MOST_STARTS} are answered in a fit"
    return None


def rule_mass(request: Request) -> str | None:
    """No rule covers a few rows alone."""
    for rules in _rule_bases(request.broadcast):
        problem = too_light(request.policy.min_mass, _strength_sums(request, rules), "rule")
        if problem is not None:
            return problem
    return None


def values(request: Request) -> str | None:
    """No column has a few values alone; all may be missing."""
    counts = np.zeros(request.shard.n_features)
    for X, _ in request.shard.batches():
        counts += np.count_nonzero(~np.isnan(X), axis=0)
    few, least = (counts > 0) & (counts < request.policy.min_split), request.policy.min_split
    if not few.any():
        return None
    column = int(np.flatnonzero(few)[0])
    return (
        f"{int(counts[column])} values in column {column}, the others missing, and min_split is {least}. Drop the "
        "column, or those values"
    )


def not_below_mass(policy: Policy, broadcast: Bundle) -> Bundle:
    """A question in which few rows of a cluster are no fewer than the owner's own rule says."""
    return {**broadcast, "least": np.asarray(max(float(broadcast["least"]), policy.min_mass))}


def _too_many(request: Request, number: int, what: str) -> str | None:
    share, labels = request.policy.max_weights_per_label, request.pooled_labels
    if number <= share * labels * (1.0 + 1e-12):
        return None
    return (
        f"{number} {what} for {labels} labels of all owners, and max_weights_per_label is {share:.3g}: at most "
        f"{int(share * labels)}. Take fewer rules or features, or more labels"
    )


def too_light(least: float, masses: Array, what: str, rule: str = "min_mass") -> str | None:
    """What is wrong with masses of the own rows of which one is too small; the number is cut to a whole one.

    Exact masses of one owner, in refusals to many questions, would tell more than sums do.
    """
    if (masses >= least).all():
        return None
    mass = int(masses.min(initial=least)) if np.isfinite(masses).all() else 0
    return f"a {what} with a mass of {mass} of the own rows, and {rule} is {least:g}. Take fewer rules"


def numbered(broadcast: Bundle, names: tuple[str, ...]) -> Iterator[Bundle]:
    """Arrays of these names, once without a number and once for every number that they have."""
    for suffix in ["", *(name.removeprefix(names[0]) for name in broadcast if name.startswith(names[0] + "_"))]:
        if all(name + suffix in broadcast for name in names):
            yield {name: broadcast[name + suffix] for name in names}


def effects_of(broadcast: Bundle) -> Iterator[Effects]:
    """All effects of a broadcast: one member's, or those of several with numbers."""
    for suffix in ["", *(name.removeprefix("knots") for name in broadcast if name.startswith("knots_"))]:
        named = {name: broadcast[name + suffix] for name in EFFECT_ARRAYS if name + suffix in broadcast}
        if "singles" in named:
            yield Effects.of_arrays(named)


def _rule_bases(broadcast: Bundle) -> Iterator[Rules]:
    """All rule bases of a broadcast: one, or several with numbers."""
    for suffix in ["", *(name.removeprefix("widths") for name in broadcast if name.startswith("widths_"))]:
        named: dict[str, Any] = {
            name: broadcast[name + suffix] for name in ("centers", "widths", "membership") if name + suffix in broadcast
        }
        if "centers" in named and "widths" in named:
            yield Rules.of_arrays(named)


def _strength_sums(request: Request, rules: Rules) -> Array:
    """Sum of the firing strengths of every rule over the own rows; shape (k,)."""
    ranges, total = scaling_ranges(request.memory, request.broadcast), np.zeros(len(rules.centers))
    for X, _ in request.shard.batches():
        for block in row_blocks(len(X)):
            total += firing_strengths(scale_features(X[block], ranges), rules).sum(axis=0)
    return total
