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


@register
class Bell:
    """``1 / (1 + z^2)``, the generalised bell of exponent 1: its tails are wider than those of a Gaussian set."""

    name = "bell"
    compiled = False
    javascript = "-2 * Math.log(Math.hypot(1, z))"

    def log(self, z: Array) -> Array:
        """``-log(1 + z^2)``, by a hypotenuse that does not overflow."""
        logs: Array = -2.0 * np.log(np.hypot(1.0, z))
        return logs

    def slope(self, z: Array) -> Array:
        """``-2z / (1 + z^2)``."""
        r = np.hypot(1.0, z)
        slopes: Array = -2.0 * (z / r) / r
        return slopes

    def onnx(self, graph: Any, z: str) -> str:
        """``-log(1 + z^2)``."""
        total = graph.do("Add", graph.do("Mul", z, z), graph.constant(1.0))
        log: str = graph.do("Neg", graph.do("Log", total))
        return log


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
