"""One prediction as a sum of contributions, as text or a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.explain.contributions import Contributions, average, contributions
from dsfr.core.explain.html import shortened
from dsfr.core.explain.words import counted, listed, one_line, readable, signed
from dsfr.core.prediction.link import Link, learnt_name
from dsfr.core.prediction.mixture import Mixture
from dsfr.core.prediction.noisy_rows import NoisyRows
from dsfr.model.explanation import data_frame
from dsfr.model.inputs import as_matrix, as_noise
from dsfr.model.schema import Column, Schema
from dsfr.model.student import student_contributions

if TYPE_CHECKING:
    from dsfr.model.model import Model


@dataclass(frozen=True, slots=True)
class UncertainInputs:
    """What is expected of the values of a row, given all that is known of it."""

    means: Array
    """Shape (d,)."""
    deviations: Array
    """Standard deviations; 0 where a value is exact, infinite where nothing is known of it; shape (d,)."""
    effect: float | None
    """Standard deviation of the value that the model learns, over the inputs; None if a deviation is infinite."""

    def text(self, column: Column, own: slice) -> str:
        """What is expected of a column, after what was given; empty where that is exact."""
        means, deviations = self.means[own], self.deviations[own]
        if not deviations.any() or np.isinf(deviations).any():
            return ""
        if column.levels is not None:
            return f", {column.likeliest(means)} expected"
        return f", {readable(float(means[0]))} ± {readable(float(f'{deviations[0]:.2g}'))} expected"


@dataclass(frozen=True, slots=True, repr=False)
class PredictionExplanation:
    """One prediction as the sum of ``start`` and the contributions of rules, features and groups of features."""

    parts: Contributions
    row: Array
    """Values as they were given, NaN where unknown."""
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
    inputs: UncertainInputs | None = None
    """What is known of values that are missing or noisy; None: all are exact."""

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
    def together(self) -> dict[tuple[str, ...], float]:
        """What two or three features do together, beyond what fewer do; empty for a model without effects."""
        names = [tuple(self.feature_names[j] for j in group) for group in self.parts.groups]
        return dict(zip(names, self.parts.together.tolist(), strict=True))

    @property
    def firing(self) -> float:
        """Contribution of the rules' strengths, compared with all rules at their mean shares."""
        return self.parts.firing

    @property
    def rules(self) -> dict[int, tuple[float, float]]:
        """Strength and contribution of every rule, by its number."""
        entries = zip(self.parts.strengths.tolist(), self.parts.by_rule.tolist(), strict=True)
        return dict(enumerate(entries, start=1))

    def to_frame(self) -> Any:
        """All contributions: a row per rule with its strength, a column for firing, one per feature and one per group.

        The effects of a model that has some are one row more.
        """
        columns = ("firing", *self.feature_names)
        groups = {listed(names): value for names, value in self.together.items()}
        records = [
            {"rule": k + 1, "strength": strength, **dict(zip(columns, row, strict=True)), **dict.fromkeys(groups, 0.0)}
            for k, (strength, row) in enumerate(
                zip(self.parts.strengths.tolist(), self.parts.parts.tolist(), strict=True)
            )
        ]
        if self.parts.effect_share > 0:
            effects = dict(zip(self.feature_names, self.parts.effects.tolist(), strict=True))
            records.append({"rule": "effects", "strength": self.parts.effect_share, "firing": 0.0, **effects, **groups})
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
            *self._groups(),
            (one_line(learnt_name(self.target_name, self.link)), self.value, "= all of the above"),
        ]
        last = len(lines) - 1
        lines += self._linked(target)
        width = max(len(name) for name, *_ in lines)
        least = ROUNDING * (abs(self.start) + abs(self.value))
        parts = [value if abs(value) > least else 0.0 for _, value, _ in lines]
        numbers = [readable(value) if i == 0 or i >= last else signed(value) for i, value in enumerate(parts)]
        digits = max(map(len, numbers))
        rows = [
            f"{name:<{width}}  {number:>{digits}}  {note}".rstrip()
            for (name, _, note), number in zip(lines, numbers, strict=True)
        ]
        return "\n".join([*rows, *self._interval(), *self._uncertain()])

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

    def _uncertain(self) -> list[str]:
        """What the values that are not known for sure do to the prediction."""
        if self.inputs is None:
            return []
        names = [column.name for column, own in self._owned() if self.inputs.deviations[own].any()]
        moved = self.inputs.effect
        by = "" if moved is None else f": they move it by {readable(moved)} (one standard deviation)"
        said = f"an expectation over {', '.join(map(one_line, names))}{by}"
        return [f"{one_line(learnt_name(self.target_name, self.link))} is {said}"]

    def _owned(self) -> list[tuple[Column, slice]]:
        """Every column with the slice of its features."""
        ends = np.cumsum([len(column.features) for column in self.schema.columns]).tolist()
        return [
            (column, slice(end - len(column.features), end))
            for column, end in zip(self.schema.columns, ends, strict=True)
        ]

    def _columns(self) -> list[tuple[str, float, str, str]]:
        """Name, contribution, value and typical value of every column, the largest contribution first."""
        found = []
        for column, own in self._owned():
            value, usual = (_shown_value(column, row[own]) for row in (self.row, self.parts.reference))
            expected = "" if self.inputs is None else self.inputs.text(column, own)
            found.append((column.name, float(self.parts.by_feature[own].sum()), value + expected, usual))
        return sorted(found, key=lambda entry: -abs(entry[1]))

    def _groups(self) -> list[tuple[str, float, str]]:
        """Name, contribution and remark of the groups with the largest contributions, and of all others together."""
        names = list(map(one_line, self.feature_names))
        entries = zip(self.parts.groups, self.parts.together.tolist(), strict=True)
        ordered = sorted(entries, key=lambda entry: -abs(entry[1]))
        shown = [(listed([names[j] for j in group]), value, "together") for group, value in ordered[:MOST_GROUPS]]
        rest = ordered[MOST_GROUPS:]
        if not rest:
            return shown
        others = counted([group for group, _ in rest], "other ")
        return [*shown, (others, float(sum(value for _, value in rest)), "together")]

    def _fired(self) -> str:
        shown = self.parts.strengths[: self.n_shown]
        order = np.argsort(-shown, kind="stable")[:MOST_FIRED]
        named = [
            f"rule {k + 1}: {self.parts.strengths[k]:.0%}" for k in order if self.parts.strengths[k] >= SHOWN_STRENGTH
        ]
        rest = self.parts.strengths.sum() - self.parts.strengths[order].sum()
        return ", ".join([*named, *([f"others: {rest:.0%}"] if rest >= SHOWN_STRENGTH else [])])


