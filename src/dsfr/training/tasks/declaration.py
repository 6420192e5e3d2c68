"""Declarations of messages: names, types, shapes and ranges of the arrays in a bundle, and the check against them.

A shape is written in symbols. Known ones must fit, free ones are bound by the first array that has them and bounded
(`symbols`); so the cost of a task is bounded by its declaration, before anything is allocated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.engines import EngineError
from dsfr.storage.bundles import Bundle
from dsfr.training.tasks.symbols import (
    MAX_WEIGHTS,
    MAY_BE_EMPTY,
    OF_MEMBERS,
    Shape,
    Sizes,
    contradiction,
    most_of,
    size_of,
)

SHORT = 1024
"""Elements of arrays whose values are always checked, because that costs nothing."""
NUMBER = 8
"""Bytes of a number in a message."""
MOST_ACCEPTED = 256
"""Combinations of names, types and shapes that a declaration remembers having accepted."""


class TaskError(EngineError):
    """A message that is not as its task declares it: names the task, the array, the rule and the value."""


class BasisError(ValueError):
    """Arrays that are each as declared, and together no rules, wavelets or effects."""


class BroadcastError(TaskError):
    """What an agent was sent, or remembers, is not what the task needs."""


class ContributionError(TaskError):
    """What an agent contributes, or all agents together do, is not what the task declares."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition on the values of an array."""

    text: str
    """Completes the sentence "it must be ..."."""
    holds: Callable[[npt.NDArray[Any], Bundle, Sizes], bool]


@dataclass(frozen=True, slots=True)
class Field:
    """One array of a message. Floating-point numbers are finite, always."""

    shape: Shape | None
    """None: any shape of at most ``MAX_WEIGHTS**2`` elements."""
    rules: tuple[Rule, ...] = ()
    dtype: str = "float64"
    is_optional: bool = False
    beside: str = ""
    """Name of an array without which this one may not come."""
    unless: tuple[str, ...] = ()
    """Names of arrays that take the place of this one."""
    repeats: str = ""
    """Symbol of how many there are, named with ``_0``, ``_1``, ... behind; each has its own basis."""

    def is_needed(self, bundle: Mapping[str, Any]) -> bool:
        """Whether a bundle without this array is incomplete."""
        if self.is_optional or any(name in bundle for name in self.unless):
            return False
        return not self.beside or self.beside in bundle

    def of_member(self, number: int) -> Field:
        """The array of one of several rule bases."""
        shape = None if self.shape is None else tuple(_of_member(symbol, number) for symbol in self.shape)
        beside = f"{self.beside}_{number}" if self.beside else ""
        unless = tuple(f"{name}_{number}" for name in self.unless)
        return replace(self, shape=shape, beside=beside, unless=unless, repeats="")


Fields: TypeAlias = Mapping[str, Field]


def _of_member(symbol: int | str, number: int) -> int | str:
    return f"{symbol}_{number}" if symbol in OF_MEMBERS else symbol


def number(*rules: Rule) -> Field:
    """A floating-point number."""
    return Field((), rules)


def array(*shape: int | str, rules: tuple[Rule, ...] = ()) -> Field:
    """An array of floating-point numbers."""
    return Field(shape, rules)


def whole(low: int, high: int) -> Field:
    """A whole number from ``low`` to ``high``."""
    return Field((), (within(low, high),), "int64")


def optional(field: Field, *, beside: str = "") -> Field:
    """An array that may be left out, and comes with another one only if ``beside`` names it."""
    return replace(field, is_optional=True, beside=beside)


def at_least(low: float) -> Rule:
    """Values not below a number."""
    return Rule(f">= {low:g}", lambda values, *_: _smallest(values) >= low)


def above(low: float) -> Rule:
    """Values greater than a number."""
    return Rule(f"> {low:g}", lambda values, *_: _smallest(values) > low)


def within(low: float, high: float) -> Rule:
    """Values in a closed interval."""
    return Rule(f"from {low:g} to {high:g}", lambda values, *_: _smallest(values) >= low and _largest(values) <= high)


def _smallest(values: npt.NDArray[Any]) -> float:
    return values.min().item() if values.size else np.inf


def _largest(values: npt.NDArray[Any]) -> float:
    return values.max().item() if values.size else -np.inf


def not_below(name: str) -> Rule:
    """Values not below those of an array before it."""
    return Rule(f">= {name!r}", lambda values, bundle, _: name not in bundle or bool((values >= bundle[name]).all()))


class Message:
    """Declared arrays of a bundle, and the check against them.

    Whether names, types and shapes fit is found once for each combination of them, so that rounds which repeat a
    message cost little.
    """

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self._accepted: dict[tuple[Any, ...], tuple[Sizes, tuple[tuple[str, Field], ...]]] = {}

    def problem(self, bundle: Bundle, sizes: Sizes, *, values: bool = True) -> str | None:
        """What is wrong with a bundle, or None; binds in ``sizes`` the symbols that its shapes determine.

        Without ``values``, dtypes and shapes are checked, and the values of short arrays alone.
        """
        key = (*sizes.items(), *((name, *_layout(value)) for name, value in bundle.items()))
        if key not in self._accepted:
            problem, present = self._structure(bundle, sizes)
            if problem is not None:
                return problem
            if len(self._accepted) >= MOST_ACCEPTED:
                self._accepted.clear()
            self._accepted[key] = dict(sizes), present
        bound, present = self._accepted[key]
        sizes.update(bound)
        for name, field in present:
            found = bundle[name]
            problem = problem_of_values(field, found, bundle, sizes) if values or found.size <= SHORT else None
            if problem is not None:
                return f"{name!r} {problem}"
        return None

    def _structure(self, bundle: Bundle, sizes: Sizes) -> tuple[str | None, tuple[tuple[str, Field], ...]]:
        """What is wrong with names, types and shapes, or None; and the arrays that are there, with their fields."""
        problem = _problem_of_names(self.fields, bundle, sizes)
        if problem is not None:
            return problem, ()
        present = tuple((name, field) for name, field in _single_fields(self.fields, sizes).items() if name in bundle)
        for name, field in present:
            found = bundle[name]
            problem = problem_of_shape(field, found, sizes)
            if problem is not None:
                return f"{name!r} {problem}", ()
        return contradiction(sizes), present


