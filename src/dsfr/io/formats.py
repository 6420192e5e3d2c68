"""Kinds of files of rows, told by their endings and first bytes; errors of reading them name the file and a remedy."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from dsfr.core.explain.words import one_line
from dsfr.io.columns import TableError

PARQUET_ENDINGS = (".parquet", ".pq")
PARQUET_MAGIC, GZIP_MAGIC = b"PAR1", b"\x1f\x8b"
HEAD_BYTES = 4096
"""Bytes that are looked at to tell what a file is."""


def has_parquet_ending(path: Path) -> bool:
    """Whether a path is called as Parquet files are."""
    return path.suffix.lower() in PARQUET_ENDINGS


def check_text(path: Path, head: bytes, delimiter: str) -> None:
    """Check that the first bytes of a file are those of a CSV file with this delimiter.

    Raises
    ------
    TableError
        Saying what it is instead, and what to do.
    """
    if not head.strip():
        raise TableError(f"{path} is empty")
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise TableError(f"{path} is UTF-16 text: save it as UTF-8")
    if b"\0" in head:
        raise TableError(f"{path} is not a text file: give a CSV, gzipped CSV or Parquet file")
    header = _decoded(path, head).lstrip("\ufeff\r\n").partition("\n")[0]
    for other in (";", "\t"):
        # Before anybody parses rows: with decimal commas these would have more fields than the header.
        if delimiter not in header and other in header:
            shown = "\\t" if other == "\t" else other
            raise TableError(f"{path} looks separated by '{shown}', not by '{delimiter}': pass --delimiter '{shown}'")


@contextmanager
def told_errors(path: Path) -> Iterator[None]:
    """Turns errors of readers into messages that name the file."""
    try:
        yield
    except TableError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError, zlib.error) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{path} cannot be read: {one_line(first[:200])}") from None


def _decoded(path: Path, head: bytes) -> str:
    try:
        # The last letter may be cut off in its middle.
        return codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        place = f"byte {error.start + 1} is {head[error.start]:#x}"
        raise TableError(f"{path} is not UTF-8 text ({place}): save it as UTF-8") from None
