"""Rows and noise as they are given, checked: arrays, data frames, or numbers by the name of a feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dsfr.core.arrays import Array, as_floats
from dsfr.model.frames import as_frame, encode_frame
from dsfr.model.schema import Schema


def as_matrix(X: Any, feature_names: Sequence[str], schema: Schema | None = None, *, gaps: bool = False) -> Array:
    """Rows of an array or data frame as the model's features; with ``gaps``, values may be missing (NaN).

    Of a model with categories, which has a schema, a data frame has its columns and an array its features.

    Raises
    ------
    ValueError
        If the shape is wrong, or a value is infinite or must not be missing.
    """
    matrix = features_of(X, feature_names, schema)
    if matrix.ndim != 2 or matrix.shape[1] != len(feature_names):
        raise ValueError(
            f"X has shape {matrix.shape}; the model needs two dimensions and {len(feature_names)} columns: "
            f"{', '.join(feature_names)}"
        )
    broken = np.isinf(matrix) if gaps else ~np.isfinite(matrix)
    if broken.any():
        bad = [feature_names[j] for j in np.flatnonzero(broken.any(axis=0)).tolist()]
        what = "infinite" if gaps else "missing or infinite"
        raise ValueError(f"X has {what} values in {', '.join(bad)}: fill them in or drop those rows")
    return matrix


def features_of(X: Any, feature_names: Sequence[str], schema: Schema | None) -> Array:
    """Rows of an array or data frame as numbers, which may be missing, in the order of the model's features."""
    X = as_frame(X)
    if schema is not None and hasattr(X, "columns"):
        return encode_frame(X, schema)
    return as_floats(by_name(X, feature_names), "X")


def as_noise(X_std: Any, X: Array, feature_names: Sequence[str]) -> Array | None:
    """Standard deviations of the noise of rows ``X``, shape (n, d); None if there is none.

    Raises
    ------
    ValueError
        If they are negative or NaN, have the wrong shape, or name a feature that does not exist.
    """
    if X_std is None:
        return None
    if isinstance(X_std, Mapping):
        unknown = [str(name) for name in X_std if name not in feature_names]
        if unknown:
            raise ValueError(
                f"X_std names {', '.join(unknown)}, which the model does not have; it has {', '.join(feature_names)}"
            )
        X_std = [X_std.get(name, 0.0) for name in feature_names]
    noise = as_floats(by_name(X_std, feature_names), "X_std")
    if noise.shape not in ((), (X.shape[1],), X.shape):
        raise ValueError(
            f"X_std has shape {noise.shape}; it must be one number, one for each of {X.shape[1]} features, or one for "
            f"each value of X, {X.shape}"
        )
    if not (noise >= 0.0).all():
        raise ValueError("X_std has negative or missing values: a standard deviation is a number >= 0")
    return np.broadcast_to(noise, X.shape) if noise.any() else None


def by_name(X: Any, feature_names: Sequence[str]) -> Any:
    """Columns of a data frame in the model's order; unchanged if X has no text as column names."""
    columns = list(getattr(X, "columns", ()))
    if not columns or not all(isinstance(column, str) for column in columns):
        return X
    missing = [name for name in feature_names if name not in columns]
    if missing:
        raise ValueError(f"X lacks the column(s) {', '.join(missing)} that the model was trained on")
    return X[list(feature_names)]
