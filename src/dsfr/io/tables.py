"""Whole tables: read from files, written to files, and with columns of predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dsfr.core.compiled import worthwhile
from dsfr.io.columns import Origin, Table, TableError, is_text, matrix, texts, with_point
from dsfr.io.files import column_names, find_files, read_batches
from dsfr.io.formats import output_format
from dsfr.io.formats.csv import Csv
from dsfr.io.scanning import Scan
from dsfr.model.inputs import as_noise
from dsfr.model.model import Model
from dsfr.storage.atomic import replacing

NO_ROWS = "has a header and no rows"


def read_table(path: str | Path, *, delimiter: str = ",") -> Table:
    """The table of a file in any format; columns of CSV files are text.

    Raises
    ------
    TableError
        If the file is empty, damaged, of an unknown format, or has no rows.
    """
    (file,) = find_files(Path(path))
    batches = list(read_batches(file, column_names(file, delimiter), delimiter))
    if not sum(batch.num_rows for batch in batches):
        raise TableError(f"{path} {NO_ROWS}")
    return pa.concat_tables(batches)


def write_table(table: Table, path: str | Path, *, delimiter: str = ",") -> None:
    """Write a table in the format of the path's ending; an existing file is replaced whole or not at all."""
    write_tables([table], path, delimiter=delimiter)


def write_tables(tables: Iterable[Table], path: str | Path, *, delimiter: str = ",") -> int:
    """Write tables of the same columns one below the other into one file; the number of rows."""
    path, n_rows = Path(path), 0
    with replacing(path) as file, output_format(path).writer(file, path, delimiter) as append:
        for table in tables:
            append(table)
            n_rows += table.num_rows
    return n_rows


def as_written(tables: Iterable[Table], rows: Scan, path: str | Path) -> Iterable[Table]:
    """Tables of a scan as a file of another format has them.

    Text of a CSV file that is a number in every row is written as numbers, and numbers to a CSV file with its decimal
    mark.
    """
    if isinstance(output_format(Path(path)), Csv):
        return with_decimal_mark(tables, rows.decimal)
    kinds = number_types(rows)
    return (_with_types(table, kinds, rows.decimal) for table in tables)


def with_decimal_mark(tables: Iterable[Table], decimal: str) -> Iterable[Table]:
    """Tables whose fractions are texts with a decimal mark other than the point."""
    return tables if decimal == "." else map(_with_comma, tables)


def _with_comma(table: Table) -> Table:
    for j, name in enumerate(table.column_names):
        if pa.types.is_floating(table.schema.field(j).type):
            texts = [repr(value).replace(".", ",") for value in table.column(j).to_pylist()]
            table = table.set_column(j, name, pa.array(texts))
    return table


def number_types(rows: Scan) -> dict[str, Any]:
    """Types of the text columns of a scan whose every value is a number, in one pass; whole numbers stay whole.

    A number with a leading zero, such as a code, is text.
    """
    kinds: dict[str, Any] = {}
    for number, (_, table) in enumerate(rows.tables(rows.column_names)):
        texts_of = [name for name in table.column_names if is_text(table.schema.field(name).type)]
        candidates = dict.fromkeys(texts_of, pa.int64()) if number == 0 else kinds
        kinds = {}
        for name, kind in candidates.items():
            found = _number_type(table.column(name), kind, rows.decimal)
            if found is not None:
                kinds[name] = found
    return kinds


def _number_type(column: Any, kind: Any, decimal: str) -> Any:
    """The first of a type and double precision that a column of text can have; None if it is text."""
    known = with_point(texts(column), decimal)
    if pc.any(pc.match_substring_regex(known, r"^[-+]?0\d")).as_py():
        return None
    for tried in dict.fromkeys((kind, pa.float64())):
        try:
            pc.cast(known, tried)
        except pa.ArrowInvalid:
            continue
        return tried
    return None


def _with_types(table: Table, kinds: Mapping[str, Any], decimal: str) -> Table:
    for name, kind in kinds.items():
        values = pc.cast(with_point(texts(table.column(name)), decimal), kind)
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def predicted_tables(
    rows: Scan, model: Model, column: str, coverage: float | None = None, X_std: Any = None
) -> Iterator[Table]:
    """A scan's tables, batch by batch, with a model's predictions as last column, or also their intervals.

    ``X_std`` is the noise of the inputs, as in `Model.predict`.

    Raises
    ------
    TableError
        If there are no rows, a feature is missing, or a column of that name exists.
    """
    n_rows = rows.count_rows()
    if n_rows == 0:
        raise TableError(f"{rows.files[0]} {NO_ROWS}")
    for origin, table in rows.tables(rows.column_names):
        predicted = with_predictions(table, model, column, origin, X_std, fast=worthwhile(n_rows))
        yield predicted if coverage is None else with_interval(predicted, model, column, coverage, origin, X_std)


def with_predictions(
    table: Table,
    model: Model,
    column: str,
    origin: Origin = Origin(),  # noqa: B008
    X_std: Any = None,
    *,
    fast: bool | None = None,
) -> Table:
    """The table with a model's predictions as last column; features are found by name, the order of rows is kept."""
    if column in table.column_names:
        raise TableError(f"the table has a column {column!r} already: choose another name with --column")
    rows = matrix(table, model.columns, origin)
    predictions = model.predict_rows(rows, as_noise(X_std, rows, model.feature_names), fast=fast)
    return table.append_column(column, pa.array(predictions))


def with_interval(
    table: Table,
    model: Model,
    column: str,
    coverage: float,
    origin: Origin = Origin(),  # noqa: B008
    X_std: Any = None,
) -> Table:
    """The table with the ends of an interval about its column of predictions, and whether rows are in the domain."""
    names = (f"{column}_low", f"{column}_high", f"{column}_in_domain")
    taken = sorted(set(names) & set(table.column_names))
    if taken:
        raise TableError(f"the table has a column {taken[0]!r} already: choose another name with --column")
    rows = matrix(table, model.columns, origin)
    ends = model.mixture.interval(rows, coverage, as_noise(X_std, rows, model.feature_names))
    for name, values in zip(names, (*ends, model.mixture.in_domain(rows)), strict=True):
        table = table.append_column(name, pa.array(values))
    return table
