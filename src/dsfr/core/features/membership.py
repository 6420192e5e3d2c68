"""Membership functions of fuzzy sets, as functions of ``z = (x - center) / width``.

A rule multiplies the memberships of its sets, so their logarithms add: ``log phi_k(x) = sum_j log mu(z_kj)``. To add a
membership function, write one class with `register`; training, prediction, explanation, the report page and ONNX use it
by its name.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np

from dsfr.core.arrays import Array


class Membership(Protocol):
    """A membership function: its largest value is 1, at ``z = 0``."""

    name: str
    compiled: bool
    """Whether the kernels of `dsfr.core.compiled` implement it; numpy serves otherwise."""
    javascript: str
    """The logarithm as an expression in ``z``, for the report page."""

    def log(self, z: Array) -> Array:
        """Logarithm of the membership, elementwise; finite for every finite ``z`` up to 1e150."""

    def slope(self, z: Array) -> Array:
        """Derivative of `log`, elementwise."""

    def onnx(self, graph: Any, z: str) -> str:
        """Add nodes that compute `log` of the tensor ``z`` to an ONNX graph; returns the name of the result."""


MEMBERSHIPS: dict[str, Membership] = {}
"""Membership functions by name."""

T = TypeVar("T", bound=Membership)


def register(kind: type[T]) -> type[T]:
    """Make a membership function known by its name; used as a class decorator."""
    MEMBERSHIPS[kind.name] = kind()
    return kind


@register
class Gaussian:
    """``exp(-z^2)``, paper eq. (1)."""

    name = "gaussian"
    compiled = True
    javascript = "-z * z"

    def log(self, z: Array) -> Array:
        """``-z^2``."""
        with np.errstate(over="ignore"):
            return -(z * z)

    def slope(self, z: Array) -> Array:
        """``-2z``."""
        return -2.0 * z

    def onnx(self, graph: Any, z: str) -> str:
        """``-z^2``."""
        squared: str = graph.do("Neg", graph.do("Mul", z, z))
        return squared


def membership_of(name: str) -> Membership:
    """The membership function of this name.

    Raises
    ------
    ValueError
        If there is none.
    """
    if name not in MEMBERSHIPS:
        raise ValueError(f"membership={name!r} must be one of {', '.join(map(repr, MEMBERSHIPS))}")
    return MEMBERSHIPS[name]
