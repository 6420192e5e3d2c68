"""Explanations of rules, effects and predictions, as text, records or data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.contributions import Contributions
from dsfr.core.explain.effect_words import EffectsExplanation, explain_effects
from dsfr.core.explain.html import rules_html, shortened
from dsfr.core.explain.rules import Rule, explain
from dsfr.core.explain.structure import Structure
from dsfr.core.explain.words import one_line, readable, signed
from dsfr.core.prediction.link import Link, learnt_name
from dsfr.core.prediction.mixture import Member
from dsfr.model.schema import Column, Schema


class Explanation(tuple[Rule, ...]):
    """The rules of a model, in order: a tuple that can be printed or turned into a table; and its effects, if any."""

    effects: EffectsExplanation | None
    """Effects of single features and pairs; None if the model has none."""
    notes: tuple[str, ...]
    """Sentences about the target: its scale, its limits, and whether it has few values."""

    def __new__(
        cls, rules: Iterable[Rule], effects: EffectsExplanation | None = None, notes: Iterable[str] = ()
    ) -> Explanation:
        """A tuple of the rules that has the effects and the notes as attributes."""
        made = super().__new__(cls, rules)
        made.effects = effects
        made.notes = tuple(notes)
        return made

    def __str__(self) -> str:
        rules = "\n\n".join(map(str, self))
        notes = ["\n".join(self.notes)] if self.notes else []
        if self.effects is None:
            return "\n\n".join([*notes, rules])
        share = f"Rules have {1.0 - self.effects.share:.0%} of the prediction."
        return "\n\n".join([*notes, str(self.effects), *([share, rules] if self else [])])

    def __repr__(self) -> str:
        return f"<Explanation: {self.summary()}; print it to read it>"

    def _repr_html_(self) -> str:
        effects = [] if self.effects is None else list(map(str, self.effects.features))
        return rules_html(self.summary(), [rule.row() for rule in self], effects)

    def summary(self) -> str:
        """What there is to read."""
        parts = [f"{len(self)} rules"] if self else []
        if self.effects is not None:
            parts.append(f"effects of {len(self.effects.features)} features and {len(self.effects.pairs)} pairs")
        return " and ".join(parts)

    def to_records(self) -> list[dict[str, Any]]:
        """One flat dictionary per rule: number, share, mean output, line, and label, center and width of its sets."""
        return [_record(rule) for rule in self]

    def to_frame(self) -> Any:
        """`to_records` as a data frame, indexed by the rules' numbers (needs pandas)."""
        return data_frame(self.to_records()).set_index("rule")


