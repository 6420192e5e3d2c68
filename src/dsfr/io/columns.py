"""Columns of a table as numbers or names, with errors that name column, row, file and remedy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dsfr.core.arrays import Array
from dsfr.model.schema import BOOLEAN, MISSING, Column, Schema, codes_of

Table: TypeAlias = Any
"""A `pyarrow.Table`; pyarrow has no type hints of its own."""

_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)


class TableError(ValueError):
    """A file that is no table, or a column that cannot be used as asked."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a batch of rows: its file, if there are several, the number of rows before it, and its decimal mark."""

    file: str = ""
    rows_before: int = 0
    decimal: str = "."

    def row(self, index: int) -> str:
        """The row with this index, counted from 1.

        >>> Origin("a.csv", 10).row(0), Origin().row(4)
        ('row 11 of a.csv', 'row 5')
        """
        number = f"row {self.rows_before + index + 1}"
        return f"{number} of {self.file}" if self.file else number


def repeated_names(names: Sequence[str]) -> list[str]:
    """Names that occur more than once, sorted; in time proportional to their number."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def listed(names: Sequence[str], most: int = 20) -> str:
    """The first names of a list, for a message.

    >>> listed(["a", "b", "c", "d"], most=2)
    'a, b and 2 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def numbers(table: Table, name: str, origin: Origin = Origin()) -> Array:  # noqa: B008
    """A column as numbers, NaN where missing.

    Raises
    ------
    TableError
        Naming the first value that is no finite number.
    """
    column = _require(table, name)
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if is_text(column.type):
        values = _parse(texts(column), name, origin)
    elif is_number(column.type):
        values = _as_float(column)
    else:
        raise TableError(f"column {name!r} holds {column.type}, not numbers: convert it to numbers")
    if np.isinf(values).any():
        first = origin.row(int(np.flatnonzero(np.isinf(values))[0]))
        raise TableError(f"column {name!r} is infinite in {first}: correct it, or drop that row")
    return values


def labels(table: Table, name: str, origin: Origin = Origin()) -> np.ndarray[Any, np.dtype[np.str_]]:  # noqa: B008
    """A column of names, such as the owner of every row.

    Only an empty cell (in Parquet also null or NaN) is missing: NA may be a name.
    """
    values = _require(table, name).to_pylist()
    texts = ["" if value is None or value != value else str(value) for value in values]
    missing = [row for row, text in enumerate(texts) if not text.strip()]
    if missing:
        raise TableError(f"column {name!r} has no name in {origin.row(missing[0])}: every row needs one")
    return np.asarray(texts, dtype=np.str_)


def matrix(table: Table, schema: Schema, origin: Origin = Origin()) -> Array:  # noqa: B008
    """The features of the columns side by side, NaN where values are missing; shape (n, features)."""
    present = set(table.column_names)
    missing = [name for name in schema.names if name not in present]
    if missing:
        raise TableError(f"the table lacks the column(s) {', '.join(missing)}; it has {listed(table.column_names)}")

    def column_of(column: Column) -> Array:
        if column.levels is None:
            return numbers(table, column.name, origin)
        return codes(table, column)

    return schema.encode(column_of, table.num_rows)


def codes(table: Table, column: Column) -> Array:
    """Numbers of the levels of a category, NaN where a level is missing or unknown."""
    encoded = pc.dictionary_encode(texts(_require(table, column.name))).combine_chunks()
    known = np.append(codes_of(encoded.dictionary.to_pylist(), column), np.nan)
    values: Array = known[pc.fill_null(encoded.indices, len(known) - 1).to_numpy(zero_copy_only=False)]
    return values


def texts(column: Any) -> Any:
    """A column of any type as trimmed text, null where missing; whole numbers without a decimal point."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, BOOLEAN[1], BOOLEAN[0])
    trimmed = pc.utf8_trim_whitespace(pc.cast(column, pa.string()))
    return pc.if_else(pc.is_in(trimmed, value_set=pa.array(MISSING)), None, trimmed)


def _require(table: Table, name: str) -> Any:
    if table.schema.get_field_index(name) < 0:  # the list of all names is made anew whenever it is asked for
        raise TableError(f"the table has no column {name!r}; it has {listed(table.column_names)}")
    return table.column(name)


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow is text."""
    return any(is_kind(kind) for is_kind in _TEXT)


def is_number(kind: Any) -> bool:
    """Whether a type of Arrow is numbers, or booleans, which count as 0 and 1."""
    return any(is_kind(kind) for is_kind in _NUMBERS)


def with_point(known: Any, decimal: str) -> Any:
    """Texts of numbers, with a decimal point in place of another mark."""
    return known if decimal == "." else pc.replace_substring(known, decimal, ".", max_replacements=1)


def _parse(known: Any, name: str, origin: Origin) -> Array:
    pointed = with_point(known, origin.decimal)
    try:
        return _as_float(pointed)
    except pa.ArrowInvalid:
        raise TableError(_first_text(pointed, name, origin)) from None


def _as_float(column: Any) -> Array:
    floats = pc.cast(column, pa.float64(), safe=False)
    values: Array = pc.fill_null(floats, np.nan).to_numpy()
    return values


def _first_text(column: Any, name: str, origin: Origin) -> str:
    for row, value in enumerate(column.to_pylist()):
        try:
            pa.scalar(value, pa.string()).cast(pa.float64())
        except pa.ArrowInvalid:
            remedy = "Correct it, or clear the cell (a missing value; in the target, an unlabelled row)"
            if re.fullmatch(r"[-+]?\d+,\d+", value):
                remedy = "If its decimals have a comma: --decimal ,"
            return f"column {name!r} has text where a number is needed: {value!r} in {origin.row(row)}. {remedy}"
    raise AssertionError("a column that cannot be cast has a value that cannot")
