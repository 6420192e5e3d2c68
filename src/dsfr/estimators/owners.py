"""Who owns each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.estimators.checks import checked_count, is_missing
from dsfr.training.split import split_rows


def checked_owners(agents: Any, n_rows: int, n_agents: Any, seed: int) -> npt.NDArray[Any]:
    """The owner of every row; without ``agents`` rows are split at random over ``n_agents``.

    Raises
    ------
    ValueError
        If there is not one owner for each row, or ``n_agents`` is another number than that of the owners.
    """
    if agents is None:
        return split_rows(n_rows, checked_count(n_agents), seed)
    owners: npt.NDArray[Any] = np.asarray(agents)
    if owners.ndim != 1:
        raise ValueError(f"agents has {owners.ndim} dimensions; it must be a 1d array, one owner per row")
    if len(owners) != n_rows:
        raise ValueError(f"agents has {len(owners)} entries for {n_rows} rows: give the owner of every row")
    if any(map(is_missing, owners.tolist())):
        raise ValueError("agents contains missing values: every row must have an owner")
    n_owners = len(np.unique(owners.astype(str)))
    if n_agents not in (1, n_owners):
        raise ValueError(
            f"n_agents={n_agents} but agents names {n_owners} owners: leave n_agents out when agents is given"
        )
    return owners
