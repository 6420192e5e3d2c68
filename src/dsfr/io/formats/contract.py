"""What a file format must provide."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, ClassVar

from dsfr.io.columns import Table, TableError

BATCH_ROWS = 2**16
"""Rows per batch: a multiple of the rows of a partial sum, so that batches do not change results."""


class TableFormat(ABC):
    """A file format of tables: reading in batches, and writing if the format can be written.

    ``delimiter`` is the separator of text formats; other formats ignore it. Errors of readers (`ValueError`, `OSError`,
    `pyarrow.ArrowException`) need not name the file: callers add its name.
    """

    endings: ClassVar[tuple[str, ...]]
    """Endings of file names, in lower case."""
    magic: ClassVar[bytes] = b""
    """First bytes of every file of the format; empty if they differ."""

    @abstractmethod
    def column_names(self, path: Path, delimiter: str) -> list[str]:
        """Names of the columns, in order."""

    @abstractmethod
    def read_batches(self, path: Path, names: Sequence[str], delimiter: str) -> Iterator[Table]:
        """The named columns, which exist, in that order, in batches of bounded size."""

    def count_rows(self, path: Path, delimiter: str) -> int:
        """Number of rows; reads one column, unless the format stores the number."""
        first = self.column_names(path, delimiter)[:1]
        return sum(table.num_rows for table in self.read_batches(path, first, delimiter))

    def writer(self, file: IO[bytes], path: Path, delimiter: str) -> AbstractContextManager[Callable[[Table], None]]:
        """A context whose value appends a table to ``file``, which will be called ``path``; all have the same columns.

        Raises
        ------
        TableError
            If the format cannot be written.
        """
        raise TableError(f"cannot write {path.name}: files of this format are only read; write .csv or .parquet")