@dataclass(frozen=True, slots=True, repr=False)
class PredictionExplanation:
    """One prediction as the sum of ``start`` and the contributions of rules, features and pairs of features."""

    parts: Contributions
    row: Array
    feature_names: tuple[str, ...]
    target_name: str
    schema: Schema
    """Columns that the features are made of."""
    half_width: float | None = None
    """Half the width of the jackknife interval of nominal coverage `SHOWN_COVERAGE`, if the model has one.

    On the scale on which the model is learnt.
    """
    link: Link = field(default_factory=Link)
    """From the sum of all contributions to the prediction."""
    n_shown: int | None = None
    """Number of rules that the explanation of the model shows; they come first. None: all."""

    @property
    def prediction(self) -> float:
        """The prediction, in the target's units."""
        return float(self.link.predictions(np.array(self.value)))

    @property
    def value(self) -> float:
        """The sum of all contributions: the prediction, unless logarithms are learnt or it is held at a limit."""
        return self.parts.prediction

    @property
    def start(self) -> float:
        """The rules' mean output and the effects' output at the typical row, to which contributions are added."""
        return self.parts.start

    @property
    def contributions(self) -> dict[str, float]:
        """Contribution of every feature; with `start`, `firing` and `together` they sum to the prediction."""
        return dict(zip(self.feature_names, self.parts.by_feature.tolist(), strict=True))

    @property
    def together(self) -> dict[tuple[str, str], float]:
        """What pairs of features do together, beyond what each does alone; empty for a model without effects."""
        names = [(self.feature_names[j], self.feature_names[k]) for j, k in self.parts.pairs.tolist()]
        return dict(zip(names, self.parts.together.tolist(), strict=True))

    @property
    def firing(self) -> float:
        """Contribution of the rules' strengths, compared with all rules at their mean shares."""
        return self.parts.firing

    @property
    def rules(self) -> dict[int, tuple[float, float]]:
        """Strength and contribution of every rule, by its number."""
        pairs = zip(self.parts.strengths.tolist(), self.parts.by_rule.tolist(), strict=True)
        return dict(enumerate(pairs, start=1))

    def to_frame(self) -> Any:
        """All contributions: a row per rule with its strength, a column for firing, one per feature and one per pair.

        The effects of a model that has some are one row more.
        """
        columns = ("firing", *self.feature_names)
        pairs = {" and ".join(names): value for names, value in self.together.items()}
        records = [
            {"rule": k + 1, "strength": strength, **dict(zip(columns, row, strict=True)), **dict.fromkeys(pairs, 0.0)}
            for k, (strength, row) in enumerate(
                zip(self.parts.strengths.tolist(), self.parts.parts.tolist(), strict=True)
            )
        ]
        if self.parts.effect_share > 0:
            effects = dict(zip(self.feature_names, self.parts.effects.tolist(), strict=True))
            records.append({"rule": "effects", "strength": self.parts.effect_share, "firing": 0.0, **effects, **pairs})
        return data_frame(records).set_index("rule")

    def __repr__(self) -> str:
        target = shortened(self.target_name, 60)
        return f"<{target} {readable(self.prediction)}, in {self.parts.parts.size} parts; print it to read them>"

    def __str__(self) -> str:
        target = one_line(self.target_name)
        lines = [
            ("mean output", self.start, ""),
            *([("rules that fired", self.firing, self._fired())] if len(self.parts.strengths) else []),
            *((one_line(name), part, f"{value}, typical is {usual}") for name, part, value, usual in self._columns()),
            *self._pairs(),
            (one_line(learnt_name(self.target_name, self.link)), self.value, "= all of the above"),
        ]
        last = len(lines) - 1
        lines += self._linked(target)
        width = max(len(name) for name, *_ in lines)
        numbers = [readable(value) if i == 0 or i >= last else signed(value) for i, (_, value, _) in enumerate(lines)]
        digits = max(map(len, numbers))
        rows = [
            f"{name:<{width}}  {number:>{digits}}  {note}".rstrip()
            for (name, _, note), number in zip(lines, numbers, strict=True)
        ]
        return "\n".join([*rows, *self._interval()])

    def _linked(self, target: str) -> list[tuple[str, float, str]]:
        """The prediction, where it is not the sum of all contributions."""
        is_held = self.value != float(self.link.held(np.array(self.value)))
        if not (self.link.is_log or is_held):
            return []
        how = [f"{self.link.factor:.4g} exp(log({target}))"] if self.link.is_log else []
        return [(target, self.prediction, "= " + ", ".join([*how, *(["held at its limit"] if is_held else [])]))]

    def _interval(self) -> list[str]:
        if self.half_width is None:
            return []
        ends = self.link.interval(np.array([self.value]), np.array([self.half_width]))
        low, high = (readable(float(end[0])) for end in ends)
        return [f"{SHOWN_COVERAGE:.0%} interval (jackknife): {low} to {high}"]

    def _columns(self) -> list[tuple[str, float, str, str]]:
        """Name, contribution, value and typical value of every column, the largest contribution first."""
        found, start = [], 0
        for column in self.schema.columns:
            own = slice(start, start + len(column.features))
            start = own.stop
            value, usual = (_shown_value(column, row[own]) for row in (self.row, self.parts.reference))
            found.append((column.name, float(self.parts.by_feature[own].sum()), value, usual))
        return sorted(found, key=lambda entry: -abs(entry[1]))

    def _pairs(self) -> list[tuple[str, float, str]]:
        """Name, contribution and remark of the pairs with the largest contributions, and of all others together."""
        names = list(map(one_line, self.feature_names))
        entries = zip(self.parts.pairs.tolist(), self.parts.together.tolist(), strict=True)
        ordered = sorted(entries, key=lambda entry: -abs(entry[1]))
        shown = [(f"{names[j]} and {names[k]}", value, "together") for (j, k), value in ordered[:MOST_PAIRS]]
        rest = [value for _, value in ordered[MOST_PAIRS:]]
        return [*shown, *([(f"{len(rest)} other pairs", float(sum(rest)), "together")] if rest else [])]

    def _fired(self) -> str:
        shown = self.parts.strengths[: self.n_shown]
        order = np.argsort(-shown, kind="stable")[:MOST_FIRED]
        named = [
            f"rule {k + 1}: {self.parts.strengths[k]:.0%}" for k in order if self.parts.strengths[k] >= SHOWN_STRENGTH
        ]
        rest = self.parts.strengths.sum() - self.parts.strengths[order].sum()
        return ", ".join([*named, *([f"others: {rest:.0%}"] if rest >= SHOWN_STRENGTH else [])])


