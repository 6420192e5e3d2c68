"""Rules as people read them: sets with a name, consequents in the data's own units, and a sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from dsfr.core.arrays import Array, IntArray
from dsfr.core.explain.rule_base import RuleBase
from dsfr.core.explain.words import label, one_line, positions, readable
from dsfr.core.features.membership import membership_of

SET_THRESHOLD = 0.1
"""Features are left out of a rule's conditions, the least important first, as long as a model that could see none of
them would fire the rule almost alike: the strength changes by less than this part of its mean, on average over rows."""

TERM_THRESHOLD = 0.01
"""A feature is left out of a rule's line if it moves the output by less than this part of the target's deviation, for a
move of one width of the rule's set. What it adds at the center goes into the constant."""

MOST_ROWS = 4096
"""Rows looked at, evenly spaced over longer tables."""
N_TYPICAL = 3
"""Rows shown for each rule, where there are data."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule in the data's units: IF x is about ``centers`` ± ``widths`` THEN y = ``intercept + coefficients x``."""

    number: int
    member: int
    """Number of the model it belongs to, counted from 1; the strongest of several is the first."""
    share: float
    """Part of the training rows that belong to it, within its model; 0 to 1."""
    centers: Array
    widths: Array
    intercept: float
    coefficients: Array
    feature_names: tuple[str, ...]
    target_name: str
    labels: tuple[str, ...]
    """"very low" to "very high" for every feature: where the center lies among all rows."""
    importance: Array
    """How much the rule's strength would change if the model could not see a feature, in parts of its mean; (d,)."""
    matters: tuple[bool, ...]
    """Which features the rule's firing depends on; without all others it fires nearly alike, see `SET_THRESHOLD`."""
    terms: tuple[bool, ...]
    """Which features its line depends on, see `TERM_THRESHOLD`."""
    mean_output: float
    """What the rule says on average, over rows weighted by its strength."""
    typical_rows: Array
    """Values of the rows that fit its sets best, (rows, d); none if there were no data."""
    typical_numbers: IntArray
    """Numbers of these rows in the data, counted from 1."""

    def __str__(self) -> str:
        return "\n".join([self.title, *self.conditions(), self.consequent(), *self._typical()])

    @property
    def title(self) -> str:
        """Number, share and mean output."""
        return f"Rule {self.number} ({self.share:.0%} of the rows, {self._target} about {readable(self.mean_output)})"

    def conditions(self) -> list[str]:
        """One line for every feature that matters to the firing."""
        told = [j for j, matters in enumerate(self.matters) if matters]
        names = [one_line(self.feature_names[j]) for j in told]
        width = max(map(len, names), default=0)
        lines = [
            f"{'AND' if i else 'IF '}  {name:<{width}} is {self.labels[j]} "
            f"(about {readable(self.centers[j])} ± {readable(self.widths[j])})"
            for i, (j, name) in enumerate(zip(told, names, strict=True))
        ]
        return lines or ["ALWAYS"]

    def consequent(self) -> str:
        """The rule's line, without terms that hardly count."""
        return " ".join([f"THEN {self._target} = {readable(self.constant)}", *self.line_terms()])

    def line_terms(self) -> list[str]:
        """Signed terms of the line that count."""
        return [
            f"{'-' if self.coefficients[j] < 0 else '+'} {readable(abs(self.coefficients[j]))}·{one_line(name)}"
            for j, name in enumerate(self.feature_names)
            if self.terms[j]
        ]

    @property
    def constant(self) -> float:
        """The intercept, with what left-out terms add at the center."""
        left_out = ~np.asarray(self.terms)
        return self.intercept + float(self.coefficients[left_out] @ self.centers[left_out])

    @property
    def _target(self) -> str:
        return one_line(self.target_name)

    def _typical(self) -> Iterator[str]:
        for number, row in zip(self.typical_numbers.tolist(), self.typical_rows, strict=True):
            values = ", ".join(
                f"{one_line(name)} {readable(value)}" for name, value in zip(self.feature_names, row, strict=True)
            )
            yield f"     like row {number}: {values}"


