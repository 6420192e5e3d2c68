"""Mutated bundles: names dropped and added, wrong types and shapes, and values that nobody should send."""

from __future__ import annotations

from typing import Any

import numpy as np

ODD_NUMBERS = (
    0.0,
    -1.0,
    -0.0,
    0.5,
    1.0,
    7.0,
    1e6,
    2.0**31,
    2.0**62,
    1e300,
    -1e300,
    1e-300,
    5e-324,
    np.nan,
    np.inf,
    -np.inf,
)
HUGE_LENGTHS = (10**5, 10**7, 2**31)


def mutated(bundle: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The bundle with one or two things wrong, as a bundle that arrives might have."""
    result = dict(bundle)
    if not bundle or rng.random() < 0.05:
        result["unknown"] = np.zeros(3)
    for name in rng.permutation(sorted(bundle))[: rng.integers(1, 3)]:
        if rng.random() < 0.12:
            del result[name]
        else:
            result[name] = MUTATIONS[rng.integers(len(MUTATIONS))](result[name], rng)
    return result


def _another_type(array: Any, rng: np.random.Generator) -> Any:
    kinds = ("float32", "int64", "float64", "uint8", "complex128", "bool", "str", "object")
    with np.errstate(all="ignore"):
        return np.asarray(array).real.astype(kinds[rng.integers(len(kinds))])


def _no_array(array: Any, rng: np.random.Generator) -> Any:
    return (None, 3, 0.5, "text", [1.0, 2.0], {})[rng.integers(6)]


def _another_shape(array: Any, rng: np.random.Generator) -> Any:
    array = np.asarray(array)
    changes = (
        lambda: array[None],
        lambda: array.ravel(),
        lambda: array[..., None],
        lambda: np.concatenate([np.atleast_1d(array)] * 2),
        lambda: np.atleast_1d(array)[:-1],
        lambda: np.atleast_1d(array)[..., :-1],
        lambda: np.zeros(0, dtype=array.dtype),
        lambda: array.T.copy(),
    )
    return changes[rng.integers(len(changes))]()


def _huge(array: Any, rng: np.random.Generator) -> Any:
    """Many rows that take no memory themselves: only who copies them needs it."""
    array = np.atleast_1d(np.asarray(array))
    length = HUGE_LENGTHS[rng.integers(len(HUGE_LENGTHS))]
    first = array[:1] if len(array) else np.zeros((1, *array.shape[1:]), dtype=array.dtype)
    return np.broadcast_to(first, (length, *array.shape[1:]))


def _odd_values(array: Any, rng: np.random.Generator) -> Any:
    """One value, or all of them, replaced."""
    array = np.array(array)
    number = ODD_NUMBERS[rng.integers(len(ODD_NUMBERS))]
    if array.dtype.kind in "iu" and not np.isfinite(number):
        number = -1.0
    with np.errstate(all="ignore"):
        value = np.asarray(np.clip(number, -(2.0**62), 2.0**62) if array.dtype.kind in "iu" else number)
        if array.ndim and array.size and rng.random() < 0.5 and array.dtype.kind in "iuf":
            array.flat[rng.integers(array.size)] = value.astype(array.dtype)
            return array
        return np.full_like(array, value.astype(array.dtype)) if array.dtype.kind in "iuf" else array


def _scaled(array: Any, rng: np.random.Generator) -> Any:
    array = np.asarray(array)
    if array.dtype.kind != "f":
        return array
    with np.errstate(all="ignore"):
        return np.asarray(array * (-1.0, 0.0, 1e-200, 1e3, 1e200)[rng.integers(5)])


def _shuffled(array: Any, rng: np.random.Generator) -> Any:
    array = np.array(array)
    if array.dtype.kind in "iuf" and array.ndim:
        array.flat[:] = rng.permutation(array.ravel())
    return array


MUTATIONS = (
    _another_type,
    _no_array,
    _another_shape,
    _another_shape,
    _huge,
    _odd_values,
    _odd_values,
    _odd_values,
    _scaled,
    _shuffled,
)
