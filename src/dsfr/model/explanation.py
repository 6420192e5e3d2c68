"""Explanations of rules and effects, as text, records or data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dsfr.core.arrays import Array
from dsfr.core.explain.effect_words import EffectsExplanation, explain_effects
from dsfr.core.explain.html import rules_html
from dsfr.core.explain.rules import Rule, explain
from dsfr.core.explain.structure import Structure
from dsfr.core.prediction.mixture import Member
from dsfr.model.schema import Schema


class Explanation(tuple[Rule, ...]):
    """The rules of a model, in order: a tuple that can be printed or turned into a table; and its effects, if any."""

    effects: EffectsExplanation | None
    """Effects of single features, pairs and triples; None if the model has none."""
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
            parts.append(f"effects of {self.effects.summary()}")
        return " and ".join(parts)

    def to_records(self) -> list[dict[str, Any]]:
        """One flat dictionary per rule: number, share, mean output, line, and label, center and width of its sets."""
        return [_record(rule) for rule in self]

    def to_frame(self) -> Any:
        """`to_records` as a data frame, indexed by the rules' numbers (needs pandas)."""
        return data_frame(self.to_records()).set_index("rule")


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
