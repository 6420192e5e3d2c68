"""CSV files, plain or compressed by gzip. All columns are read as text, so that unused ones are copied unchanged."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv

from dsfr.io.columns import Table, TableError
from dsfr.io.formats.contract import TableFormat

GZIP_MAGIC = b"\x1f\x8b"
HEAD_BYTES = 2**16
"""Bytes that are checked before the file is parsed."""
DELIMITERS = (",", ";", "\t", "|")
SNIFFED_LINES = 100
_BUFFER_BYTES = 2**20
_BLOCK_BYTES = 2**23


class Csv(TableFormat):
    """Text in UTF-8 with a header and one row per line."""

    endings = (".csv", ".csv.gz", ".tsv", ".txt")

    def column_names(self, path: Path, delimiter: str) -> list[str]:
        """Names in the header."""
        with _open(path) as stream:
            check_text(path, stream.read(HEAD_BYTES))
        parsing = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        with _open(path) as stream:
            names: list[str] = pa.csv.open_csv(stream, parse_options=parsing).schema.names
        return names

    def read_batches(self, path: Path, names: Sequence[str], delimiter: str) -> Iterator[Table]:
        """The named columns, as text."""
        every = self.column_names(path, delimiter)
        with _open(path) as stream:
            reader = pa.csv.open_csv(
                stream,
                read_options=pa.csv.ReadOptions(block_size=_BLOCK_BYTES),
                # In a table of one column an empty line is a missing value.
                parse_options=pa.csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=len(every) > 1
                ),
                convert_options=pa.csv.ConvertOptions(
                    column_types=dict.fromkeys(every, pa.string()),
                    include_columns=list(names),
                    strings_can_be_null=False,
                    check_utf8=True,
                ),
            )
            for batch in reader:
                yield pa.Table.from_batches([batch])

    @contextmanager
    def writer(self, file: IO[bytes], path: Path, delimiter: str) -> Iterator[Callable[[Table], None]]:
        """Append rows as text; compressed if the path ends in ``.gz``."""
        compressed = path.suffix.lower() == ".gz"
        first = True
        with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if compressed else nullcontext(file) as out:

            def append(table: Table) -> None:
                nonlocal first
                out.write(to_csv(table, delimiter=delimiter, header=first).encode())
                first = False

            yield append


def to_csv(table: Table, *, delimiter: str = ",", header: bool = True) -> str:
    """The table as CSV text; numbers in the shortest form that reads back to the same bits."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    if header:
        writer.writerow(table.column_names)
    columns = [column.to_pylist() for column in table.columns]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def sniff(path: Path, delimiter: str | None = None) -> tuple[str, str]:
    """Separator and decimal mark that the first lines of a file look like.

    The separator is the one that occurs equally often in nearly all lines, most often if several do. Decimals have a
    comma if fields look so and none has a point; where commas separate fields, decimals have a point.
    """
    with _open(path) as stream:
        head = stream.read(HEAD_BYTES)
    check_text(path, head)
    lines = _decoded(path, head).lstrip("\ufeff\r\n").splitlines()
    complete = [line for line in (lines[:-1] if len(head) == HEAD_BYTES else lines) if line.strip()][:SNIFFED_LINES]
    lines = complete or lines[:1]
    if delimiter is None:
        delimiter = max(DELIMITERS, key=lambda mark: _separations(lines, mark))
        delimiter = delimiter if _separations(lines, delimiter) else DELIMITERS[0]
    fields = [field.strip() for row in csv.reader(lines[1:], delimiter=delimiter) for field in row]
    has_comma = any(re.fullmatch(r"[-+]?\d+,\d+", field) for field in fields)
    has_point = any(re.fullmatch(r"[-+]?\d*\.\d+", field) for field in fields)
    return delimiter, "," if delimiter != "," and has_comma and not has_point else "."


def _separations(lines: Sequence[str], delimiter: str) -> int:
    """How often a separator occurs in the header, if it occurs as often in nearly all lines; else 0."""
    counts = [len(row) - 1 for row in csv.reader(lines, delimiter=delimiter)]
    return counts[0] if counts.count(counts[0]) >= 0.9 * len(counts) else 0


def check_text(path: Path, head: bytes) -> None:
    """Check that the first bytes of a file are those of a text file.

    Raises
    ------
    TableError
        Saying what the file is instead, and what to do.
    """
    if not head.strip():
        raise TableError(f"{path} is empty")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise TableError(f"{path} is UTF-16 text: save it as UTF-8")
    if b"\0" in head:
        raise TableError(f"{path} is not a text file: give a CSV, gzipped CSV or Parquet file")
    _decoded(path, head)


def _decoded(path: Path, head: bytes) -> str:
    try:
        # An incremental decoder accepts that the last character may be cut off.
        return codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        position = f"byte {error.start + 1} is {head[error.start]:#x}"
        raise TableError(f"{path} is not UTF-8 text ({position}): save it as UTF-8") from None


def _open(path: Path) -> Any:
    with path.open("rb") as file:
        compressed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
    return pa.input_stream(str(path), compression="gzip" if compressed else None, buffer_size=_BUFFER_BYTES)


FORMAT = Csv()
