"""Numbers modulo 2^128: fixed-point numbers with 64 fractional bits, as two words of 64 bits, and sums of their parts.

Transports add floats or 64-bit integers and lose the carry between two words. So a number is sent as four parts of 32
bits in words of 64, and the coordinator carries once, after the sum; up to 2^21 owners add exactly even as floats.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Word: TypeAlias = npt.NDArray[np.uint64]
PARTS = 4
"""Parts of 32 bits in a number."""
_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
LARGEST = 2.0**62
"""Sums must stay below this in size."""
FRACTION = 2.0**64


def encode(values: npt.NDArray[Any]) -> tuple[Word, Word]:
    """Upper and lower words of numbers; bits of a float below 2^-64 are cut off."""
    if values.dtype.kind != "f":
        return values.astype(np.int64).view(np.uint64), np.zeros(values.shape, dtype=np.uint64)
    size = np.abs(values)
    whole = np.floor(size)
    # The fraction of a float is a float, so neither line rounds.
    high, low = whole.astype(np.uint64), ((size - whole) * FRACTION).astype(np.uint64)
    negated = negate(high, low)
    is_negative = values < 0.0
    return np.where(is_negative, negated[0], high), np.where(is_negative, negated[1], low)


def decode(high: Word, low: Word, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """The numbers of upper and lower words."""
    if dtype.kind != "f":
        return high.view(np.int64).astype(dtype)
    is_negative = high.view(np.int64) < 0
    negated = negate(high, low)
    upper, lower = np.where(is_negative, negated[0], high), np.where(is_negative, negated[1], low)
    size = upper.astype(np.float64) + lower.astype(np.float64) / FRACTION
    return np.where(is_negative, -size, size)


def add(one: tuple[Word, Word], other: tuple[Word, Word]) -> tuple[Word, Word]:
    """Sum modulo 2^128."""
    low = one[1] + other[1]
    return one[0] + other[0] + (low < one[1]), low


def negate(high: Word, low: Word) -> tuple[Word, Word]:
    """The number that adds up to 0 with this one."""
    return ~high + (low == 0), ~low + _ONE


def to_parts(high: Word, low: Word) -> Word:
    """Four parts of 32 bits, lowest first, along a new last axis."""
    return np.stack([low & _MASK, low >> _HALF, high & _MASK, high >> _HALF], axis=-1)


def from_parts(parts: Word) -> tuple[Word, Word]:
    """Upper and lower words of sums of parts."""
    carried, carry = [], np.zeros(parts.shape[:-1], dtype=np.uint64)
    for place in range(PARTS):
        total = parts[..., place] + carry
        carried.append(total & _MASK)
        carry = total >> _HALF
    low = carried[0] | (carried[1] << _HALF)
    return carried[2] | (carried[3] << _HALF), low
