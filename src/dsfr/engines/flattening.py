"""A bundle as one vector of numbers, for transports that add up buffers."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.engines.contract import EngineError
from dsfr.storage.bundles import Bundle, from_bytes, to_bytes

Layout: TypeAlias = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Name, type and shape of every array."""

MAX_WHOLE = float(2**53)
"""Whole numbers up to here are exact as floating-point numbers."""


def layout_of(bundle: Mapping[str, npt.NDArray[Any]]) -> Layout:
    """Names, types and shapes, in the order of the names."""
    return tuple((name, bundle[name].dtype.str, bundle[name].shape) for name in sorted(bundle))


def flatten(bundle: Bundle) -> npt.NDArray[np.float64]:
    """All numbers behind one another, in the order of the names."""
    parts = [np.ravel(bundle[name]).astype(np.float64, copy=False) for name in sorted(bundle)]
    return np.concatenate(parts) if parts else np.empty(0)


def unflatten(flat: npt.NDArray[np.float64], layout: Layout) -> Bundle:
    """The bundle of a vector.

    Raises
    ------
    EngineError
        If whole numbers are too large to have been added up exactly.
    """
    bundle, start = Bundle(), 0
    for name, dtype, shape in layout:
        size = math.prod(shape)
        part = flat[start : start + size].reshape(shape)
        start += size
        if dtype[1] != "f" and part.size and float(np.abs(part).max()) >= MAX_WHOLE:
            raise EngineError(f"{name!r} holds whole numbers beyond 2^53, which this engine cannot add up exactly")
        bundle[name] = part.astype(dtype)
    return bundle


def checksum(bundle: Bundle) -> int:
    """A 32-bit number that two different bundles hardly share."""
    crc = layout_number(layout_of(bundle))
    for name in sorted(bundle):
        crc = zlib.crc32(bundle[name].tobytes(), crc)
    return crc


@lru_cache(maxsize=1024)
def layout_number(layout: Layout) -> int:
    """A 32-bit number that two different layouts hardly share."""
    return zlib.crc32(repr(layout).encode())


def size_of(layout: Layout) -> int:
    """How many numbers a bundle of a layout holds."""
    return sum(math.prod(shape) for _, _, shape in layout)


def pack_bundles(bundles: Sequence[Bundle]) -> bytes:
    """Several bundles behind one another."""
    return b"".join(len(data).to_bytes(8, "little") + data for data in map(to_bytes, bundles))


def unpack_bundles(data: bytes) -> list[Bundle]:
    """The bundles that `pack_bundles` has put behind one another, each checked."""
    bundles, start = list[Bundle](), 0
    while start < len(data):
        size = int.from_bytes(data[start : start + 8], "little")
        bundles.append(from_bytes(data[start + 8 : start + 8 + size]))
        start += 8 + size
    return bundles
