"""Values of the core as bundles, and back."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.bases import AnyBasis, basis_of
from dsfr.core.scaling.affine import Ranges
from dsfr.core.solve.statistics import Statistics
from dsfr.storage.bundles import Bundle
from dsfr.training.tasks.declaration import BasisError, array
from dsfr.training.tasks.fields import CENTERS, MEMBERSHIP, WIDTHS
from dsfr.training.tasks.registry import remember

T = TypeVar("T")

KEPT_BASIS = remember(
    __name__,
    {
        "centers": CENTERS,
        "widths": WIDTHS,
        "membership": MEMBERSHIP,
        "dilations": array("h", "d"),
        "translations": replace(array("h", "d"), beside="dilations"),
    },
    transient=True,
)
"""Arrays of a basis that an agent remembers."""


def ask_sample(share: float | None) -> Bundle:
    """What a task that can do with a sample of the rows needs to know; nothing if it is to take all."""
    return {} if share is None or share >= 1.0 else {"sample": scalar(share)}


def sample_in(broadcast: Bundle) -> float:
    """Share of the rows that a task is to take."""
    return float(broadcast.get("sample", 1.0))


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


def pack_statistics(value: Statistics, *, with_penalty: bool) -> Bundle:
    """Statistics with the upper triangles of their symmetric matrices, and without a penalty that nobody has."""
    bundle = pack(value) | {"gram": upper_triangle(value.gram)}
    bundle.pop("unlabeled_gram")
    return bundle | {"unlabeled_gram": upper_triangle(value.unlabeled_gram)} if with_penalty else bundle


def unpack_statistics(bundle: Bundle) -> Statistics:
    """The statistics in a bundle of `pack_statistics`."""
    p = len(bundle["moment"])
    penalty = symmetric(bundle["unlabeled_gram"], p) if "unlabeled_gram" in bundle else np.zeros((p, p))
    return unpack(Statistics, bundle | {"gram": symmetric(bundle["gram"], p), "unlabeled_gram": penalty})


def scaling_ranges(memory: Bundle, broadcast: Bundle) -> Ranges:
    """Ranges to scale by: those of the broadcast, else those in memory."""
    return unpack(Ranges, broadcast if "low" in broadcast else memory)


def upper_triangle(matrix: Array) -> Array:
    """Upper triangle of a symmetric matrix, row by row; shape (p(p+1)/2,)."""
    return matrix[np.triu_indices(len(matrix))]


def symmetric(triangle: Array, size: int) -> Array:
    """The symmetric matrix of an upper triangle; shape (size, size)."""
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = triangle
    return matrix + np.triu(matrix, 1).T


def unpack_basis(bundle: Bundle) -> AnyBasis:
    """The rules, wavelets or effects in a bundle.

    Raises
    ------
    BasisError
        If there are none.
    """
    try:
        return basis_of(bundle)
    except ValueError as error:
        raise BasisError(str(error)) from error
