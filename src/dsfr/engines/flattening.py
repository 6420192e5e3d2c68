"""A bundle as one vector of floats, for transports that add buffers; several bundles as one byte string."""

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

Vector: TypeAlias = npt.NDArray[np.float64]
Layout: TypeAlias = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Name, type and shape of every array."""

MAX_EXACT_INTEGER = float(2**53)
"""Integers up to this one are exact as floating-point numbers."""


def layout_of(bundle: Mapping[str, npt.NDArray[Any]]) -> Layout:
    """Names, types and shapes, sorted by name."""
    return tuple((name, bundle[name].dtype.str, bundle[name].shape) for name in sorted(bundle))


def layout_size(layout: Layout) -> int:
    """Number of floats in a bundle of this layout."""
    return sum(math.prod(shape) for _, _, shape in layout)


def flatten(bundle: Bundle) -> Vector:
    """All numbers of a bundle as one vector, sorted by name."""
    parts = [np.ravel(bundle[name]).astype(np.float64, copy=False) for name in sorted(bundle)]
    return np.concatenate(parts) if parts else np.empty(0)


def unflatten(vector: Vector, layout: Layout) -> Bundle:
    """The inverse of `flatten`.

    Raises
    ------
    EngineError
        If integers are too large for an exact sum.
    """
    bundle, start = Bundle(), 0
    for name, dtype, shape in layout:
        size = math.prod(shape)
        part = vector[start : start + size].reshape(shape)
        start += size
        if dtype[1] != "f" and part.size and float(np.abs(part).max()) >= MAX_EXACT_INTEGER:
            raise EngineError(f"{name!r} holds integers beyond 2^53, which this engine cannot add exactly")
        bundle[name] = part.astype(dtype)
    return bundle


def bundle_checksum(bundle: Bundle) -> int:
    """32-bit checksum of names, types, shapes and numbers."""
    crc = layout_checksum(layout_of(bundle))
    for name in sorted(bundle):
        crc = zlib.crc32(bundle[name].tobytes(), crc)
    return crc


@lru_cache(maxsize=1024)
def layout_checksum(layout: Layout) -> int:
    """32-bit checksum of a layout."""
    return zlib.crc32(repr(layout).encode())


def pack_bundles(bundles: Sequence[Bundle]) -> bytes:
    """Several bundles as one byte string, each after its length."""
    return b"".join(len(data).to_bytes(8, "little") + data for data in map(to_bytes, bundles))


def unpack_bundles(data: bytes) -> list[Bundle]:
    """The inverse of `pack_bundles`; every bundle is checked."""
    bundles, start = list[Bundle](), 0
    while start < len(data):
        size = int.from_bytes(data[start : start + 8], "little")
        bundles.append(from_bytes(data[start + 8 : start + 8 + size]))
        start += 8 + size
    return bundles
