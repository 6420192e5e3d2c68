"""Reduction of contributions: elementwise sums and maxima."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dsfr.engines.contract import EngineError
from dsfr.storage.bundles import Bundle

REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.add, "max": np.maximum}


def reduce_round(task: str, verb: str, contributions: Sequence[Bundle]) -> list[Bundle]:
    """Result of a round: the reduced contribution alone, or for ``"gather"`` the non-empty contributions."""
    if verb == "gather":
        return [contribution for contribution in contributions if contribution]
    return [reduce_bundles(task, verb, contributions)]


def reduce_bundles(task: str, verb: str, contributions: Sequence[Bundle]) -> Bundle:
    """Elementwise sum or maximum, in the order given.

    Raises
    ------
    EngineError
        If contributions differ in names, types or shapes.
    """
    check_layouts(task, contributions)
    result = dict(contributions[0])
    for contribution in contributions[1:]:
        result = {name: np.asarray(REDUCTIONS[verb](result[name], contribution[name])) for name in result}
    return result


def check_layouts(task: str, contributions: Sequence[Bundle]) -> None:
    """Check that contributions can be added.

    Raises
    ------
    EngineError
        If they differ in names, types or shapes.
    """
    first = _shapes(contributions[0])
    for contribution in contributions[1:]:
        if _shapes(contribution) != first:
            raise EngineError(f"agents disagree in task {task!r}: {_shapes(contribution)} against {first}")


def _shapes(bundle: Bundle) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (array.dtype.str, array.shape) for name, array in bundle.items()}