MOST_FIRED = 5
MOST_PAIRS = 5
SHOWN_STRENGTH = 0.005
"""Rules with a smaller strength are left out of the text of a prediction, but not of its numbers."""


SHOWN_COVERAGE = 0.9
"""Coverage of the interval in the text of a prediction."""


def _shown_value(column: Column, values: Array) -> str:
    """The value of a column in words: a number, or its likeliest level."""
    if column.levels is None:
        return readable(float(values[0]))
    return column.likeliest(values)


def width_scales(settings: Mapping[str, Any], training: Mapping[str, Any], members: Sequence[Member]) -> list[float]:
    """Width of a set over the deviation of its cluster, for every member.

    The record of a training of several rule bases has it. Otherwise, with ``firing="mean"``, sets are wider by the root
    of the number of features.
    """
    known = training.get("cluster_scales", [])
    if len(known) == len(members):
        return list(map(float, known))
    described = training.get("models", [])
    rules = settings.get("rules", {})
    entries = described if len(described) == len(members) else [rules] * len(members)
    factor = members[0].predictor.n_features ** 0.5 if rules.get("firing") == "mean" else 1.0
    return [factor * float(entry.get("width_scale", 1.0)) for entry in entries]


def explain_structure(
    structure: Structure,
    schema: Schema,
    target_name: str,
    rows: Array | None,
    notes: Sequence[str] = (),
    *,
    all_models: bool,
    row_names: Sequence[Any] | None = None,
) -> Explanation:
    """Rules and effects in words that refer to the distribution of given rows, or else of rows drawn from the model."""
    names, indicators = schema.feature_names, schema.indicators
    base, effects = structure.rules, structure.effects
    are_data = rows is not None and len(rows) > 0
    shown = base if base is None or all_models else base.strongest
    among = rows if rows is not None and are_data else (shown or structure).synthetic_rows()
    words: dict[str, Any] = {"are_data": are_data, "row_names": row_names, "indicators": indicators}
    rules = () if shown is None else explain(shown, names, target_name, among, **words)
    return Explanation(rules, None if effects is None else explain_effects(effects, names, among, indicators), notes)


def data_frame(records: Iterable[dict[str, Any]]) -> Any:
    """A data frame of records.

    Raises
    ------
    ImportError
        If pandas is missing, saying how to install it.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("data frames need pandas: pip install 'dsfr[report]'") from error
    return pd.DataFrame.from_records(list(records))


def _record(rule: Rule) -> dict[str, Any]:
    record: dict[str, Any] = {
        "rule": rule.number,
        "share": rule.share,
        "mean_output": rule.mean_output,
        "intercept": rule.intercept,
        "text": str(rule),
    }
    for j, name in enumerate(rule.feature_names):
        record |= {
            f"{name} is": rule.labels[j] if rule.matters[j] else "",
            f"{name} center": float(rule.centers[j]),
            f"{name} width": float(rule.widths[j]),
            f"{name} slope": float(rule.coefficients[j]),
        }
    return record
