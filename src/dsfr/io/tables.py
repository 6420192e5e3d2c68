"""Whole tables: read from files, written to files, and with columns of predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from dsfr.core.compiled import worthwhile
from dsfr.io.columns import Origin, Table, TableError, matrix
from dsfr.io.files import column_names, find_files, read_batches
from dsfr.io.formats import output_format
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
    rows = matrix(table, model.feature_names, origin)
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
    rows = matrix(table, model.feature_names, origin)
    ends = model.mixture.interval(rows, coverage, as_noise(X_std, rows, model.feature_names))
    for name, values in zip(names, (*ends, model.mixture.in_domain(rows)), strict=True):
        table = table.append_column(name, pa.array(values))
    return table
