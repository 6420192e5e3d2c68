"""Data frames as tables of features: which columns hold numbers or categories, and their rows as numbers."""

from __future__ import annotations

import datetime
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from dsfr.core.arrays import Array, as_floats
from dsfr.model.kinds import ColumnSurvey, Verdict, counted, number_verdict, settle
from dsfr.model.schema import MISSING, Column, Schema, codes_of, level_text

FIRST_ROWS = 2**16
"""Rows by which identifiers are found."""
REMEDY = "leave out {names}, X.drop(columns=[{names}])"


def is_frame(X: Any) -> bool:
    """Whether rows come in a data frame of pandas or polars, decided without importing either."""
    return hasattr(X, "columns") and (hasattr(X, "iloc") or type(X).__module__.partition(".")[0] == "polars")


def as_frame(X: Any) -> Any:
    """Tables of Arrow as data frames of pandas; anything else as it is.

    Raises
    ------
    ImportError
        If a table of Arrow needs pandas, saying how to install it.
    ValueError
        If X is a lazy frame of polars.
    """
    package = type(X).__module__.partition(".")[0]
    if package == "polars" and hasattr(X, "collect"):
        raise ValueError("X is a lazy frame of polars, which has no rows yet: give X.collect()")
    if package != "pyarrow" or not hasattr(X, "to_pandas") or not hasattr(X, "schema"):
        return X
    try:
        return X.to_pandas()
    except ImportError as error:
        raise ImportError("tables of Arrow need pandas: pip install 'dsfr[report]'") from error


def frame_schema(X: Any) -> Schema:
    """The columns of a data frame that can be learnt from.

    Raises
    ------
    ValueError
        Naming all columns that cannot be used, each with what to do about it.
    """
    schema = Schema(settle({name: _verdict(name, column) for name, column in frame_columns(X).items()}, REMEDY))
    schema.check()
    return schema


def _verdict(name: str, column: Any) -> Verdict:
    kind = kind_of(column.dtype)
    if kind == "numbers":
        return number_verdict(name, as_floats(column[:FIRST_ROWS], f"column {name!r} of X"))
    if kind == "dates":
        return ColumnSurvey(name, holds="holds dates").verdict()
    strange = _strange(column) if kind == "objects" else ""
    levels = levels_of(column)
    survey = ColumnSurvey(name, levels, bool(levels) or str(column.dtype) == "category", strange)
    texts = series_texts(column) if not strange else []
    survey.add(counted(texts))
    verdict = survey.verdict()
    return verdict.located(f"row {_label(column, texts.index(verdict.odd))}") if verdict.odd else verdict


def _label(column: Any, row: int) -> Any:
    """The label of a row in the index of a data frame, or its number, counted from 0."""
    return column.index[row] if hasattr(column, "iloc") else row


def kind_of(dtype: Any) -> str:
    """What a column holds by its type: numbers, dates, booleans, or objects, which may be anything."""
    if hasattr(dtype, "is_numeric"):  # of polars
        return "numbers" if dtype.is_numeric() else "dates" if dtype.is_temporal() else "objects"
    kinds = {"i": "numbers", "u": "numbers", "f": "numbers", "M": "dates", "m": "dates", "b": "booleans"}
    return kinds.get(getattr(dtype, "kind", "O"), "objects")


def has_numbers_only(X: Any) -> bool:
    """Whether all columns of a data frame are of a type of numbers."""
    return all(kind_of(dtype) == "numbers" for dtype in X.dtypes)


def levels_of(column: Any) -> tuple[str, ...]:
    """Levels of a column of pandas' type "category", or of polars' type Enum, in order."""
    if str(column.dtype) == "category":
        return tuple(map(level_text, column.cat.categories))
    is_enum = type(column.dtype).__name__ == "Enum"
    return tuple(map(level_text, column.dtype.categories)) if is_enum else ()


def _strange(column: Any) -> str:
    """What a column holds if that is no text, number or boolean; empty if all values are."""
    kinds = {type(value): value for value in column}
    if any(isinstance(value, (datetime.date, datetime.time, np.datetime64)) for value in kinds.values()):
        return "holds dates"
    others = [kind for kind, value in kinds.items() if not _is_plain(value)]
    return f"holds values of type {others[0].__name__}" if others else ""


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, Real, Decimal, np.bool_)) or str(value) in ("<NA>", "nan")


def frame_columns(X: Any) -> dict[str, Any]:
    """Columns of a data frame by the text of their names.

    Raises
    ------
    ValueError
        If two have the same name.
    """
    names = [str(name) for name in X.columns]
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise ValueError(f"X has several columns named {', '.join(map(repr, repeated))}: rename them")
    if hasattr(X, "iloc"):
        return {name: X.iloc[:, j] for j, name in enumerate(names)}
    return {name: X[original] for name, original in zip(names, X.columns, strict=True)}


def encode_frame(X: Any, schema: Schema) -> Array:
    """The features of the rows of a data frame, whose columns are found by name.

    Raises
    ------
    ValueError
        If a column is missing, or has text where the model needs numbers.
    """
    found = frame_columns(X)
    missing = [name for name in schema.names if name not in found]
    if missing:
        raise ValueError(f"X lacks the column(s) {', '.join(missing)} that the model was trained on")

    def column_of(column: Column) -> Array:
        own = found[column.name]
        return _numbers(own, column.name) if column.levels is None else codes_of(series_texts(own), column)

    return schema.encode(column_of, len(X))


def _numbers(column: Any, name: str) -> Array:
    """Values of a column of numbers, NaN where missing; texts of numbers count as these.

    Raises
    ------
    ValueError
        Naming column, value and row.
    """
    if kind_of(column.dtype) in ("numbers", "booleans"):
        return as_floats(column, f"column {name!r} of X")
    texts = series_texts(column)
    labels = list(column.index) if hasattr(column, "index") else range(len(texts))
    return np.array([_number(text, name, label) for text, label in zip(texts, labels, strict=True)], dtype=np.float64)


def _number(text: str | None, name: str, row: Any) -> float:
    if text is None or text in MISSING:
        return np.nan
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"column {name!r} of X has {text!r} in row {row}, which is not a number: correct it, or drop that row"
        ) from None


def series_texts(series: Any) -> list[str | None]:
    """Values of a column of a data frame as texts of levels; None where one is missing."""
    values = series.to_list() if hasattr(series, "to_list") else list(series)
    texts: dict[Any, str | None] = {}
    return [_kept_text(value, texts) for value in values]


def _kept_text(value: Any, texts: dict[Any, str | None]) -> str | None:
    """The text of a value, computed once for each that can be looked up."""
    try:
        return texts[value]
    except TypeError:  # a value without a hash
        return level_text(value)
    except KeyError:
        is_missing = value is None or value != value or (not isinstance(value, str) and str(value) in ("<NA>", "NaT"))
        texts[value] = None if is_missing else level_text(value)
        return texts[value]
