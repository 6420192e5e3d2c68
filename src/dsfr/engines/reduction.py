"""Adding up and comparing contributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dsfr.bundles import Bundle
from dsfr.engines.base import EngineError

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


def _shapes(bundle: Bundle) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (array.dtype.str, array.shape) for name, array in bundle.items()}