def explain(
    base: RuleBase, feature_names: Sequence[str], target_name: str, rows: Array, *, are_data: bool
) -> tuple[Rule, ...]:
    """The rules in words, named by where their sets lie among ``rows``.

    ``are_data`` says that these are rows somebody has, of which the most typical ones are worth showing; without data
    they come from `RuleBase.stand_in_rows`.
    """
    numbers = np.unique(np.linspace(0, len(rows) - 1, MOST_ROWS).round().astype(np.int64))
    X = base.members[0][1].within_limits(rows[numbers])
    strengths = base.strengths(X)
    mass = np.maximum(strengths.sum(axis=0), np.finfo(np.float64).tiny)
    means = np.einsum("nk,nk->k", strengths, base.lines(X)) / mass
    places = np.column_stack([_places(base, X, j) for j in range(X.shape[1])])
    importance, terms = discrimination(base, X, strengths), _term_sizes(base) >= TERM_THRESHOLD
    matters = needed_features(base, X, strengths, importance)
    typical = _typical_rows(base, X) if are_data else np.empty((base.n_rules, 0), dtype=np.int64)
    return tuple(
        Rule(
            number=k + 1,
            member=int(base.owners[k]) + 1,
            share=float(base.row_shares[k]),
            centers=base.centers[k],
            widths=base.widths[k],
            intercept=float(base.intercepts[k]),
            coefficients=base.slopes[k],
            feature_names=tuple(feature_names),
            target_name=target_name,
            labels=tuple(label(place) for place in places[k].tolist()),
            importance=importance[k],
            matters=tuple(matters[k].tolist()),
            terms=tuple(terms[k].tolist()),
            # A rule that fires nowhere on these rows says what it says at its center.
            mean_output=float(means[k] if mass[k] > SILENT else base.lines(base.centers[k][None])[0, k]),
            typical_rows=rows[numbers[typical[k]]],
            typical_numbers=numbers[typical[k]] + 1,
        )
        for k in range(base.n_rules)
    )


def _places(base: RuleBase, X: Array, j: int) -> Array:
    """Part of the rows under each rule's center; the center of a cluster of equal values is only nearly one of them."""
    return positions(base.centers[:, j], X[:, j], TIED * float(base.widths[:, j].min()))


TIED = 0.1
"""Rows this near to a center, in widths of the feature's narrowest set, count as level with it. The same distance for
all rules, so that a higher center never has a lower name."""
SILENT = 1e-6
"""Total strength over all rows under which a rule counts as never firing."""


def discrimination(base: RuleBase, X: Array, strengths: Array) -> Array:
    """Mean change of each rule's strength if the model could not see a feature, in parts of the strength; (k, d)."""
    change = np.empty_like(base.centers)
    for here, share, exponents in _exponents(base, X):
        total = exponents.sum(axis=2)
        for j in range(X.shape[1]):
            blind = share * softmax(exponents[:, :, j] - total, axis=1)
            change[here, j] = _mean_change(strengths[:, here], blind)
    return change


def needed_features(base: RuleBase, X: Array, strengths: Array, importance: Array) -> npt.NDArray[np.bool_]:
    """Which features each rule cannot do without, see `SET_THRESHOLD`; shape (k, d).

    One by one many a feature can be missed, since others hold the rule in place; so those left out are judged together.
    """
    needed = np.ones(importance.shape, dtype=bool)
    for here, share, exponents in _exponents(base, X):
        for i, k in enumerate(range(here.start, here.stop)):
            order = np.argsort(importance[k], kind="stable")
            needed[k, order[: _n_left_out(exponents, share, i, strengths[:, k], order)]] = False
    return needed


def _n_left_out(exponents: Array, share: float, rule: int, strengths: Array, order: IntArray) -> int:
    """How many features, in this order, a rule can do without all at once; found by halving."""
    total = exponents.sum(axis=2)
    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        blind = share * softmax(exponents[:, :, order[:middle]].sum(axis=2) - total, axis=1)[:, rule]
        alike = _mean_change(strengths, blind) < SET_THRESHOLD
        low, high = (middle, high) if alike else (low, middle - 1)
    return low


def _exponents(base: RuleBase, X: Array) -> Iterator[tuple[slice, float, Array]]:
    """For every member: its rules, its share, and minus the logarithms of memberships; (n, its rules, d)."""
    start = 0
    for share, predictor in base.members:
        here = slice(start, start + len(predictor.shares))
        start = here.stop
        membership = membership_of(predictor.basis.rules.membership)
        with np.errstate(over="ignore"):
            exponents = -membership.log((X[:, None, :] - base.centers[here]) / base.widths[here])
        yield here, share, np.minimum(exponents, np.finfo(np.float64).max / (2 * X.shape[1]))


def _mean_change(strengths: Array, others: Array) -> Array:
    """Mean difference over rows, in parts of the mean strength."""
    mean = np.maximum(strengths.mean(axis=0), np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        change: Array = np.abs(others - strengths).mean(axis=0) / mean
    return change


def _term_sizes(base: RuleBase) -> Array:
    """How far a feature moves a rule's output over one width of its set, in deviations of the target; (k, d)."""
    scale = max(predictor.target_scale for _, predictor in base.members)
    return np.abs(base.slopes * base.widths) / scale


def _typical_rows(base: RuleBase, X: Array) -> IntArray:
    """For every rule the rows nearest to its center, in its widths; shape (k, at most `N_TYPICAL`)."""
    most = min(N_TYPICAL, len(X))
    with np.errstate(over="ignore"):
        far = [(((X - m) / s) ** 2).sum(axis=1) for m, s in zip(base.centers, base.widths, strict=True)]
    return np.array([np.argsort(distances, kind="stable")[:most] for distances in far], dtype=np.int64)
