"""Flat dictionaries of named arrays: the only thing that crosses between agents or goes into a file.

The serialised form is safetensors: a JSON header and raw numbers, nothing that can run. What arrives is checked before
it is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as _load
from safetensors.numpy import save as _save

Bundle = dict[str, npt.NDArray[Any]]

MAX_BYTES = 1 << 30
MAX_ARRAYS = 256
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_DTYPES = frozenset(map(np.dtype, ("float64", "int64", "uint64", "uint8")))


class BundleError(ValueError):
    """Bytes that are not a bundle, or a bundle with contents that must not be used."""


def check_bundle(bundle: Mapping[str, Any]) -> None:
    """Check names, types, size and finiteness of a bundle.

    Raises
    ------
    BundleError
        Naming the first array that breaks a rule.
    """
    if len(bundle) > MAX_ARRAYS:
        raise BundleError(f"a bundle holds {len(bundle)} arrays; at most {MAX_ARRAYS} are allowed")
    for name, array in bundle.items():
        if not isinstance(name, str) or not _NAME.match(name):
            raise BundleError(f"array name {name!r} must be lower-case letters, digits and underscores")
        if not isinstance(array, np.ndarray):
            raise BundleError(f"{name!r} is a {type(array).__name__}; only numpy arrays may be sent")
        if array.dtype not in _DTYPES:
            raise BundleError(f"{name!r} has dtype {array.dtype}; allowed are {', '.join(sorted(map(str, _DTYPES)))}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise BundleError(f"{name!r} contains NaN or infinity")
    if payload_bytes(bundle) > MAX_BYTES:
        raise BundleError(f"a bundle of {payload_bytes(bundle)} bytes exceeds the limit of {MAX_BYTES}")


def payload_bytes(bundle: Mapping[str, npt.NDArray[Any]]) -> int:
    """Bytes of the numbers in a bundle, without names and framing."""
    return sum(array.nbytes for array in bundle.values())


def to_bytes(bundle: Mapping[str, npt.NDArray[Any]], metadata: Mapping[str, str] | None = None) -> bytes:
    """Checked, serialised form of a bundle."""
    check_bundle(bundle)
    arrays = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in bundle.items()}
    return _save(arrays, metadata=dict(metadata) if metadata else None)


def from_bytes(data: bytes) -> Bundle:
    """Bundle of its serialised form, checked.

    Raises
    ------
    BundleError
        If the bytes are damaged, foreign, or hold what a bundle may not hold.
    """
    if len(data) > MAX_BYTES + (1 << 20):
        raise BundleError(f"{len(data)} bytes exceed the limit of {MAX_BYTES}")
    try:
        bundle: Bundle = _load(data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise BundleError(f"not a bundle of arrays: {error}") from None
    check_bundle(bundle)
    return bundle


def read_metadata(data: bytes) -> dict[str, str]:
    """The string metadata in the header of a serialised bundle; call after `from_bytes` has accepted the bytes."""
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    return {str(key): str(value) for key, value in metadata.items()}
