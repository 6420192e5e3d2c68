"""Tables in files: CSV (plain or gzip) and Parquet in, the same out, errors that name column, row and remedy."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dsfr.core.compiled import worthwhile
from dsfr.io import Scan
from dsfr.io.columns import Place, Table, TableError, listed, matrix
from dsfr.io.formats import GZIP_MAGIC, HEAD_BYTES, PARQUET_MAGIC, check_text, has_parquet_ending, told_errors
from dsfr.model.model import Model
from dsfr.storage.atomic import replacing


def read_table(path: str | Path, *, delimiter: str = ",") -> Table:
    """Table of a CSV, gzipped CSV or Parquet file, told apart by their contents.

    CSV columns stay text, so that what is passed on is passed on unchanged.

    Raises
    ------
    TableError
        If the file is empty, damaged, or of another kind.
    """
    path = Path(path)
    data = path.read_bytes()
    with told_errors(path):
        if data.startswith(PARQUET_MAGIC) or has_parquet_ending(path):
            table = pa.parquet.read_table(pa.BufferReader(data))
        else:
            content = gzip.decompress(data) if data.startswith(GZIP_MAGIC) else data
            table = _read_csv(path, content, delimiter)
    repeated = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if repeated:
        raise TableError(f"{path} has several columns named {listed(repeated)}: rename them")
    if table.num_rows == 0:
        raise TableError(f"{path} has a header and no rows")
    return table


def check_output_kind(path: str | Path) -> None:
    """Check that the ending of a path says what to write there."""
    path = Path(path)
    known = (
        has_parquet_ending(path) or path.name.lower().endswith((".csv", ".csv.gz", ".tsv", ".txt")) or not path.suffix
    )
    if not known:
        raise TableError(f"cannot write {path.name}: its ending must be .csv, .csv.gz or .parquet")


def write_table(table: Table, path: str | Path, *, delimiter: str = ",") -> None:
    """Write a table as CSV, CSV.gz or Parquet, after the ending of the path; whole or not at all."""
    write_tables([table], path, delimiter=delimiter)


def write_tables(tables: Iterable[Table], path: str | Path, *, delimiter: str = ",") -> int:
    """Write tables of the same columns one below the other into one file; the number of rows."""
    path, n_rows = Path(path), 0
    with replacing(path) as file, _appending(file, path, delimiter) as append:
        for table in tables:
            append(table)
            n_rows += table.num_rows
    return n_rows


def to_csv(table: Table, *, delimiter: str = ",", header: bool = True) -> str:
    """The table as CSV text; numbers in the shortest form that reads back to the same bits."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(table.column_names)
    columns = [column.to_pylist() for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


@contextmanager
def _appending(file: IO[bytes], path: Path, delimiter: str) -> Iterator[Callable[[Table], None]]:
    """A function that adds a table to a file of the kind that its path says."""
    if has_parquet_ending(path):
        with ExitStack() as stack:
            writers: list[Any] = []

            def append(table: Table) -> None:
                if not writers:
                    # Arrow would close the file, which is still to be brought to the disk.
                    sink = stack.enter_context(pa.PythonFile(_Unclosed(file), mode="w"))
                    writers.append(stack.enter_context(pa.parquet.ParquetWriter(sink, table.schema)))
                writers[0].write_table(table)

            yield append
        return
    first = [True]
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if path.suffix.lower() == ".gz" else nullcontext(file) as out:

        def append_csv(table: Table) -> None:
            out.write(to_csv(table, delimiter=delimiter, header=first[0]).encode())
            first[0] = False

        yield append_csv


class _Unclosed:
    """A file that others may write to, but not close."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write, self.flush, self.tell = file.write, file.flush, file.tell

    def close(self) -> None:
        """Leave the file open."""


def predicted_tables(rows: Scan, model: Model, column: str) -> Iterator[Table]:
    """A scan's tables, batch by batch, with a model's predictions as a last column."""
    fast = worthwhile(rows.count_rows())
    for place, table in rows.tables(rows.column_names):
        yield with_predictions(table, model, column, place, fast=fast)


def with_predictions(
    table: Table,
    model: Model,
    column: str,
    place: Place = Place(),  # noqa: B008
    *,
    fast: bool | None = None,
) -> Table:
    """The table with a model's predictions as a last column; features are found by name, row order is kept."""
    if column in table.column_names:
        raise TableError(f"the table has a column {column!r} already: choose another name with --column")
    predictions = model.predict_rows(matrix(table, model.feature_names, place), fast=fast)
    return table.append_column(column, pa.array(predictions))


def with_interval(table: Table, column: str, half_width: float) -> Table:
    """The table with the ends of an interval about its column of predictions as two last columns."""
    ends = (f"{column}_low", f"{column}_high")
    if set(ends) & set(table.column_names):
        raise TableError(
            f"the table has a column {ends[0]!r} or {ends[1]!r} already: choose another name with --column"
        )
    middle = table.column(column).to_numpy()
    low, high = pa.array(middle - half_width), pa.array(middle + half_width)
    return table.append_column(ends[0], low).append_column(ends[1], high)


def _read_csv(path: Path, content: bytes, delimiter: str) -> Table:
    check_text(path, content[:HEAD_BYTES], delimiter)
    # Arrow itself says what the columns are called: only then does it take every one of them as text.
    parsing = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    names = pa.csv.open_csv(pa.BufferReader(content), parse_options=parsing).schema.names
    if len(names) == 1:
        # In a table of one column an empty line is a missing value, not nothing.
        parsing = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=False)
    return pa.csv.read_csv(
        pa.BufferReader(content),
        parse_options=parsing,
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False, check_utf8=True
        ),
    )
