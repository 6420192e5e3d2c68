"""The check of a bundle against its declaration: names, types and shapes first, then values."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.storage.bundles import Bundle
from dsfr.training.shard import Accepted
from dsfr.training.tasks.declaration import Field, Fields, single_fields
from dsfr.training.tasks.symbols import MAX_WEIGHTS, MAY_BE_EMPTY, Shape, Sizes, contradiction, most_of, size_of

SHORT = 1024
"""Elements of arrays whose values are always checked, because that costs nothing."""
MOST_ACCEPTED = 256
"""Combinations of names, types and shapes that a declaration remembers having accepted."""


class Message:
    """Declared arrays of a bundle, and the check against them.

    Whether names, types and shapes fit is found once for each combination of them, so that rounds which repeat a
    message cost little.
    """

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self._accepted: dict[tuple[Any, ...], tuple[Sizes, tuple[tuple[str, Field], ...]]] = {}

    def problem(self, bundle: Bundle, sizes: Sizes) -> str | None:
        """What is wrong with a bundle, or None; binds in ``sizes`` the symbols that its shapes determine."""
        problem, present = self._fitted(bundle, sizes)
        return problem or _problem_of_present(present, bundle, sizes)

    def bind(self, bundle: Bundle, sizes: Sizes) -> None:
        """Bind in ``sizes`` the symbols that the shapes of a bundle determine; its values are not looked at."""
        self._fitted(bundle, sizes)

    def problem_of_memory(self, memory: Bundle, sizes: Sizes, known: Accepted) -> str | None:
        """What is wrong with a bundle that an agent keeps: dtypes, shapes, and the values of short arrays alone.

        ``known`` holds what was accepted the time before. Nobody changes arrays in place, so those need no second look.
        """
        asked = tuple(sizes.items())
        problem, present = self._fitted(memory, sizes)
        if problem is not None:
            return problem
        short = {name: memory[name] for name, _ in present if memory[name].size <= SHORT}
        before = known.arrays if known.sizes == asked else {}
        changed = {name for name, value in short.items() if before.get(name) is not value}
        if changed:
            # A rule may compare arrays, so it is asked again if any of them is another.
            looked_at = [(name, field) for name, field in present if name in changed or (field.rules and name in short)]
            problem = _problem_of_present(looked_at, memory, sizes)
        if problem is None:
            known.sizes, known.arrays = asked, short
        return problem

    def _fitted(self, bundle: Bundle, sizes: Sizes) -> tuple[str | None, tuple[tuple[str, Field], ...]]:
        """As `_structure`, remembered for bundles of the same names, types and shapes."""
        key = (*sizes.items(), *((name, *_layout(value)) for name, value in bundle.items()))
        if key not in self._accepted:
            problem, present = self._structure(bundle, sizes)
            if problem is not None:
                return problem, ()
            if len(self._accepted) >= MOST_ACCEPTED:
                self._accepted.clear()
            self._accepted[key] = dict(sizes), present
        bound, present = self._accepted[key]
        sizes.update(bound)
        return None, present

    def _structure(self, bundle: Bundle, sizes: Sizes) -> tuple[str | None, tuple[tuple[str, Field], ...]]:
        """What is wrong with names, types and shapes, or None; and the arrays that are there, with their fields."""
        problem = _problem_of_names(self.fields, bundle, sizes)
        if problem is not None:
            return problem, ()
        present = tuple((name, field) for name, field in single_fields(self.fields, sizes).items() if name in bundle)
        for name, field in present:
            found = bundle[name]
            problem = problem_of_shape(field, found, sizes)
            if problem is not None:
                return f"{name!r} {problem}", ()
        return contradiction(sizes), present


def _problem_of_present(present: Iterable[tuple[str, Field]], bundle: Bundle, sizes: Sizes) -> str | None:
    for name, field in present:
        problem = problem_of_values(field, bundle[name], bundle, sizes)
        if problem is not None:
            return f"{name!r} {problem}"
    return None


def _layout(value: Any) -> tuple[Any, ...]:
    return (value.dtype, value.shape) if isinstance(value, np.ndarray) else (type(value),)


def _problem_of_names(fields: Fields, bundle: Bundle, sizes: Sizes) -> str | None:
    if any(field.repeats for field in fields.values()):
        plain = {name: field for name, field in fields.items() if not field.repeats}
        problem = Message(plain).problem({name: bundle[name] for name in plain if name in bundle}, sizes)
        if problem is not None:
            return problem
    known = single_fields(fields, sizes)
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


def _shown(shape: Shape, sizes: Sizes) -> str:
    """A shape in symbols and, where they are known, in numbers."""
    symbols = ", ".join(map(str, shape))
    known = ", ".join(str(size if (size := size_of(symbol, sizes)) is not None else symbol) for symbol in shape)
    return f"shape ({symbols})" if symbols == known else f"shape ({symbols}) = ({known})"


def _extent(values: npt.NDArray[Any]) -> str:
    if values.ndim == 0:
        return str(values.item())
    return f"from {values.min():g} to {values.max():g}" if values.size else "empty"
