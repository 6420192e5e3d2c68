"""Rules over linguistic terms as text that is the model: every number is printed in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.categories import condition_text, indicator_term
from dsfr.core.explain.html import RuleRow, rules_html, shortened
from dsfr.core.explain.words import Indicator, quoted, quoted_term, readable
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.prediction.link import Link
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.shared_slopes import n_terms, shared_slopes

TERMS = {
    1: ("any",),
    2: ("low", "high"),
    3: ("low", "medium", "high"),
    4: ("very low", "low", "high", "very high"),
    5: ("very low", "low", "medium", "high", "very high"),
}
"""Names of the terms of a feature by their number; of more terms: level 1, level 2 and so on."""
SHARED = "shared part"
SHARED_TITLE = f"{SHARED.capitalize()}, the same in every rule"
"""How terms that all rules have are named, and the title above them."""


def in_full(value: float) -> str:
    """A number with all of its digits.

    >>> [in_full(value) for value in (14.0, 0.1, -1e-300, -0.0)]
    ['14', '0.1', '-1e-300', '0']
    """
    return f"{value + 0.0:.0f}" if value == np.floor(value) and abs(value) < 1e15 else repr(value)


def term_names(rules: LinguisticRules, words: Mapping[int, Sequence[str]], binary: Sequence[int]) -> list[list[str]]:
    """Names of the terms of every feature: given ones, numbers of two-valued features, or the usual ones."""
    names = []
    for j, n_words in enumerate(rules.n_terms.tolist()):
        given = list(words.get(j, ()))
        if len(given) == n_words:
            names.append(given)
        elif j in binary and n_words == 2:
            names.append([in_full(value) for value in rules.ramps_of(j)[0]])
        else:
            usual = TERMS.get(n_words)
            names.append(list(usual) if usual else [f"level {i + 1}" for i in range(n_words)])
    return names


@dataclass(frozen=True, slots=True, repr=False)
class Card:
    """Rules over shared terms, with the names of columns and terms; printing it shows the whole model."""

    predictor: Predictor
    feature_names: tuple[str, ...]
    target_name: str
    terms: tuple[tuple[str, ...], ...]
    """Names of the terms of every feature."""
    outputs: tuple[float, ...]
    """Mean output of every rule over its rows."""
    notes: tuple[str, ...] = ()
    """Sentences about the model: its price, and whether there is signal."""
    link: Link = field(default_factory=Link)
    """Limits of the result."""
    indicators: Mapping[int, Indicator] = field(default_factory=dict)
    """What a feature indicates, of the features of categories."""
    deviations: tuple[float, ...] | None = None
    """Standard deviation of an observation by rule, at the mean of the rows; None if it is not known."""

    @property
    def rules(self) -> LinguisticRules:
        """The conditions of the rules."""
        assert isinstance(self.predictor.basis, LinguisticRules)
        return self.predictor.basis

    @property
    def lines(self) -> Array:
        """Constant and slopes of every rule, in the units of the data; shape (k, d + 1)."""
        return self.predictor.weights.reshape(self.rules.n_rules, -1)

    def __len__(self) -> int:
        return self.rules.n_rules

    def __repr__(self) -> str:
        return f"<Card: {self.summary()}; print it to read the model>"

    def _repr_html_(self) -> str:
        target = quoted(self.target_name)
        conditions = [self.condition(k).removeprefix("IF ") for k in range(len(self))]
        rows = [
            RuleRow(k + 1, float(self.predictor.shares[k]), condition, f"{target} = {self.short_line(k)}")
            for k, condition in enumerate(conditions)
        ]
        shared = [f"{SHARED_TITLE}: {text}" for text in self.shared_part()]
        return rules_html(self.summary(), rows, [*self.notes, *shared, *self.meanings()])

    def summary(self) -> str:
        """Number of rules, target and number of features."""
        rules = "one rule" if len(self) == 1 else f"{len(self)} rules"
        return f"{shortened(self.target_name, 60)} by {rules} from {len(self.feature_names)} features"

    def __str__(self) -> str:
        parts = [self.introduction(), "\n".join(self.notes), self._section("Categories", self.categories())]
        parts.append(self._section("Words", self.meanings()))
        parts += [self._section("Limits", self.limits()), self._section(SHARED_TITLE, self.shared_part())]
        parts += [self.rule_text(k) for k in range(len(self))]
        parts.append(self._section("Errors", self.errors()))
        return "\n\n".join(part for part in parts if part)

    def introduction(self) -> str:
        """How a prediction is made."""
        target = quoted(self.target_name)
        if len(self) == 1:
            return f"{target} is predicted by one rule without conditions."
        return (
            f"{target} is predicted by {len(self)} rules: the sum of their lines, each times the rule's strength.\n"
            "The strength of a rule is the product of the degrees to which its conditions hold. Strengths sum to 1."
        )

    def categories(self) -> list[str]:
        """One sentence for every category that a rule has a condition or a term on: its levels."""
        used = {j for j in self.indicators if self.rules.ramps_of(j) or self.lines[:, j + 1].any()}
        columns = {self.indicators[j].column: self.indicators[j].levels for j in sorted(used)}
        return [f"{quoted(name)} is one of {', '.join(map(quoted_term, levels))}" for name, levels in columns.items()]

    def meanings(self) -> list[str]:
        """One sentence for every term of every feature that a rule has a condition on."""
        found = []
        for j, names in enumerate(self.terms):
            ramps = [] if j in self.indicators else self.rules.ramps_of(j)
            for i, name in enumerate(names if ramps else ()):
                below, above = ramps[i - 1] if i else None, ramps[i] if i < len(ramps) else None
                found.append(f"{quoted(self.feature_names[j])} is {quoted_term(name)}: {_meaning(below, above)}")
        return [*found, "In between, the degree changes linearly."] if found else []

    def limits(self) -> list[str]:
        """Where features of lines, and the result, are cut off."""
        low, high = in_full(self.link.low), in_full(self.link.high)
        result = f"A result below {low} counts as {low}, above {high} as {high}"
        return [*self._feature_limits(), *([result] if self._is_cut_off() else [])]

    def _is_cut_off(self) -> bool:
        """Whether a result can be beyond its limits: averages of constants within them cannot."""
        constants = self.lines[:, 0]
        within = self.link.low <= constants.min() and constants.max() <= self.link.high
        return not self.link.is_identity and (bool(self.lines[:, 1:].any()) or not within)

    def errors(self) -> list[str]:
        """How far observations lie from predictions, by rule; nothing if that is not known, or not at all."""
        if self.deviations is None or not np.any(self.deviations):
            return []
        named = [f"{in_full(value)} (rule {k + 1})" for k, value in enumerate(self.deviations)]
        shown = ", ".join(named) if len(self) > 1 else in_full(self.deviations[0])
        return [f"Observations deviate by about {shown} near the mean of the rows, by more far from it."]

    def _feature_limits(self) -> list[str]:
        limits = self.predictor.limits
        used = np.flatnonzero((self.lines[:, 1:] != 0.0).any(axis=0)).tolist() if limits is not None else []
        return [
            f"{quoted(self.feature_names[j])} counts as {in_full(float(limits.low[j]))} where it is lower, "
            f"as {in_full(float(limits.high[j]))} where it is higher"
            for j in used
            if limits is not None and j not in self.indicators
        ]

    def rule_text(self, rule: int) -> str:
        """One rule: conditions and line."""
        share, target = self.predictor.shares[rule], quoted(self.target_name)
        title = f"Rule {rule + 1} ({share:.0%} of the rows, {target} about {readable(self.outputs[rule])})"
        return "\n".join([title, f"  {self.condition(rule)}", f"  THEN {target} = {self.short_line(rule)}"])

    def condition(self, rule: int) -> str:
        """The conditions of a rule."""
        clauses = list(dict.fromkeys(text for _, _, text in self.clauses(rule)))
        return f"IF {' AND '.join(clauses)}" if clauses else "ALWAYS"

    def clauses(self, rule: int) -> list[tuple[int, str, str]]:
        """Feature, terms and text of every condition of a rule; conditions on one category have one text together."""
        conditions = self.rules.conditions(rule)
        held = {j: first == 1 for j, (first, _) in conditions.items() if j in self.indicators}
        found = []
        for j, (first, last) in conditions.items():
            if j in held:
                column = self.indicators[j].column
                mine = {i: holds for i, holds in held.items() if self.indicators[i].column == column}
                terms = condition_text([self.indicators[i] for i in mine], list(mine.values()))
                found.append((j, terms, f"{quoted(column)} is {terms}"))
            else:
                terms = " or ".join(map(quoted_term, self.terms[j][first : last + 1]))
                found.append((j, terms, f"{quoted(self.feature_names[j])} is {terms}"))
        return found

    def line_text(self, rule: int) -> str:
        """The whole line of a rule: its constant and the terms that it has, those of categories last."""
        return _sum_text([in_full(float(self.lines[rule, 0])), *self.line_terms(rule).values()])

    def short_line(self, rule: int) -> str:
        """The line of a rule as it is printed: the part that all rules share is named."""
        return _sum_text([in_full(float(self.lines[rule, 0])), *(term for _, term in self.printed_terms(rule))])

    def printed_terms(self, rule: int) -> list[tuple[int | None, str]]:
        """Feature and text of the terms of a line as it is printed; the name of the shared part has no feature."""
        shared = self.shared_terms()
        own = [(j, term) for j, term in self.line_terms(rule).items() if j not in shared]
        named = [(None, f"+ {SHARED}")] if shared else []
        plain, levels = ([entry for entry in own if (entry[0] in self.indicators) == is_level] for is_level in (0, 1))
        return [*plain, *named, *levels]

    def shared_terms(self) -> dict[int, str]:
        """The terms that are the same in every rule, by feature; nothing if there are none, or too few to name."""
        shared = shared_slopes(self.lines)[1:]
        return {j: term for j, term in self.line_terms(0).items() if shared[j]}

    def shared_part(self) -> list[str]:
        """The shared terms as one text; nothing if there are none."""
        terms = list(self.shared_terms().values())
        return [_sum_text(terms)] if terms else []

    def line_terms(self, rule: int) -> dict[int, str]:
        """Signed terms of the whole line of a rule, by feature, those of categories last."""
        kept = [(j, slope) for j, slope in enumerate(self.lines[rule, 1:].tolist()) if slope != 0.0]
        return {j: self._term(j, slope) for j, slope in sorted(kept, key=lambda entry: entry[0] in self.indicators)}

    def _term(self, j: int, slope: float) -> str:
        size = f"{'-' if slope < 0 else '+'} {in_full(abs(slope))}"
        if j in self.indicators:
            return f"{size} if {indicator_term(self.indicators[j])}"
        return f"{size}*{quoted(self.feature_names[j])}"

    def to_records(self) -> list[dict[str, Any]]:
        """One flat dictionary per rule: number, share, mean output, conditions, line and text."""
        return [
            {
                "rule": k + 1,
                "share": float(self.predictor.shares[k]),
                "mean_output": self.outputs[k],
                "condition": self.condition(k),
                "line": self.line_text(k),
                "text": self.rule_text(k),
            }
            for k in range(len(self))
        ]

    @property
    def to_read(self) -> int:
        """Conditions, terms of lines (of the shared part once) and constants."""
        found = self.complexity()
        return int(found["conditions"] + found["terms"] + found["rules"])

    def complexity(self) -> dict[str, float]:
        """What there is to read: rules, conditions, terms of lines (of the shared part once), and words."""
        conditions = [len({text for _, _, text in self.clauses(k)}) for k in range(len(self))]
        terms = np.count_nonzero(self.lines[:, 1:], axis=1)
        words = [len(names) for j, names in enumerate(self.terms) if self.rules.ramps_of(j)]
        return {
            "rules": len(self),
            "conditions": sum(conditions),
            "conditions_per_rule": sum(conditions) / len(self),
            "terms": n_terms(self.lines),
            "shared_terms": int(np.count_nonzero(shared_slopes(self.lines))),
            "terms_per_rule": float(terms.mean()),
            "words": sum(words),
            "words_per_feature": sum(words) / len(words) if words else 0.0,
            "distinguishability": self.distinguishability(),
        }

    def distinguishability(self) -> float:
        """1 minus the largest Jaccard similarity of two adjacent terms of a feature over its range; 1 without words."""
        limits = None if self.predictor.limits is None else self.predictor.domain
        similarities = [0.0]
        for j in np.unique(self.rules.ramp_features).astype(int).tolist():
            ramps = np.array(self.rules.ramps_of(j))
            low, high = (ramps.min(), ramps.max()) if limits is None else (limits.low[j], limits.high[j])
            x = np.linspace(min(low, ramps.min()), max(high, ramps.max()), 1001)[:, None]
            above = np.clip((x - ramps[:, 0]) / (ramps[:, 1] - ramps[:, 0]), 0.0, 1.0)
            terms = -np.diff(above, axis=1, prepend=1.0, append=0.0)
            joint = np.minimum(terms[:, 1:], terms[:, :-1]).sum(axis=0)
            either = np.maximum(terms[:, 1:], terms[:, :-1]).sum(axis=0)
            similarities += (joint / np.maximum(either, 1e-300)).tolist()
        return 1.0 - max(similarities)

    def _section(self, title: str, lines: Sequence[str]) -> str:
        return "\n".join([title, *(f"  {line}" for line in lines)]) if lines else ""


def _sum_text(parts: Sequence[str]) -> str:
    """Terms of a sum one after the other, those of categories after a comma."""
    return "".join(f"{',' if ' if ' in part else ''} {part}" for part in parts).removeprefix(",").removeprefix(" ")


def _meaning(below: tuple[float, float] | None, above: tuple[float, float] | None) -> str:
    if below is None and above is not None:
        return f"below {in_full(above[0])} fully, above {in_full(above[1])} not at all"
    assert below is not None
    if above is None:
        return f"above {in_full(below[1])} fully, below {in_full(below[0])} not at all"
    full = f"from {in_full(below[1])} to {in_full(above[0])} fully"
    return f"{full}, below {in_full(below[0])} or above {in_full(above[1])} not at all"
