"""Tables in files: CSV (plain or gzip) and Parquet in, the same out, errors that name column, row and remedy."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from dsfr.core.arrays import Array
from dsfr.files import replacing
from dsfr.model import Model

Table: TypeAlias = Any
"""A `pyarrow.Table`; pyarrow has no type hints of its own."""

_HEADER_BYTES = 1 << 20
_MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A")


class TableError(ValueError):
    """A file that cannot be used as a table, or a column that cannot be used as it should."""


def read_table(path: str | Path, *, delimiter: str = ",") -> Table:
    """Table of a CSV, CSV.gz or Parquet file. CSV columns stay text, so that what is passed on is passed on unchanged.

    Raises
    ------
    TableError
        If the file is empty, damaged, or of another kind.
    """
    path = Path(path)
    try:
        table = pa.parquet.read_table(path) if _is_parquet(path) else _read_csv(path, delimiter)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise TableError(f"{path} cannot be read: {error}") from None
    repeated = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if repeated:
        raise TableError(f"{path} has several columns named {', '.join(repeated)}: rename them")
    if table.num_rows == 0:
        raise TableError(f"{path} has a header and no rows")
    return table


def numbers(table: Table, name: str, *, allow_missing: bool = False) -> Array:
    """A column as numbers, NaN where missing.

    Raises
    ------
    TableError
        Naming the first value that is no finite number, or the number of missing ones where none may be.
    """
    column = _require(table, name)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        values = _parse(column, name)
    elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type):
        values = _as_float(column)
    else:
        raise TableError(f"column {name!r} holds {column.type}, not numbers: convert it, or leave it out with --ignore")
    if np.isinf(values).any():
        first = int(np.flatnonzero(np.isinf(values))[0]) + 1
        raise TableError(f"column {name!r} is infinite in row {first}: correct it, or drop that row")
    missing = np.isnan(values)
    if missing.any() and not allow_missing:
        first = int(np.flatnonzero(missing)[0]) + 1
        raise TableError(
            f"column {name!r} has {missing.sum()} missing value(s), the first in row {first}: fill them in, drop those "
            "rows, or leave the column out with --ignore"
        )
    return values


def labels(table: Table, name: str) -> np.ndarray[Any, np.dtype[np.str_]]:
    """A column as text that names something, such as the agent of every row."""
    column = _require(table, name)
    texts = ["" if value is None else str(value) for value in column.to_pylist()]
    missing = [row for row, text in enumerate(texts, start=1) if text.strip() in _MISSING]
    if missing:
        raise TableError(f"column {name!r} has no name in row {missing[0]}: every row needs one")
    return np.asarray(texts, dtype=np.str_)


def matrix(table: Table, names: Sequence[str]) -> Array:
    """Columns side by side; shape (n, number of names)."""
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise TableError(f"the table lacks the column(s) {', '.join(missing)}; it has {', '.join(table.column_names)}")
    return np.column_stack([numbers(table, name) for name in names])


def write_table(table: Table, path: str | Path) -> None:
    """Write a table as CSV, CSV.gz or Parquet, after the ending of the path; whole or not at all."""
    path = Path(path)
    with replacing(path) as file:
        if _is_parquet(path):
            pa.parquet.write_table(table, file)
        elif path.suffix == ".gz":
            with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as stream:
                stream.write(to_csv(table).encode())
        else:
            file.write(to_csv(table).encode())


def to_csv(table: Table) -> str:
    """The table as CSV text; numbers in the shortest form that reads back to the same bits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    columns = [column.to_pylist() for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def with_predictions(table: Table, model: Model, column: str) -> Table:
    """The table with a model's predictions as a last column; features are found by name, row order is kept."""
    if column in table.column_names:
        raise TableError(f"the table has a column {column!r} already: choose another name with --column")
    predictions = model.predictor.predict(matrix(table, model.feature_names))
    return table.append_column(column, pa.array(predictions))


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _read_csv(path: Path, delimiter: str) -> Table:
    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(_HEADER_BYTES)
    if not head.strip():
        raise TableError(f"{path} is empty")
    first_line = head.decode("utf-8-sig", errors="replace").splitlines()
    names = next(csv.reader(first_line, delimiter=delimiter))
    for other in (";", "\t"):
        if len(names) == 1 and other in names[0] and other != delimiter:
            raise TableError(f"{path} looks separated by {other!r}, not by {delimiter!r}: pass --delimiter {other!r}")
    return pa.csv.read_csv(
        path,
        parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=True
        ),
    )


def _require(table: Table, name: str) -> Any:
    if name not in table.column_names:
        raise TableError(f"the table has no column {name!r}; it has {', '.join(table.column_names)}")
    return table.column(name)


def _parse(column: Any, name: str) -> Array:
    trimmed = pc.utf8_trim_whitespace(column)
    known = pc.if_else(pc.is_in(trimmed, value_set=pa.array(_MISSING)), None, trimmed)
    try:
        return _as_float(known)
    except pa.ArrowInvalid:
        raise TableError(_first_text(known, name)) from None


def _as_float(column: Any) -> Array:
    floats = pc.cast(column, pa.float64())
    values: Array = pc.fill_null(floats, np.nan).to_numpy()
    return values


def _first_text(column: Any, name: str) -> str:
    for row, value in enumerate(column.to_pylist(), start=1):
        try:
            float(value if value is not None else "nan")
        except ValueError:
            return (
                f"column {name!r} has text where a number is needed: {value!r} in row {row}. Correct it, encode the "
                "column as numbers, or leave it out with --ignore"
            )
    return f"column {name!r} has values that are not numbers"