MOST_FIRED = 5
MOST_GROUPS = 5
SHOWN_STRENGTH = 0.005
"""Rules with a smaller strength are left out of the text of a prediction, but not of its numbers."""


ROUNDING = 1e-12
"""Contributions that are smaller, compared with start and prediction, are shown as 0."""
SHOWN_COVERAGE = 0.9
"""Coverage of the interval in the text of a prediction."""


def _shown_value(column: Column, values: Array) -> str:
    """The value of a column in words: a number, or its likeliest level."""
    if column.levels is not None:
        return column.likeliest(values)
    return "unknown" if np.isnan(values[0]) else readable(float(values[0]))


def _row_of_frame(row: Any, schema: Schema) -> Any:
    """One row of a data frame as a data frame; anything else as it is, unless it has text or names.

    Raises
    ------
    ValueError
        Naming the remedy.
    """
    if hasattr(row, "to_frame"):
        return row.to_frame().T
    is_list = isinstance(row, Sequence) and not isinstance(row, str)
    if isinstance(row, Mapping) or (is_list and any(isinstance(value, str) for value in row)):
        raise ValueError(
            "the model has categories: give a row of a data frame, such as X.iloc[3], with the columns "
            f"{', '.join(map(repr, schema.names))}"
        )
    return row


def explain_prediction(model: Model, row: Any, X_std: Any) -> PredictionExplanation:
    """Take the prediction of one row apart, see `Model.explain_prediction`."""
    if model.schema is not None:
        row = _row_of_frame(row, model.schema)
    X = as_matrix(row if np.ndim(row) == 2 else [row], model.feature_names, model.schema, gaps=True)
    if len(X) != 1:
        raise ValueError(f"{len(X)} rows: one prediction is explained at a time, so give one row")
    noise = as_noise(X_std, X, model.feature_names)
    noise = np.zeros(X.shape) if noise is None else noise
    rows = model.mixture.uncertain_row(X[0], noise[0])
    parts, n_shown = _contributions(model, X[0], rows)
    is_known = SHOWN_COVERAGE in model.half_widths([SHOWN_COVERAGE])
    return PredictionExplanation(
        parts,
        X[0],
        model.feature_names,
        model.target_name,
        model.columns,
        float(model.mixture.half_widths(X, SHOWN_COVERAGE, noise)[0]) if is_known else None,
        model.mixture.link,
        n_shown,
        None if rows is None else _uncertain_inputs(model.mixture, X[0], noise[0], rows),
    )


def _contributions(model: Model, x: Array, rows: NoisyRows | None) -> tuple[Contributions, int | None]:
    """Contributions to the prediction of a row, and the number of rules that the model's explanation shows."""
    structure = None if model.is_student else model.structure
    n_shown = None if structure is None or structure.rules is None else structure.rules.strongest.n_rules

    def of(means: Array, deviations: Array | None) -> Contributions:
        if structure is None:
            return student_contributions(model, means, deviations)
        return contributions(structure, means, deviations)

    if rows is None:
        return of(x, None), n_shown
    weights = np.ones(1) if rows.parts is None else rows.parts.weights
    return average(list(map(of, rows.means, rows.deviations)), weights), n_shown


def _uncertain_inputs(mixture: Mixture, x: Array, noise: Array, rows: NoisyRows) -> UncertainInputs:
    """What is expected of the values of one row."""
    if mixture.density is None:
        is_known = bool(np.isfinite(rows.deviations).all())
        means, deviations = rows.means[0], rows.deviations[0]
    else:
        found, is_known = mixture.density.conditional(x[None], noise[None]), True
        means, deviations = found.means[0], found.deviations[0]
    return UncertainInputs(means, deviations, float(mixture.input_deviations(rows)[0]) if is_known else None)
