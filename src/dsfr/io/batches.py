"""Files of rows, read a batch at a time: Parquet, CSV (plain or gzip) and ``.npy``."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from dsfr.io.columns import Table, TableError, listed
from dsfr.io.formats import (
    GZIP_MAGIC,
    HEAD_BYTES,
    PARQUET_ENDINGS,
    PARQUET_MAGIC,
    check_text,
    has_parquet_ending,
    told_errors,
)

Paths: TypeAlias = "str | Path | Sequence[str | Path]"

BATCH_ROWS = 2**16
"""Rows read at once, a whole number of partial sums."""
_BUFFER_BYTES = 2**20
_CSV_BYTES = 2**23
ENDINGS = (*PARQUET_ENDINGS, ".csv", ".csv.gz", ".tsv", ".txt", ".npy")


def find_files(source: Paths) -> list[Path]:
    """Files of a path, folder (all below it), pattern, or several of these; sorted within each.

    Raises
    ------
    TableError
        If there are none.
    """
    if not isinstance(source, (str, Path)):
        return [file for part in source for file in find_files(part)]
    path = Path(source)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if _is_data(file, path))
        if not files:
            raise TableError(f"the folder {path} has no file of rows: their names end in {', '.join(ENDINGS)}")
        return files
    if path.exists():
        return [path]
    files = [Path(name) for name in sorted(glob.glob(str(source), recursive=True))]
    if not files:
        raise TableError(f"there is no file {source}, and no file matches it as a pattern")
    return [file for found in files for file in (find_files(found) if found.is_dir() else [found])]


def column_names(path: Path, delimiter: str) -> list[str]:
    """Names of a file's columns; those of an array are numbered from ``x0``.

    Raises
    ------
    TableError
        If the file is empty, damaged, of another kind, or has two columns of one name.
    """
    with told_errors(path):
        if _is_npy(path):
            names = [f"x{j}" for j in range(_open_array(path).shape[1])]
        elif _is_parquet(path):
            names = list(pa.parquet.read_schema(path).names)
        else:
            names = _csv_names(path, delimiter)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise TableError(f"{path} has several columns named {listed(repeated)}: rename them")
    return names


def read_batches(path: Path, names: Sequence[str], delimiter: str) -> Iterator[Table]:
    """The named columns (which must exist) of a file, in order, some rows at a time; text stays text in CSV files."""
    with told_errors(path):
        if _is_npy(path):
            yield from _npy_batches(path, names)
        elif _is_parquet(path):
            with pa.parquet.ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=list(names)):
                    yield pa.Table.from_batches([batch]).select(list(names))
        else:
            yield from _csv_batches(path, names, delimiter)


def row_count(path: Path, delimiter: str) -> int:
    """Number of rows: arrays and Parquet files tell, CSV files are read through."""
    with told_errors(path):
        if _is_npy(path):
            return len(_open_array(path))
        if _is_parquet(path):
            return int(pa.parquet.read_metadata(path).num_rows)
    first = column_names(path, delimiter)[:1]
    return sum(table.num_rows for table in read_batches(path, first, delimiter))


def total_bytes(files: Sequence[Path]) -> int:
    """Size of all files."""
    return sum(file.stat().st_size for file in files)


def _is_data(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    return path.is_file() and not hidden and path.name.lower().endswith(ENDINGS)


def _is_npy(path: Path) -> bool:
    return path.suffix.lower() == ".npy"


def _is_parquet(path: Path) -> bool:
    return has_parquet_ending(path) or _starts_with(path, PARQUET_MAGIC)


def _open_array(path: Path) -> Any:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise TableError(f"{path} holds {array.dtype} of shape {array.shape}: rows of numbers have two dimensions")
    return array


def _npy_batches(path: Path, names: Sequence[str]) -> Iterator[Table]:
    columns = [int(name[1:]) for name in names]
    for start in range(0, len(_open_array(path)), BATCH_ROWS):
        # Mapped anew for every batch: pages that were read do not stay in the process's memory.
        rows = np.array(_open_array(path)[start : start + BATCH_ROWS, columns], dtype=np.float64)
        yield pa.table(dict(zip(names, rows.T, strict=True)))


def _csv_stream(path: Path) -> Any:
    return pa.input_stream(
        str(path), compression="gzip" if _starts_with(path, GZIP_MAGIC) else None, buffer_size=_BUFFER_BYTES
    )


def _starts_with(path: Path, magic: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(magic)) == magic


def _csv_names(path: Path, delimiter: str) -> list[str]:
    with _csv_stream(path) as stream:
        check_text(path, stream.read(HEAD_BYTES), delimiter)
    parsing = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    with _csv_stream(path) as stream:
        names: list[str] = pa.csv.open_csv(stream, parse_options=parsing).schema.names
    return names


def _csv_batches(path: Path, names: Sequence[str], delimiter: str) -> Iterator[Table]:
    every = _csv_names(path, delimiter)
    with _csv_stream(path) as stream:
        reader = pa.csv.open_csv(
            stream,
            read_options=pa.csv.ReadOptions(block_size=_CSV_BYTES),
            # In a table of one column an empty line is a missing value, not nothing.
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
