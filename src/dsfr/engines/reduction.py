"""Adding up and comparing contributions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from dsfr.engines.contract import EngineError
from dsfr.storage.bundles import Bundle

REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.add, "max": np.maximum}


def reduce_bundles(task: str, verb: str, contributions: Sequence[Bundle]) -> Bundle:
    """Elementwise sum or maximum, in the order given.

    Raises
    ------
    EngineError
        If contributions differ in names, types or shapes.
    """
    result = dict(contributions[0])
    for contribution in contributions[1:]:
        if _shapes(contribution) != _shapes(result):
            raise EngineError(f"agents disagree in task {task!r}: {_shapes(contribution)} against {_shapes(result)}")
        result = {name: np.asarray(REDUCTIONS[verb](result[name], contribution[name])) for name in result}
    return result


def reduce_neighbors(
    task: str, own: Bundle, received: Sequence[Bundle], maxima: Collection[str], n_neighbors: int
) -> Bundle:
    """What an agent makes of what its neighbors sent: sums, or maxima, and the links that worked and did not.

    Without any, sums are zero and maxima the own values.
    """
    n_links = len(received)
    reduced: Bundle = {"n_links": np.asarray(n_links, dtype=np.int64)}
    reduced["n_missing"] = np.asarray(n_neighbors - n_links, dtype=np.int64)
    for name, value in own.items():
        parts = [{name: bundle[name]} for bundle in received if name in bundle]
        if parts:
            value = reduce_bundles(task, "max" if name in maxima else "sum", parts)[name]
        elif name not in maxima:
            value = np.zeros_like(value)
        reduced[f"neighbor_{name}"] = value
    return reduced


def _shapes(bundle: Bundle) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (array.dtype.str, array.shape) for name, array in bundle.items()}
