"""Python that trains a model again: the call that a person would write, with the arguments that are not defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any

import dsfr.estimators
from dsfr.estimators.parameters import COMPONENTS, NOT_SETTINGS, ComponentEstimator, read_parameters
from dsfr.model.model import Model
from dsfr.training.component import as_source

LINE = 88
"""Longer calls have one argument per line."""


def reproduction_of(model: Model) -> str:
    """The call that trained a model on rows ``X``, targets ``y`` and perhaps ``owners``; empty if it is not known."""
    try:
        name, arguments, imports = _call(model.settings)
    except ValueError:  # an estimator or a component of another version, or of a plug-in
        return ""
    owners = ", agents=owners" if model.training.get("owners_given") else ""
    start, end = f"model = {name}", f".fit(X, y{owners})"
    called = f"({', '.join(arguments)})"
    if len(start + called + end) > LINE:
        called = "".join(["(\n", *(f"    {argument},\n" for argument in arguments), ")"])
    return f"from dsfr import {', '.join(sorted(imports))}\n\n{start}{called}{end}"


def _call(settings: Mapping[str, Any]) -> tuple[str, list[str], set[str]]:
    """Name of an estimator, the source of its arguments, and the names to import.

    Raises
    ------
    ValueError
        If the estimator or a component is not known.
    """
    kind = getattr(dsfr.estimators, str(settings.get("estimator", "")), None)
    if not isinstance(kind, type) or not issubclass(kind, ComponentEstimator):
        raise ValueError("unknown estimator")
    plain = {name: value for name, value in settings.items() if name not in ("teacher", "edits")}
    changed = dict(_changed(kind, read_parameters(plain)))
    arguments = [f"{name}={_source(name, value)}" for name, value in changed.items()]
    imports = {kind.__name__, *(name for value in changed.items() for name in _classes(*value))}
    if settings.get("edits") is not None:
        arguments.append(f"edits={settings['edits']!r}")
    if isinstance(settings.get("teacher"), Mapping):
        # What says where rows are kept, and the seed, are arguments of the student alone.
        own = {name: value for name, value in settings["teacher"].items() if name not in NOT_SETTINGS}
        teacher, parts, more = _call(own)
        arguments.append(f"teacher={teacher}({', '.join(parts)})")
        imports |= more
    return kind.__name__, arguments, imports


def _changed(kind: type[ComponentEstimator], params: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Parameters that differ from the defaults of the estimator."""
    usual = kind(**{name: params[name] for name in ("tune", "uncertainty") if name in params})
    for name, entry in signature(kind).parameters.items():
        default = usual.component(name) if name in COMPONENTS else entry.default
        if name in params and params[name] != default:
            yield name, params[name]


def _shorthand(name: str, value: Any) -> str:
    """The string that stands for a component with default arguments, "" if there is none."""
    if name not in COMPONENTS or value is None:
        return ""
    return value.shorthand if value == type(value)() else ""


def _source(name: str, value: Any) -> str:
    return repr(_shorthand(name, value)) if _shorthand(name, value) else as_source(value)


def _classes(name: str, value: Any) -> Iterator[str]:
    """Names of the classes that the source of a parameter uses."""
    if _shorthand(name, value):
        return
    if isinstance(value, tuple):
        for entry in value:
            yield from _classes("", entry)
    if is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__
        for entry in fields(value):
            yield from _classes("", getattr(value, entry.name))
