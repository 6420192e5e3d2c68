"""Rules in words: named fuzzy sets and linear consequents in the units of the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from dsfr.core.arrays import Array, IntArray
from dsfr.core.explain.html import RuleRow, rules_html
from dsfr.core.explain.rule_base import RuleBase
from dsfr.core.explain.words import Indicator, label, one_line, positions, readable, two_valued_label
from dsfr.core.features.membership import membership_of

SET_THRESHOLD = 0.1
"""Features are left out of the conditions of a rule, the least important first, as long as the strength computed
without them differs on average over rows by less than this share of its mean."""

TERM_THRESHOLD = 0.01
"""A feature is left out of the line of a rule if a change by one width of the rule's set changes the output by less
than this share of the target's deviation. Its contribution at the center is added to the constant."""

MAX_ROWS = 4096
"""Rows used; longer tables are sampled evenly."""
N_TYPICAL = 3
"""Typical rows shown for each rule."""


@dataclass(frozen=True, slots=True, repr=False)
class Rule:
    """One rule in the data's units: IF x is about ``centers`` ± ``widths`` THEN y = ``intercept + coefficients x``."""

    number: int
    member: int
    """Number of the model it belongs to, counted from 1; the strongest of several is the first."""
    share: float
    """Share of the training rows, within its model; 0 to 1."""
    centers: Array
    widths: Array
    intercept: float
    coefficients: Array
    feature_names: tuple[str, ...]
    target_name: str
    labels: tuple[str, ...]
    """"very low" to "very high" for every feature: where the center lies among all rows."""
    importance: Array
    """Mean change of the strength without a feature, relative to the mean strength; (d,)."""
    matters: tuple[bool, ...]
    """Which features the firing depends on, see `SET_THRESHOLD`."""
    terms: tuple[bool, ...]
    """Which features its line depends on, see `TERM_THRESHOLD`."""
    mean_output: float
    """Mean output of the rule over rows, weighted by its strength."""
    typical_rows: Array
    """The rows with the highest membership, (rows, d); none without data."""
    typical_names: tuple[Any, ...]
    """Names of these rows in the data: their labels in a data frame's index, or else numbers counted from 1."""
    indicators: Mapping[int, Indicator] = field(default_factory=dict)
    """What a feature indicates, of the features of categories."""

    def __repr__(self) -> str:
        return f"<{self.title}; print it to read it>"

    def _repr_html_(self) -> str:
        return rules_html(self.title, [self.row()])

    def row(self) -> RuleRow:
        """The rule as a row of a table."""
        clauses = [" ".join(line.split()).removeprefix("IF ") for line in self.conditions()]
        return RuleRow(self.number, self.share, " ".join(clauses), self.consequent().removeprefix("THEN "))

    def __str__(self) -> str:
        return "\n".join([self.title, *self.conditions(), self.consequent(), *self._typical()])

    @property
    def title(self) -> str:
        """Number, share and mean output."""
        return f"Rule {self.number} ({self.share:.0%} of the rows, {self._target} about {readable(self.mean_output)})"

    def conditions(self) -> list[str]:
        """One line for every feature that matters to the firing."""
        shown = [j for j, matters in enumerate(self.matters) if matters]
        names = [one_line(self.condition_name(j)) for j in shown]
        width = max(map(len, names), default=0)
        lines = [
            f"{'AND' if i else 'IF '}  {name:<{width}} is {self.labels[j]} {self.about(j)}".rstrip()
            for i, (j, name) in enumerate(zip(shown, names, strict=True))
        ]
        return lines or ["ALWAYS"]

    def about(self, j: int) -> str:
        """Center and width of the set of a feature; nothing for levels of a category."""
        if j in self.indicators:
            return ""
        return f"(about {readable(self.centers[j])} ± {readable(self.widths[j])})"

    def condition_name(self, j: int) -> str:
        """Name of a feature in conditions: that of the column, if it indicates a level."""
        return self.indicators[j].column if j in self.indicators else self.feature_names[j]

    def consequent(self) -> str:
        """The line of the rule, without negligible terms."""
        return " ".join([f"THEN {self._target} = {readable(self.constant)}", *self.line_terms()])

    def line_terms(self) -> list[str]:
        """Signed terms of the line, without negligible ones."""
        return [
            f"{'-' if self.coefficients[j] < 0 else '+'} {readable(abs(self.coefficients[j]))}·{self._term_name(j)}"
            for j in range(len(self.feature_names))
            if self.terms[j]
        ]

    def _term_name(self, j: int) -> str:
        name = one_line(self.feature_names[j])
        return f"[{name}]" if j in self.indicators else name

    @property
    def constant(self) -> float:
        """The intercept plus the left-out terms at the center."""
        left_out = ~np.asarray(self.terms)
        return self.intercept + float(self.coefficients[left_out] @ self.centers[left_out])

    @property
    def _target(self) -> str:
        return one_line(self.target_name)

    def _typical(self) -> Iterator[str]:
        for number, row in zip(self.typical_names, self.typical_rows, strict=True):
            values = (self._shown_value(j, float(value)) for j, value in enumerate(row))
            yield f"     like row {one_line(str(number))}: {', '.join(value for value in values if value)}"

    def _shown_value(self, j: int, value: float) -> str:
        """Name and value of a feature; of a category of several levels, nothing for those that it has not."""
        if j not in self.indicators:
            return f"{one_line(self.feature_names[j])} {readable(value)}"
        column, level, levels = self.indicators[j]
        shown = level if value == 1.0 else self.indicators[j].opposite if len(levels) == 2 else ""
        return f"{one_line(column)} {one_line(shown)}" if shown else ""


