"""Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet

from dsfr.io.columns import Table
from dsfr.io.formats.contract import BATCH_ROWS, TableFormat

_BUFFER_BYTES = 2**20


class Parquet(TableFormat):
    """Apache Parquet."""

    endings = (".parquet", ".pq")
    magic = b"PAR1"

    def column_names(self, path: Path, delimiter: str) -> list[str]:
        """Names in the file's schema."""
        return list(pa.parquet.read_schema(path).names)

    def read_batches(self, path: Path, names: Sequence[str], delimiter: str) -> Iterator[Table]:
        """The named columns, row group by row group."""
        with pa.parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            for batch in file.iter_batches(BATCH_ROWS, columns=list(names)):
                yield pa.Table.from_batches([batch]).select(list(names))

    def count_rows(self, path: Path, delimiter: str) -> int:
        """Number of rows in the file's metadata."""
        return int(pa.parquet.read_metadata(path).num_rows)

    @contextmanager
    def writer(self, file: IO[bytes], path: Path, delimiter: str) -> Iterator[Callable[[Table], None]]:
        """Append tables as row groups; the first decides the types of the columns."""
        with ExitStack() as stack:
            writers: list[Any] = []

            def append(table: Table) -> None:
                if not writers:
                    # Arrow would close the file, which must still be synchronised with the disk.
                    sink = stack.enter_context(pa.PythonFile(_Unclosed(file), mode="w"))
                    writers.append(stack.enter_context(pa.parquet.ParquetWriter(sink, table.schema)))
                writers[0].write_table(table)

            yield append


class _Unclosed:
    """A file that Arrow can write to, but not close."""

    closed = False

    def __init__(self, file: IO[bytes]) -> None:
        self.write, self.flush, self.tell = file.write, file.flush, file.tell

    def close(self) -> None:
        """Leave the file open."""


FORMAT = Parquet()