def _layout(value: Any) -> tuple[Any, ...]:
    return (value.dtype, value.shape) if isinstance(value, np.ndarray) else (type(value),)


def _problem_of_names(fields: Fields, bundle: Bundle, sizes: Sizes) -> str | None:
    if any(field.repeats for field in fields.values()):
        plain = {name: field for name, field in fields.items() if not field.repeats}
        problem = Message(plain).problem({name: bundle[name] for name in plain if name in bundle}, sizes)
        if problem is not None:
            return problem
    known = _single_fields(fields, sizes)
    for name, value in bundle.items():
        if name not in known:
            return f"{name!r} is not declared; known are {', '.join(map(repr, known)) or 'no arrays'}"
        field = known[name]
        if not isinstance(value, np.ndarray):
            return f"{name!r} is a {type(value).__name__}, and must be an array"
        if field.beside and field.beside not in bundle:
            return f"{name!r} comes with {field.beside!r} only"
        excluded = [other for other in field.unless if other in bundle]
        if excluded:
            return f"{name!r} does not go with {excluded[0]!r}"
    missing = [name for name, field in known.items() if name not in bundle and field.is_needed(bundle)]
    return f"{missing[0]!r} is missing" if missing else None


def _single_fields(fields: Fields, sizes: Sizes) -> Fields:
    """Fields with those of every member of an ensemble written out."""
    if not any(field.repeats for field in fields.values()):
        return fields
    single = {name: field for name, field in fields.items() if not field.repeats}
    for name, field in fields.items():
        if field.repeats:
            single |= {f"{name}_{i}": field.of_member(i) for i in range(sizes.get(field.repeats, 0))}
    return single


def problem_of_shape(field: Field, values: npt.NDArray[Any], sizes: Sizes) -> str | None:
    """What is wrong with the type and the shape of an array, or None; binds free symbols."""
    if values.dtype != np.dtype(field.dtype):
        return f"has dtype {values.dtype}, and must have {field.dtype}"
    if field.shape is None:
        most = MAX_WEIGHTS**2
        return f"has {values.size} elements, and at most {most} are allowed" if values.size > most else None
    if values.ndim != len(field.shape):
        return f"has shape {values.shape}, and must have {_shown(field.shape, sizes)}"
    for symbol, length in zip(field.shape, values.shape, strict=True):
        expected = size_of(symbol, sizes)
        if expected is None:
            most = most_of(str(symbol), sizes)
            least = 0 if str(symbol).partition("_")[0] in MAY_BE_EMPTY else 1
            if not least <= length <= most:
                return (
                    f"has shape {values.shape}, and {symbol} of {_shown(field.shape, sizes)} must be {least} to {most}"
                )
            sizes[str(symbol)] = length
        elif length != expected:
            return f"has shape {values.shape}, and must have {_shown(field.shape, sizes)}"
    return None


def problem_of_values(field: Field, values: npt.NDArray[Any], bundle: Bundle, sizes: Sizes) -> str | None:
    """What is wrong with the values of an array of the right shape, or None."""
    if field.dtype == "float64" and not (isfinite(values.item()) if values.ndim == 0 else np.isfinite(values).all()):
        return "contains NaN or infinity, and must be finite"
    for rule in field.rules:
        if not rule.holds(values, bundle, sizes):
            return f"is {_extent(values)}, and must be {rule.text}"
    return None


def payload(fields: Fields, sizes: Mapping[str, int], names: Set[str]) -> int:
    """Bytes of the arrays that are needed, and of the optional ones in ``names``.

    Raises
    ------
    ValueError
        If a symbol of a shape is not known.
    """
    total = 0
    for name, field in _single_fields(fields, dict(sizes)).items():
        if name in names or field.is_needed(dict.fromkeys(names)):
            lengths = [size_of(symbol, sizes) for symbol in field.shape or ()]
            if field.shape is None or None in lengths:
                raise ValueError(f"the size of {name!r} does not follow from {dict(sizes)}")
            total += np.dtype(field.dtype).itemsize * int(
                np.prod([length for length in lengths if length is not None], dtype=np.int64)
            )
    return total


def _shown(shape: Shape, sizes: Sizes) -> str:
    """A shape in symbols and, where they are known, in numbers."""
    symbols = ", ".join(map(str, shape))
    known = ", ".join(str(size if (size := size_of(symbol, sizes)) is not None else symbol) for symbol in shape)
    return f"shape ({symbols})" if symbols == known else f"shape ({symbols}) = ({known})"


def _extent(values: npt.NDArray[Any]) -> str:
    if values.ndim == 0:
        return str(values.item())
    return f"from {values.min():g} to {values.max():g}" if values.size else "empty"
