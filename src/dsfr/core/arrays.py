"""The array type of the core, and how a long table is walked through."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

BLOCK_ROWS = 2048
"""Rows worked on at once: temporaries of a block stay in the processor's cache, whatever the table's length."""
CHUNK_ROWS = 2 * BLOCK_ROWS
"""Rows of one partial sum. Sums are added chunk by chunk in the rows' order, so that neither the number of threads nor
the size of the batches in which rows arrive has any effect on a result."""

SUM_ROWS = 4 * CHUNK_ROWS
"""Rows of one partial sum of large matrices, of which fewer should be added up. Batches of rows are multiples of it."""


def row_blocks(n_rows: int, block_rows: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)`` in order.

    >>> list(row_blocks(5, block_rows=2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n_rows, block_rows):
        yield slice(start, min(start + block_rows, n_rows))


def as_floats(values: Any, name: str) -> Array:
    """Anything array-like as numbers, NaN where a data frame's column has a missing value of its own.

    Raises
    ------
    ValueError
        With ``name``, if these are no numbers.
    """
    try:
        if hasattr(values, "to_numpy") and hasattr(values, "isna"):
            numbers: Array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as numbers: {error}") from None
    return numbers
