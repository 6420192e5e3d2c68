"""Components of a training: small frozen values that check themselves and have a string as shorthand.

A family (solvers, penalties on unlabelled rows, scalings, engines) is a subclass of `Component` that names the
estimators' ``argument``; a subclass of the family with a ``shorthand`` is one of its choices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from math import isfinite
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np

KIND = "kind"
"""Entry of a stored component that names its class."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must satisfy, as a test and in words."""

    holds: Callable[[Any], bool]
    text: str


def parameter(default: Any, rule: Rule) -> Any:
    """A field of a component with its default and the rule for its values."""
    return field(default=default, metadata={"rule": rule})


def number(low: float, text: str, *, strict: bool = True, or_none: bool = False) -> Rule:
    """A finite number above ``low``, or with ``strict=False`` at least ``low``."""

    def holds(value: Any) -> bool:
        if value is None:
            return or_none
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        return (float(value) > low if strict else float(value) >= low) and float(value) < float("inf")

    return Rule(holds, text)


def count(low: int, text: str, *, or_none: bool = False) -> Rule:
    """A whole number of at least ``low``."""

    def holds(value: Any) -> bool:
        if value is None:
            return or_none
        return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= low

    return Rule(holds, text)


def one_of(*choices: Any) -> Rule:
    """One of a few values."""
    return Rule(lambda value: _is_one_of(value, choices), "one of " + ", ".join(map(repr, choices)))


def only(*choices: Any, because: str) -> Rule:
    """The values of another argument that a component accepts, and the reason."""
    return Rule(lambda value: _is_one_of(value, choices), f"{' or '.join(map(repr, choices))}, because {because}")


TRUE_OR_FALSE = Rule(lambda value: isinstance(value, bool), "True or False")


def _is_one_of(value: Any, choices: tuple[Any, ...]) -> bool:
    return any(type(value) is type(choice) and value == choice for choice in choices)


@dataclass(frozen=True, kw_only=True)
class Component:
    """A frozen value with scikit-learn's parameters, a repr of its non-default arguments, and a shorthand.

    Raises
    ------
    ValueError
        If an argument breaks its rule; the message names argument, value, rule and usual values.
    """

    argument: ClassVar[str] = ""
    """The argument of the estimators that takes components of this family."""
    shorthand: ClassVar[str] = ""
    """The string that stands for this class with its default arguments."""
    choices: ClassVar[dict[str, type[Component]]] = {}
    """Classes of the family by shorthand."""

    def __init_subclass__(cls) -> None:
        if "argument" in cls.__dict__:
            cls.choices = {}
        if cls.__dict__.get("shorthand"):
            cls.choices[cls.shorthand] = cls

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if isinstance(value, np.generic):  # searches hand over numpy's numbers, which JSON does not know
                value = value.item()
                object.__setattr__(self, entry.name, value)
            rule = entry.metadata.get("rule")
            if rule is not None and not rule.holds(value):
                raise ValueError(f"{entry.name}={value!r} must be {rule.text}")

    def __repr__(self) -> str:
        return as_source(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments by name, as scikit-learn asks for them."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    def __sklearn_clone__(self) -> Self:
        return self  # it is frozen

    def accepts(self) -> Mapping[str, Rule]:
        """Rules that this component has for other settings, by their name; settings not named are all accepted."""
        return {}

    def changed_by(self, arguments: Mapping[str, Any]) -> Self:
        """The same component with other arguments.

        Raises
        ------
        ValueError
            If there is no such argument, or its value breaks the rule.
        """
        known = [entry.name for entry in fields(self)]
        for name in arguments:
            if name not in known:
                raise ValueError(
                    f"{self.argument}={self!r} has no argument {name!r}; it has {', '.join(known) or 'none'}"
                )
        return replace(self, **arguments)

    @classmethod
    def resolve(cls, value: Any, presets: Mapping[str, Component] | None = None) -> Self:
        """The component that a value stands for: the value itself, or the choice or preset that a string names.

        Raises
        ------
        ValueError
            If the value is neither.
        """
        if isinstance(value, cls):
            return value
        presets = presets or {}
        if isinstance(value, str) and (value in presets or value in cls.choices):
            return presets[value] if value in presets else cls.choices[value]()  # type: ignore[return-value]
        names = ", ".join(map(repr, sorted({*cls.choices, *presets})))
        kinds = ", ".join(sorted(kind.__name__ for kind in cls.choices.values()))
        raise ValueError(f"{cls.argument}={value!r} must be one of {names}, or an object of dsfr: {kinds}")


def changed_fields(value: Any) -> dict[str, Any]:
    """Fields of a dataclass that are not at their defaults."""
    present = {entry.name: (getattr(value, entry.name), _default(entry)) for entry in fields(value)}
    return {name: now for name, (now, default) in present.items() if not _same(now, default)}


def _default(entry: Field[Any]) -> Any:
    return entry.default_factory() if entry.default_factory is not MISSING else entry.default


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and bool(value == default))


def as_source(value: Any) -> str:
    """Python for a value; of dataclasses the call with the arguments that are not at their defaults."""
    if is_dataclass(value) and not isinstance(value, type):
        arguments = ", ".join(f"{name}={as_source(entry)}" for name, entry in changed_fields(value).items())
        return f"{type(value).__name__}({arguments})"
    if isinstance(value, list):
        return f"[{', '.join(map(as_source, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(as_source, value))}{',' * (len(value) == 1)})"
    return repr(value)


def as_record(value: Any) -> Any:
    """A value as JSON holds it: a component becomes a dictionary of its arguments and the name of its class.

    Numbers that are not finite are left out: JSON has none, and wherever they are allowed they are the default.
    """
    if is_dataclass(value) and not isinstance(value, type):
        entries = {entry.name: getattr(value, entry.name) for entry in fields(value)}
        kept = {name: entry for name, entry in entries.items() if not isinstance(entry, float) or isfinite(entry)}
        return {KIND: type(value).__name__} | {name: as_record(entry) for name, entry in kept.items()}
    if isinstance(value, (list, tuple)):
        return [as_record(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def from_record(record: Any, kinds: Mapping[str, type]) -> Any:
    """The value of an `as_record`; only the ``kinds`` given are made, and lists become tuples.

    Raises
    ------
    ValueError
        If the record has another kind or other arguments, or an argument breaks its rule.
    """
    if isinstance(record, dict):
        arguments = dict(record)
        kind = kinds.get(str(arguments.pop(KIND, None)))
        if kind is None or not set(arguments) <= {entry.name for entry in fields(kind)}:
            raise ValueError(f"a record of {record.get(KIND)!r} cannot be read: this version of dsfr does not know it")
        try:
            return kind(**{name: from_record(entry, kinds) for name, entry in arguments.items()})
        except TypeError as error:
            raise ValueError(f"a record of {record.get(KIND)!r} cannot be read: {error}") from None
    return tuple(from_record(entry, kinds) for entry in record) if isinstance(record, list) else record
