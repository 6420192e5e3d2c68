"""What an owner checks on its own table before a fit: every answer is yes or no, and no value leaves.

Both sides make the same list of questions from the plan of a fit, so an answer is a list of numbers and no text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dsfr.disclosure import Policy
from dsfr.io.agent_files import Columns
from dsfr.io.columns import TableError
from dsfr.io.files import column_names
from dsfr.io.scanning import Scan
from dsfr.model.schema import Schema
from dsfr.training import RangeScaling

NO, YES, UNKNOWN = 0, 1, 2
"""Answers; the last where an earlier answer makes the question void, or the owner has stated nothing."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a table."""

    text: str
    is_needed: bool = True
    """Whether a fit fails, or means something else, if the answer is no."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The table that the plan of a fit asks for."""

    columns: Columns
    ranges: RangeScaling
    units: Mapping[str, str]
    """Units by column, where the plan declares them."""

    @classmethod
    def of(cls, plan: Mapping[str, object]) -> Expected:
        """The table of a plan, which may come from a message.

        Raises
        ------
        ValueError
            If it is none.
        """
        try:
            columns, units = Columns.from_json(str(plan["columns"])), dict(plan.get("units", {}))  # type: ignore[call-overload]
            ranges = RangeScaling(**plan["ranges"])  # type: ignore[arg-type]
        except (KeyError, TypeError) as error:
            raise ValueError(f"a plan has columns, ranges and units: {error}") from None
        if ranges.declared is None or len(ranges.declared.low) != len(columns.schema.features):
            raise ValueError(f"a plan has a range for each of its {len(columns.schema.features)} features")
        return cls(columns, ranges, units)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns, the target last."""
        return *self.columns.features, self.columns.target

    def check_units(self, stated: Mapping[str, str]) -> None:
        """Refuse units that are not those of a table.

        Raises
        ------
        ValueError
            Naming the columns.
        """
        other = [name for name, unit in sorted(self.units.items()) if stated.get(name, unit) != unit]
        if other:
            shown = ", ".join(f"{name} in {self.units[name]}, and not {stated[name]}" for name in other)
            raise ValueError(f"the plan has {shown}: agree on units, or convert the table")

    def questions(self) -> list[Question]:
        """All questions about a table, in the order of the answers."""
        return [
            *(Question(f"{name}: the column is there") for name in self.names),
            Question("columns are in the order of the plan (they are read by name)", is_needed=False),
            *(Question(f"{name}: values are {self._kind(name)}") for name in self.names),
            *(Question(f"{name}: values are within the declared range") for name in self.names),
            *(Question(self._missing(name), is_needed=False) for name in self.columns.features),
            *(Question(f"{name}: the unit is {unit}") for name, unit in sorted(self.units.items())),
            Question("columns are allowed by the owner's policy"),
            Question("rows are enough for the owner's policy"),
            Question("labels are enough for the owner's policy, or none"),
        ]

    def _kind(self, name: str) -> str:
        return "names of levels" if name in self.columns.categories else "numbers"

    def _missing(self, name: str) -> str:
        return f"{name}: no value is missing" + (", or another level" if name in self.columns.categories else "")


@dataclass(frozen=True, slots=True)
class ColumnAnswers:
    """What one column of a table is like."""

    is_read: int = UNKNOWN
    is_within: int = UNKNOWN
    is_whole: int = UNKNOWN
    n_rows: int = 0
    n_known: int = 0


def check_table(path: Path, expected: Expected, policy: Policy, stated: Mapping[str, str] | None = None) -> list[int]:
    """The answers to all questions about a table.

    Parameters
    ----------
    path : Path
        The table.
    expected : Expected
        What the plan asks for.
    policy : Policy
        Of the owner.
    stated : mapping, default=None
        Units of the table by column, as the owner states them.
    """
    columns, stated = expected.columns, stated or {}
    found = list(column_names(path, columns.delimiter))
    is_there = {name: name in found for name in expected.names}
    places = [found.index(name) for name in expected.names if is_there[name]]
    about = [_column(path, found, expected, name) if is_there[name] else ColumnAnswers() for name in expected.names]
    n_rows, n_labels = max(one.n_rows for one in about), about[-1].n_known
    return [
        *(int(answer) for answer in is_there.values()),
        int(places == sorted(places)),
        *(one.is_read for one in about),
        *(one.is_within for one in about),
        *(one.is_whole for one in about[:-1]),
        *(int(stated[name] == unit) if name in stated else UNKNOWN for name, unit in sorted(expected.units.items())),
        int(policy.columns is None or set(columns.features) <= set(policy.columns)),
        int(n_rows >= policy.min_rows),
        int(not 0 < n_labels < policy.min_labels) if about[-1].is_read == YES else UNKNOWN,
    ]


def mismatches(asked: Sequence[Question], answers: Sequence[int]) -> list[str]:
    """Texts of the needed questions that were answered with no."""
    return [
        question.text for question, answer in zip(asked, answers, strict=True) if question.is_needed and answer == NO
    ]


def _column(path: Path, found: list[str], expected: Expected, name: str) -> ColumnAnswers:
    """One column, in a pass over it alone: a column that cannot be read does not hide what others are like."""
    columns = expected.columns
    levels = {name: columns.categories[name]} if name in columns.categories else {}
    schema = Schema.of((name,), levels)
    scan = Scan((path,), tuple(found), schema, None, None, columns.delimiter, columns.decimal)
    low, high = _ends(expected, name)
    is_within, n_rows, n_known = True, 0, 0
    try:
        for X in scan.features(schema):
            known = X[~np.isnan(X).any(axis=1)]
            is_within &= bool(((known >= low) & (known <= high)).all())
            n_rows, n_known = n_rows + len(X), n_known + len(known)
    except TableError:
        return ColumnAnswers(is_read=NO)
    return ColumnAnswers(YES, int(is_within), int(n_known == n_rows), n_rows, n_known)


def _ends(expected: Expected, name: str) -> tuple[float, float]:
    if name == expected.columns.target:
        low, high = expected.ranges.target_range
        return float(low), float(high)
    if name in expected.columns.categories:
        return 0.0, 1.0
    declared = expected.ranges.declared
    assert declared is not None
    place = [column.name for _, column, _ in expected.columns.schema.features].index(name)
    return float(declared.low[place]), float(declared.high[place])
