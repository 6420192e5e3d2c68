"""Rows of all agents in one temporary file without a name, read back agent by agent in batches.

Reading a table means decoding, checking and sorting rows out by owner. Training passes over the rows a hundred times,
so that is done once; the passes then read plain numbers. The file has no name: nothing of it is left behind, however
the process ends.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array, with_dtype
from dsfr.io.formats.contract import BATCH_ROWS
from dsfr.training.rows import Batch


class Spool:
    """A temporary file of numbers that several may read."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._lock = Lock()
        self._end = 0

    def append(self, array: npt.NDArray[Any]) -> int:
        """Write an array to the end; where it begins.

        Raises
        ------
        OSError
            If the disk is full, naming the folder of temporary files and how to choose another.
        """
        data, start = np.ascontiguousarray(array).data.cast("B"), self._end
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise OSError(
                f"{error.strerror}: rows are kept in a temporary file in {Path(tempfile.gettempdir())} while training "
                f"({self._end / 1e9:.1f} GB so far); set TMPDIR to a folder with more room"
            ) from None
        self._end += array.nbytes
        return start

    def read(self, start: int, out: npt.NDArray[Any]) -> None:
        """Fill a contiguous array with what was written at ``start``.

        Raises
        ------
        OSError
            If the file has become shorter than what was written.
        """
        data = out.data.cast("B")
        with self._lock:
            self._file.seek(start)
            while data:
                n_read = self._file.readinto(data)  # type: ignore[attr-defined]
                if not n_read:
                    raise OSError(
                        f"the temporary file of rows in {Path(tempfile.gettempdir())} ends {len(data)} bytes early: it "
                        "was cut short while training. Train again; set TMPDIR to a folder on a disk that works"
                    )
                data = data[n_read:]
            self._file.seek(self._end)


@dataclass(slots=True)
class SpooledRows:
    """The rows of one agent in a spool."""

    spool: Spool
    n_features: int
    dtype: npt.DTypeLike = np.float64
    """Of the features; targets are always in double precision."""
    n_samples: int = 0
    n_labeled: int = 0
    _parts: list[tuple[int, int, int]] = field(default_factory=list)
    """Number of rows, where their features begin, and where their targets do."""

    def append(self, X: Array, y: Array) -> None:
        """Add rows."""
        if len(y):
            self._parts.append((len(y), self.spool.append(with_dtype(X, self.dtype)), self.spool.append(y)))
            self.n_samples += len(y)
            self.n_labeled += int(np.count_nonzero(~np.isnan(y)))

    def batches(self) -> Iterator[Batch]:
        """One pass over the rows, in batches of `BATCH_ROWS`."""
        parts = iter(self._parts)
        length, at_x, at_y = next(parts, (0, 0, 0))
        for start in range(0, self.n_samples, BATCH_ROWS):
            n_rows, filled = min(BATCH_ROWS, self.n_samples - start), 0
            X, y = np.empty((n_rows, self.n_features), self.dtype), np.empty(n_rows)
            while filled < n_rows:
                if length == 0:
                    length, at_x, at_y = next(parts)
                taken = min(length, n_rows - filled)
                self.spool.read(at_x, X[filled : filled + taken])
                self.spool.read(at_y, y[filled : filled + taken])
                filled, length = filled + taken, length - taken
                at_x += taken * self.n_features * X.itemsize
                at_y += taken * y.itemsize
            yield X, y
