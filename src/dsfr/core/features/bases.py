"""The kinds of basis that a predictor can have, and how to read one from its arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy.typing as npt

from dsfr.core.features.effects import Effects
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets

AnyBasis: TypeAlias = Rules | Wavelets | Effects | LinguisticRules
BASES: tuple[type[AnyBasis], ...] = (Rules, Wavelets, Effects, LinguisticRules)
"""Every kind of basis; the names of its arrays belong to it alone."""


def basis_of(arrays: Mapping[str, npt.NDArray[Any]]) -> AnyBasis:
    """The basis whose arrays are in a mapping, perhaps among others.

    Raises
    ------
    ValueError
        If no basis has such arrays, or the membership function is unknown.
    """
    for kind in BASES:
        if all(name in arrays for name in kind.unit_arrays):
            return kind.of_arrays(arrays)
    raise ValueError(f"no basis has the arrays {', '.join(sorted(arrays))}")
