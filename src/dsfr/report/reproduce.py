"""Python that trains a model again: the call that a person would write, with the arguments that are not defaults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any

import dsfr.estimators
from dsfr.estimators.parameters import COMPONENTS, ComponentEstimator, read_parameters
from dsfr.model.model import Model
from dsfr.training.component import as_source


def reproduction_of(model: Model) -> str:
    """The call that trained a model on rows ``X``, targets ``y`` and perhaps ``owners``; empty if it is not known."""
    kind = getattr(dsfr.estimators, str(model.settings.get("estimator", "")), None)
    if not isinstance(kind, type) or not issubclass(kind, ComponentEstimator):
        return ""
    try:
        changed = dict(_changed(kind, read_parameters(model.settings)))
    except ValueError:  # a component of another version, or of a plug-in
        return ""
    arguments = "".join(f"    {name}={_source(name, value)},\n" for name, value in changed.items())
    imports = sorted({kind.__name__, *(name for value in changed.items() for name in _classes(*value))})
    owners = ", agents=owners" if model.training.get("owners_given") else ""
    called = f"(\n{arguments})" if arguments else "()"
    return f"from dsfr import {', '.join(imports)}\n\nmodel = {kind.__name__}{called}.fit(X, y{owners})"


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
