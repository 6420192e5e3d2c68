"""Rows of arrays in ``.npy`` files, read without mapping the file into memory.

The system ends a process that reads a mapped file which somebody has made shorter; plain reading is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array


def read_array_rows(path: Path, array: npt.NDArray[Any], start: int, stop: int, columns: Sequence[int]) -> Array:
    """Some rows and columns of a file that holds ``array``, in double precision.

    Raises
    ------
    ValueError
        If the file has become shorter than its header says.
    """
    stop = min(stop, len(array))
    with path.open("rb") as file:
        if array.flags.c_contiguous:
            row = array.strides[0]
            data = _read(file, array, start * row, (stop - start) * array.shape[1])
            return np.asarray(data.reshape(stop - start, array.shape[1])[:, columns], dtype=np.float64)
        places = [column * array.strides[1] + start * array.itemsize for column in columns]
        return np.column_stack([_read(file, array, place, stop - start) for place in places]).astype(np.float64)


def _read(file: IO[bytes], array: npt.NDArray[Any], place: int, count: int) -> npt.NDArray[Any]:
    file.seek(getattr(array, "offset", 0) + place)
    data = np.fromfile(file, array.dtype, count)
    if len(data) < count:
        raise ValueError("it is shorter than its header says")
    return data
