"""Slopes that all rules have in common: they are printed, and read, once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array

LEAST_SAVED = 2
"""Numbers that a part shared by all rules saves at least; a part that saves fewer is repeated in every rule."""


def shared_slopes(lines: Array) -> npt.NDArray[np.bool_]:
    """Columns of lines that are read once: slopes that are equal in all rules, and not 0; the constant never is; (p,).

    >>> shared_slopes(np.array([[1.0, 2.0, 0.5, 0.0, 3.0], [4.0, 2.0, 0.5, 0.0, 1.0]]))
    array([False,  True,  True, False, False])
    """
    equal: npt.NDArray[np.bool_] = (lines == lines[0]).all(axis=0) & (lines[0] != 0.0)
    equal[0] = False
    is_worth_it = (len(lines) - 1) * np.count_nonzero(equal) >= LEAST_SAVED
    return equal & is_worth_it


def n_terms(lines: Array) -> int:
    """Terms of all lines that there are to read, those of the shared part once."""
    return int(np.count_nonzero(lines[:, 1:]) - (len(lines) - 1) * np.count_nonzero(shared_slopes(lines)))
