"""What estimators check of their arguments; messages name the argument, its value, the rule and a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from dsfr.core.arrays import Array

TEXT_REMEDY = "Correct it, or make it NaN: a missing value. Categories are learnt from columns of a data frame."


def dtype_of(precision: Any) -> npt.DTypeLike:
    """Type in which features are kept."""
    kinds: dict[Any, npt.DTypeLike] = {"double": np.float64, "single": np.float32}
    if precision not in kinds:
        raise ValueError(f"precision={precision!r} must be 'double' or 'single'")
    return kinds[precision]


def is_scan(X: Any) -> bool:
    """Whether rows come from a `dsfr.scan`; those who never make one need not load what reads files."""
    return hasattr(X, "shards")


def checked_count(n_agents: Any) -> int:
    """A number of agents."""
    if not isinstance(n_agents, (int, np.integer)) or isinstance(n_agents, bool) or n_agents < 1:
        raise ValueError(f"n_agents={n_agents!r} must be a whole number >= 1; 1 is the centralised method")
    return int(n_agents)


def is_missing(owner: object) -> bool:
    """Whether a value is None, or one of the several kinds of NaN; an owner called "None" is none of them."""
    return not isinstance(owner, str) and str(owner) in ("None", "nan", "<NA>", "NaT")


def check_numbers(X: Any) -> None:
    """Refuse a data frame with anything but numbers in it, naming column and value; others have no names to tell."""
    if not hasattr(X, "columns") or not hasattr(X, "iloc"):
        return
    for j, name in enumerate(X.columns):
        column = X.iloc[:, j]
        if getattr(column.dtype, "kind", "O") in "biuf":
            continue
        for row, value in enumerate(column):
            if not is_missing(value) and not _is_number(value):
                raise ValueError(
                    f"column {name!r} of X has {value!r} in row {row}, which is not a number. Drop the column, or turn "
                    "it into numbers, for example with sklearn.preprocessing.OneHotEncoder in a ColumnTransformer."
                )


def check_text(values: Any, name: str, remedy: str) -> None:
    """Refuse text that is no number in an array, naming its place; other kinds are left to scikit-learn."""
    if not isinstance(values, (list, tuple, np.ndarray)) or np.ndim(values) not in (1, 2):
        return
    array = np.asarray(values)
    if array.dtype.kind not in "USO":
        return
    for place, value in np.ndenumerate(array):
        if isinstance(value, (str, bytes)) and not _is_number(value):
            where = ", ".join(f"{kind} {index}" for kind, index in zip(("row", "column"), place, strict=False))
            raise ValueError(f"{name} has {str(value)!r} in {where}, which is not a number. {remedy}")


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


def as_targets(y: Any) -> Array:
    """Targets as numbers, NaN where unlabelled."""
    values = y.to_numpy() if hasattr(y, "to_numpy") else y
    check_text(values, "y", "Correct it, or make it NaN: an unlabelled row.")
    targets: Array = check_array(
        y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y", ensure_min_samples=0
    )
    if targets.ndim == 2 and targets.shape[1] > 1:
        raise ValueError(
            f"y has {targets.shape[1]} columns, and an estimator has one target: fit one estimator for each column, "
            f"[clone(model).fit(X, y[:, j]) for j in range({targets.shape[1]})]. With the same random_state, "
            "SFRRegressor has the same clusters for all of them"
        )
    return targets


def check_finite(X: Array, names: tuple[str, ...]) -> None:
    """Refuse infinite values, naming their columns; NaN marks missing ones."""
    broken = np.isinf(X)
    if not broken.any():
        return
    bad = [f"{names[j]} ({broken[:, j].sum()} of {len(X)} rows)" for j in np.flatnonzero(broken.any(axis=0))]
    raise ValueError(f"Input X contains infinity, in {', '.join(bad)}. Make it NaN where it means a missing value")