def explain(
    base: RuleBase,
    feature_names: Sequence[str],
    target_name: str,
    rows: Array,
    *,
    are_data: bool,
    row_names: Sequence[Any] | None = None,
    indicators: Mapping[int, Indicator] | None = None,
) -> tuple[Rule, ...]:
    """The rules in words, named by where their sets lie among ``rows``.

    ``are_data``: the rows are real, and the most typical ones are shown, by their names or else by numbers from 1.
    Without data the rows come from `RuleBase.synthetic_rows`.
    """
    indicated = indicators or {}
    numbers = np.unique(np.linspace(0, len(rows) - 1, MAX_ROWS).round().astype(np.int64))
    X = base.members[0].predictor.within_limits(rows[numbers])
    strengths = base.strengths(X)
    mass = np.maximum(strengths.sum(axis=0), np.finfo(np.float64).tiny)
    means = np.einsum("nk,nk->k", strengths, base.lines(X)) / mass
    labels = [_labels(base, X, j, indicated.get(j), are_data=are_data) for j in range(X.shape[1])]
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
            labels=tuple(of_feature[k] for of_feature in labels),
            importance=importance[k],
            matters=tuple(matters[k].tolist()),
            terms=tuple(terms[k].tolist()),
            # A rule that fires on none of these rows has its output at the center.
            mean_output=float(means[k] if mass[k] > SILENT else base.lines(base.centers[k][None])[0, k]),
            typical_rows=rows[numbers[typical[k]]],
            typical_names=tuple(n + 1 if row_names is None else row_names[n] for n in numbers[typical[k]].tolist()),
            indicators=indicated,
        )
        for k in range(base.n_rules)
    )


def _labels(base: RuleBase, X: Array, j: int, indicator: Indicator | None, *, are_data: bool) -> list[str]:
    """Label of a feature in every rule: of its values, where it has two or most rows have one, or of its place."""
    centers = base.centers[:, j]
    if indicator is not None:
        names = indicator.opposite, indicator.level
        return [two_valued_label(center, names) for center in centers.tolist()]
    values = np.unique(X[:, j]) if are_data else np.empty(0)
    if len(values) == 2:
        low, high = values.tolist()
        return [two_valued_label((c - low) / (high - low), (readable(low), readable(high))) for c in centers.tolist()]
    labels = list(map(label, _places(base, X, j).tolist()))
    if len(values) > 2 and (X[:, j] == values[0]).mean() >= HEAVY:
        near = np.abs(centers - values[0]) <= TIE_WIDTHS * float(base.widths[:, j].min())
        labels = [readable(values[0]) if at else said for at, said in zip(near.tolist(), labels, strict=True)]
    return labels


