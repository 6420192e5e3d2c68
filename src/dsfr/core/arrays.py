"""Array types, and iteration over the rows of a long table in blocks."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

BLOCK_ROWS = 2048
"""Rows per block: temporaries of a block stay in the processor's cache, whatever the length of the table."""
CHUNK_ROWS = 2 * BLOCK_ROWS
"""Rows per partial sum. Partial sums are added in the order of the rows, so results depend neither on the number of
threads nor on the size of the batches in which rows arrive."""

SUM_ROWS = 4 * CHUNK_ROWS
"""Rows per partial sum of large matrices, which are expensive to add. Batches are multiples of it."""


def row_blocks(n_rows: int, block_rows: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover ``range(n_rows)`` in order.

    >>> list(row_blocks(5, block_rows=2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    for start in range(0, n_rows, block_rows):
        yield slice(start, min(start + block_rows, n_rows))


def column_sums(columns: Array) -> Array:
    """Sum of a table's columns, given as rows: what ``columns.T.sum(axis=1)`` is, to the last bit.

    numpy adds up each row of a contiguous table in eight parts. Here all rows are added at once, in the same order,
    which is faster where columns are few, and does not depend on the number of rows.

    >>> column_sums(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([4., 6.])
    """
    n_columns, n_rows = columns.shape
    if not 8 <= n_columns <= 128 or n_rows == 0:  # numpy adds shorter rows in order, and divides longer ones again
        in_order = n_columns < 8 and n_rows > 1
        plain: Array = columns.sum(axis=0) if in_order else np.ascontiguousarray(columns.T).sum(axis=1)
        return plain
    whole = n_columns - n_columns % 8
    parts = columns[:8].copy()
    for start in range(8, whole, 8):
        parts += columns[start : start + 8]
    pairs = parts[::2] + parts[1::2]
    fours = pairs[::2] + pairs[1::2]
    total: Array = fours[0] + fours[1]
    for column in columns[whole:]:
        total += column
    return total


def as_floats(values: Any, name: str) -> Array:
    """Convert array-likes to floats; missing values of a data frame become NaN.

    Raises
    ------
    ValueError
        Naming ``name``, if a value is not a number.
    """
    try:
        if hasattr(values, "to_numpy") and hasattr(values, "isna"):
            numbers: Array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as numbers: {error}") from None
    return numbers


def with_dtype(X: Array, dtype: npt.DTypeLike) -> Array:
    """Rows in another precision.

    Raises
    ------
    ValueError
        If a number is too large for it.
    """
    with np.errstate(over="ignore"):
        converted: Array = X.astype(dtype, copy=False)
    if converted is not X and np.isinf(converted).any():
        raise ValueError(
            f"X has values beyond {np.finfo(converted.dtype).max:.1e}, the largest number of precision='single': take "
            "precision='double', or use larger units"
        )
    return converted
