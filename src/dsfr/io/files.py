"""Files of tables: finding them, and reading columns, batches and row counts in any format."""

from __future__ import annotations

import atexit
import glob
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from dsfr.core.explain.words import one_line
from dsfr.io.columns import Table, TableError, listed, repeated_names
from dsfr.io.formats import endings, format_of
from dsfr.io.formats.csv import Csv, sniff
from dsfr.io.stamp import unchanged

Paths: TypeAlias = "str | Path | Sequence[str | Path]"


def find_files(paths: Paths) -> list[Path]:
    """Files of a path, folder (with all its subfolders), pattern, or several of these; sorted within each.

    Raises
    ------
    TableError
        If there are none.
    """
    if not isinstance(paths, (str, Path)):
        return [file for part in paths for file in find_files(part)]
    path = Path(paths)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if _is_table(file, path))
        if not files:
            raise TableError(f"the folder {path} has no file of rows: their names end in {', '.join(endings())}")
        return files
    if path.exists():
        return [path if path.is_file() else _copy_of_pipe(path)]
    files = [Path(name) for name in sorted(glob.glob(str(paths), recursive=True))]
    if not files:
        raise TableError(f"there is no file {paths}, and no file matches it as a pattern")
    return [file for found in files for file in (find_files(found) if found.is_dir() else [found])]


def column_names(path: Path, delimiter: str) -> list[str]:
    """Names of a file's columns.

    Raises
    ------
    TableError
        If the file is empty, damaged, of an unknown format, or has two columns of one name.
    """
    with reading_errors(path):
        names = format_of(path).column_names(path, delimiter)
    repeated = repeated_names(names)
    if repeated:
        raise TableError(f"{path} has several columns named {listed(repeated)}: rename them")
    return names


def dialect_of(path: Path, delimiter: str | None, decimal: str | None) -> tuple[str, str]:
    """Separator and decimal mark of a file: what is given, and else what its first lines look like.

    Raises
    ------
    TableError
        If the file is no text, or the decimal mark is neither a point nor a comma.
    """
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal={decimal!r} must be '.' or ','")
    guessed = (",", ".")
    if (delimiter is None or decimal is None) and path.is_file() and isinstance(format_of(path), Csv):
        with reading_errors(path):
            guessed = sniff(path, delimiter)
    return delimiter or guessed[0], decimal or guessed[1]


def read_batches(path: Path, names: Sequence[str], delimiter: str) -> Iterator[Table]:
    """The named columns of a file, which must exist, in batches; columns of CSV files are text."""
    with unchanged(path), reading_errors(path):
        yield from format_of(path).read_batches(path, names, delimiter)


def count_rows(path: Path, delimiter: str) -> int:
    """Number of rows of a file; read through if the format does not store the number."""
    with reading_errors(path):
        return format_of(path).count_rows(path, delimiter)


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn errors of readers into a `TableError` that names the file."""
    try:
        yield
    except TableError:
        raise
    except (pa.ArrowException, OSError, EOFError, ValueError, zlib.error) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{path} cannot be read: {one_line(first[:200])}") from None


@cache
def _copy_of_pipe(path: Path) -> Path:
    """A temporary copy of a pipe, which can be read only once; deleted when the process ends."""
    with path.open("rb") as pipe, tempfile.NamedTemporaryFile(prefix="dsfr-", delete=False) as copy:
        atexit.register(Path(copy.name).unlink)
        shutil.copyfileobj(pipe, copy)
    return Path(copy.name)


def _is_table(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return path.is_file() and not hidden and path.name.lower().endswith(endings())
