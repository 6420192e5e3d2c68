"""Values of the core as bundles, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from dsfr.bundles import Bundle
from dsfr.core.rules import Rules
from dsfr.core.wavelets import Wavelets

T = TypeVar("T")


def scalar(value: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """A number as an array."""
    return np.asarray(value, dtype=np.float64)


def pack(value: Any) -> Bundle:
    """Fields of a dataclass of numbers and arrays, by name."""
    return {field.name: np.asarray(getattr(value, field.name), dtype=np.float64) for field in fields(value)}


def unpack(kind: type[T], bundle: Bundle) -> T:
    """The dataclass whose fields are in the bundle, among other arrays perhaps."""
    arrays = {field.name: bundle[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: float(array) if array.ndim == 0 else array for name, array in arrays.items()})


def unpack_basis(bundle: Bundle) -> Rules | Wavelets:
    """The rules or wavelets in a bundle."""
    return unpack(Wavelets, bundle) if "dilations" in bundle else unpack(Rules, bundle)
