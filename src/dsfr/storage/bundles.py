"""Bundles: flat dictionaries of named arrays, the only content of messages between agents and of files.

The serialised form is safetensors: a JSON header and raw numbers, without code. Received bytes are checked before use.
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
MAX_ARRAYS = 512
"""The most that a model of `dsfr.training.settings.MOST_MODELS` members has is 334."""
MAX_HEADER_BYTES = 8 << 20
"""Of names, shapes and metadata: 5,000 column names of 100 letters fit, as do ranges declared for them."""
ENTRY_TEXTS, ENTRY_BYTES = 6, 128
"""Of the header's entry for one array: texts in quotes (five, and some for metadata), and bytes of all that is not."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
"""Text in quotes in JSON; without its end, to the end of the header."""
_DTYPES = frozenset(map(np.dtype, ("float64", "int64", "uint64", "uint8")))


class BundleError(ValueError):
    """Bytes that are not a bundle, or a bundle with invalid contents."""


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
    data = _save(arrays, metadata=dict(metadata) if metadata else None)
    if _header_length(data) > MAX_HEADER_BYTES:
        raise BundleError(
            f"names and metadata take {_header_length(data)} bytes; at most {MAX_HEADER_BYTES} can be read"
        )
    return data


def from_bytes(data: bytes) -> Bundle:
    """Bundle of its serialised form, checked.

    Raises
    ------
    BundleError
        If the bytes are damaged, have another format, or hold an invalid bundle.
    """
    if len(data) > MAX_BYTES + (1 << 20):
        raise BundleError(f"{len(data)} bytes exceed the limit of {MAX_BYTES}")
    _read_header(data)
    try:
        bundle: Bundle = _load(data)
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise BundleError(f"not a bundle of arrays: {error}") from None
    check_bundle(bundle)
    return bundle


def read_metadata(data: bytes) -> dict[str, str]:
    """The string metadata in the header of a serialised bundle; call after `from_bytes` has accepted the bytes."""
    metadata = _read_header(data).get("__metadata__", {})
    return {str(key): str(value) for key, value in metadata.items()}


def _header_length(data: bytes) -> int:
    return int.from_bytes(data[:8], "little")


def _read_header(data: bytes) -> dict[str, Any]:
    """The header as JSON, refused before it is parsed if it is long, and after if it has many or repeated names.

    safetensors keeps one of two tensors of the same name, and needs seconds and much memory for very many.
    """
    length = _header_length(data)
    if length > MAX_HEADER_BYTES:
        raise BundleError(f"a header of {length} bytes exceeds the limit of {MAX_HEADER_BYTES}")
    text = data[8 : 8 + length]
    if not _is_short(text):
        raise BundleError(f"a header with more than the {MAX_ARRAYS} arrays that are allowed")
    try:
        header = json.loads(text, object_pairs_hook=_unique)
    except BundleError:
        raise
    except (ValueError, RecursionError) as error:
        raise BundleError(f"not a bundle of arrays: its header is not JSON: {error}") from None
    if not isinstance(header, dict) or len(header) > MAX_ARRAYS + 1:
        raise BundleError(f"a header must name at most {MAX_ARRAYS} arrays, each with its type, shape and place")
    if not isinstance(header.get("__metadata__", {}), dict):
        raise BundleError("a header with metadata that is no JSON object")
    return header


def _is_short(header: bytes) -> bool:
    """Whether text in quotes, and what is left without it, are no more than the most arrays need; nothing is parsed."""
    n_texts, rest = 0, len(header)
    for text in _TEXT.finditer(header):
        n_texts, rest = n_texts + 1, rest - len(text[0])
        if n_texts > ENTRY_TEXTS * MAX_ARRAYS:
            return False
    return rest <= ENTRY_BYTES * MAX_ARRAYS


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, refused if it names anything twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BundleError("a header that names something twice")
    return found
