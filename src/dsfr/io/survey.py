"""What the columns of files hold: numbers by their first rows, categories by counting all rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsfr.core.arrays import Array
from dsfr.io.columns import Origin, Table, TableError, is_number, is_text, texts, with_point
from dsfr.io.files import read_batches
from dsfr.model.kinds import ColumnSurvey, Verdict, number_verdict, settle
from dsfr.model.schema import Schema, declared_column

REMEDY = "leave out {names}: ignore=[{names}], or --ignore once for each"

Categories: TypeAlias = "Mapping[str, Sequence[str] | None]"
"""Declared levels of columns; None: the levels that are found."""


@dataclass(frozen=True, slots=True)
class Source:
    """Files, how to read them, and the columns that are asked for."""

    files: tuple[Path, ...]
    names: tuple[str, ...]
    delimiter: str = ","
    decimal: str = "."

    def batches(self, names: Sequence[str]) -> Iterator[Table]:
        """Some columns of all files."""
        for file in self.files:
            yield from read_batches(file, names, self.delimiter)

    def first_batches(self) -> Iterator[Table]:
        """The first batch of every file that has rows."""
        for file in self.files:
            batch = next(iter(read_batches(file, self.names, self.delimiter)), None)
            if batch is not None and batch.num_rows:
                yield batch


def find_schema(source: Source, categories: Categories, *, explicit: bool) -> Schema:
    """The columns of files that can be learnt from; ``explicit``: all were asked for by name.

    Raises
    ------
    TableError
        Naming all columns that cannot be used, each with what to do about it.
    """
    counted = count_levels(source, text_columns(source, categories))
    return settled_schema(source, categories, counted, explicit=explicit)


def text_columns(source: Source, categories: Categories) -> list[str]:
    """Columns whose values must be counted: those that are not numbers, by the first rows of every file."""
    asked = [name for name, levels in categories.items() if levels is None]
    undeclared = [name for name in source.names if name not in categories]
    found = {
        name
        for batch in source.first_batches()
        for name in undeclared
        if _first_numbers(batch.column(name), source.decimal) is None
    }
    return [name for name in source.names if name in found or name in asked]


def count_levels(source: Source, names: Sequence[str]) -> dict[str, ColumnSurvey]:
    """Counts of the values of columns, in one pass over these."""
    surveys: dict[str, ColumnSurvey] = {}
    for batch in source.batches(names) if names else ():
        for name in names:
            column = batch.column(name)
            survey = surveys.setdefault(name, ColumnSurvey(name, holds=_strange(column.type)))
            if not survey.holds:
                survey.add(_counts(column, source.decimal))
    return surveys


def merged(surveys: Sequence[Mapping[str, ColumnSurvey]]) -> dict[str, ColumnSurvey]:
    """Counts of several processes together."""
    total: dict[str, ColumnSurvey] = {}
    for survey in (survey for part in surveys for survey in part.values()):
        kept = total.setdefault(survey.name, ColumnSurvey(survey.name, holds=survey.holds))
        kept.holds = kept.holds or survey.holds
        kept.add(survey.counts)
    return total


def settled_schema(
    source: Source, categories: Categories, counted: Mapping[str, ColumnSurvey], *, explicit: bool
) -> Schema:
    """The columns to learn from, by their counts and, of numbers, by the first rows of the first file."""
    first = next(source.first_batches(), None)
    verdicts: dict[str, Verdict] = {}
    for name in source.names:
        if categories.get(name) is not None:
            verdicts[name] = Verdict(declared_column(name, categories[name]))
        elif name in counted:
            counted[name].is_category = name in categories
            verdict = counted[name].verdict(explicit=explicit)
            verdicts[name] = verdict.located(_place(source, name, verdict.odd)) if verdict.odd else verdict
        else:
            values = None if first is None else _first_numbers(first.column(name), source.decimal)
            verdicts[name] = number_verdict(name, np.empty(0) if values is None else values, explicit=explicit)
    schema = Schema(settle(verdicts, REMEDY, TableError))
    try:
        schema.check()
    except ValueError as error:
        raise TableError(str(error)) from None
    return schema


def _place(source: Source, name: str, text: str) -> str:
    """Row and, of several, file of the first value that is this text; row 1 is the first below the header."""
    for file in source.files:
        n_before = 0
        for batch in read_batches(file, [name], source.delimiter):
            place = pc.index(texts(batch.column(name)), text).as_py()
            if place >= 0:
                return Origin(file.name if len(source.files) > 1 else "", n_before).row(place)
            n_before += batch.num_rows
    return "another file"


def _first_numbers(column: Any, decimal: str) -> Array | None:
    """Values of a column of numbers, NaN where missing; None if it holds something else, or nothing."""
    if is_text(column.type):
        try:
            column = pc.cast(with_point(texts(column), decimal), pa.float64())
        except pa.ArrowInvalid:
            return None
    elif not is_number(column.type) or pa.types.is_boolean(column.type):
        return None
    if column.null_count == len(column):
        return None
    values: Array = pc.fill_null(pc.cast(column, pa.float64(), safe=False), np.nan).to_numpy()
    return values


def _strange(kind: Any) -> str:
    """What a column holds that is no text, number, boolean or dictionary of these."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_temporal(kind):
        return "holds dates"
    return "" if is_text(kind) or is_number(kind) or pa.types.is_null(kind) else f"holds {kind}"


def _counts(column: Any, decimal: str) -> dict[str, int]:
    """Numbers of rows by text, without missing ones."""
    if pa.types.is_null(column.type):
        return {}
    found = pc.value_counts(pc.drop_null(texts(column))).to_pylist()
    counts = {entry["values"]: entry["counts"] for entry in found}
    if decimal == ".":
        return counts
    # A text that is a number with another decimal mark counts as that number.
    return {(text.replace(decimal, ".", 1) if _is_float(text, decimal) else text): n for text, n in counts.items()}


def _is_float(text: str, decimal: str) -> bool:
    try:
        float(text.replace(decimal, ".", 1))
    except ValueError:
        return False
    return True
