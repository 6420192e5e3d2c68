"""Arrays of numpy in ``.npy`` files: one column per column of the array, named ``x0``, ``x1`` and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from dsfr.io.array_rows import read_array_rows
from dsfr.io.columns import Table, TableError, numbers
from dsfr.io.formats.contract import BATCH_ROWS, TableFormat


class Npy(TableFormat):
    """A numpy array of numbers with one or two dimensions."""

    endings = (".npy",)
    magic = b"\x93NUMPY"

    def column_names(self, path: Path, delimiter: str) -> list[str]:
        """The numbers of the columns, after an x."""
        return [f"x{j}" for j in range(_open_array(path).shape[1])]

    def read_batches(self, path: Path, names: Sequence[str], delimiter: str) -> Iterator[Table]:
        """Columns as double precision numbers."""
        columns = [int(name[1:]) for name in names]
        for start in range(0, len(_open_array(path)), BATCH_ROWS):
            rows = read_array_rows(path, _open_array(path), start, start + BATCH_ROWS, columns)
            yield pa.table(dict(zip(names, rows.T, strict=True)))

    def count_rows(self, path: Path, delimiter: str) -> int:
        """Number of rows in the header."""
        return len(_open_array(path))

    @contextmanager
    def writer(self, file: IO[bytes], path: Path, delimiter: str) -> Iterator[Callable[[Table], None]]:
        """Append rows of numbers, NaN where missing; the names of the columns are not kept."""
        shape = [0, 0]

        def append(table: Table) -> None:
            rows = np.column_stack([numbers(table, name) for name in table.column_names])
            if not shape[0]:
                shape[1] = rows.shape[1]
                _write_header(file, shape)
            file.write(rows.tobytes())
            shape[0] += len(rows)

        yield append
        # numpy reserves room in the header for a larger number of rows, so that it can be written again in place.
        file.seek(0)
        _write_header(file, shape)
        file.seek(0, 2)


def _write_header(file: IO[bytes], shape: Sequence[int]) -> None:
    header = {"descr": "<f8", "fortran_order": False, "shape": tuple(shape)}
    np.lib.format.write_array_header_1_0(file, header)


def _open_array(path: Path) -> Any:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise TableError(f"{path} holds {array.dtype} of shape {array.shape}: rows of numbers have two dimensions")
    return array


FORMAT = Npy()
