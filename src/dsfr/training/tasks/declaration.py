"""Declarations of messages: names, types, shapes and ranges of the arrays in a bundle.

A shape is written in symbols. Known ones must fit, free ones are bound by the first array that has them and bounded
(`symbols`); so the cost of a task is bounded by its declaration, before anything is allocated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.engines import EngineError
from dsfr.storage.bundles import Bundle
from dsfr.training.tasks.symbols import (
    OF_MEMBERS,
    Shape,
    Sizes,
    size_of,
)

NUMBER = 8
"""Bytes of a number in a message."""


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
        rules = tuple(_rule_of_member(rule, number) for rule in self.rules)
        return replace(self, shape=shape, rules=rules, beside=beside, unless=unless, repeats="")


Fields: TypeAlias = Mapping[str, Field]


def _of_member(symbol: int | str, number: int) -> int | str:
    return f"{symbol}_{number}" if symbol in OF_MEMBERS else symbol


def _rule_of_member(rule: Rule, number: int) -> Rule:
    """The rule with the member's own sizes under the names of its symbols."""

    def holds(values: npt.NDArray[Any], bundle: Bundle, sizes: Sizes) -> bool:
        own = {name: sizes[f"{name}_{number}"] for name in OF_MEMBERS if f"{name}_{number}" in sizes}
        return rule.holds(values, bundle, sizes | own)

    return replace(rule, holds=holds)


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


def single_fields(fields: Fields, sizes: Sizes) -> Fields:
    """Fields with those of every member of an ensemble written out."""
    if not any(field.repeats for field in fields.values()):
        return fields
    single = {name: field for name, field in fields.items() if not field.repeats}
    for name, field in fields.items():
        if field.repeats:
            single |= {f"{name}_{i}": field.of_member(i) for i in range(sizes.get(field.repeats, 0))}
    return single


def payload(fields: Fields, sizes: Mapping[str, int], names: Set[str]) -> int:
    """Bytes of the arrays that are needed, and of the optional ones in ``names``.

    Raises
    ------
    ValueError
        If a symbol of a shape is not known.
    """
    total = 0
    for name, field in single_fields(fields, dict(sizes)).items():
        if name in names or field.is_needed(dict.fromkeys(names)):
            lengths = [size_of(symbol, sizes) for symbol in field.shape or ()]
            if field.shape is None or None in lengths:
                raise ValueError(f"the size of {name!r} does not follow from {dict(sizes)}")
            total += np.dtype(field.dtype).itemsize * int(
                np.prod([length for length in lengths if length is not None], dtype=np.int64)
            )
    return total