HEAVY = 0.3
"""Part of the rows with the lowest value of a feature from which sets around it are named by that value."""


def _places(base: RuleBase, X: Array, j: int) -> Array:
    """Share of the rows below the center of each rule; ties within a tolerance, because centers are rounded means."""
    return positions(base.centers[:, j], X[:, j], TIE_WIDTHS * float(base.widths[:, j].min()))


TIE_WIDTHS = 0.1
"""Rows within this distance of a center, in widths of the narrowest set of the feature, count as ties. The distance is
the same for all rules, so that a higher center never has a lower name."""
SILENT = 1e-6
"""A rule whose strengths sum to less over all rows counts as never firing."""


def discrimination(base: RuleBase, X: Array, strengths: Array) -> Array:
    """Mean change of the strength of each rule without a feature, relative to the mean strength; (k, d)."""
    change = np.empty_like(base.centers)
    for here, share, exponents in _exponents(base, X):
        total = exponents.sum(axis=2)
        for j in range(X.shape[1]):
            without = share * softmax(exponents[:, :, j] - total, axis=1)
            change[here, j] = _mean_change(strengths[:, here], without)
    return change


def needed_features(base: RuleBase, X: Array, strengths: Array, importance: Array) -> npt.NDArray[np.bool_]:
    """Which features the conditions of each rule need, see `SET_THRESHOLD`; shape (k, d).

    Left-out features are tested jointly: of correlated features each alone may be redundant, but not all of them.
    """
    needed = np.ones(importance.shape, dtype=bool)
    for here, share, exponents in _exponents(base, X):
        for i, k in enumerate(range(here.start, here.stop)):
            order = np.argsort(importance[k], kind="stable")
            needed[k, order[: _n_left_out(exponents, share, i, strengths[:, k], order)]] = False
    return needed


def _n_left_out(exponents: Array, share: float, rule: int, strengths: Array, order: IntArray) -> int:
    """Number of features, in this order, that can be left out together; by bisection."""
    total = exponents.sum(axis=2)
    low, high = 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        without = share * softmax(exponents[:, :, order[:middle]].sum(axis=2) - total, axis=1)[:, rule]
        similar = _mean_change(strengths, without) < SET_THRESHOLD
        low, high = (middle, high) if similar else (low, middle - 1)
    return low


def _exponents(base: RuleBase, X: Array) -> Iterator[tuple[slice, float, Array]]:
    """For every member: its rules, its share, and minus the logarithms of memberships; (n, its rules, d)."""
    start = 0
    for member in base.members:
        predictor = member.predictor
        here = slice(start, start + len(predictor.shares))
        start = here.stop
        membership = membership_of(predictor.basis.rules.membership)
        with np.errstate(over="ignore"):
            exponents = -membership.log((X[:, None, :] - base.centers[here]) / base.widths[here])
        yield here, member.share, np.minimum(exponents, np.finfo(np.float64).max / (2 * X.shape[1]))


def _mean_change(strengths: Array, others: Array) -> Array:
    """Mean absolute difference over rows, relative to the mean strength."""
    mean = np.maximum(strengths.mean(axis=0), np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        change: Array = np.abs(others - strengths).mean(axis=0) / mean
    return change


def _term_sizes(base: RuleBase) -> Array:
    """Change of the output of a rule over one width of its set, in deviations of the target; (k, d)."""
    scale = max(member.predictor.target_scale for member in base.members)
    return np.abs(base.slopes * base.widths) / scale


def _typical_rows(base: RuleBase, X: Array) -> IntArray:
    """For every rule the rows nearest to its center, in its widths; shape (k, at most `N_TYPICAL`)."""
    most = min(N_TYPICAL, len(X))
    with np.errstate(over="ignore"):
        far = [(((X - m) / s) ** 2).sum(axis=1) for m, s in zip(base.centers, base.widths, strict=True)]
    return np.array([np.argsort(distances, kind="stable")[:most] for distances in far], dtype=np.int64)
