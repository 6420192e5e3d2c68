"""Weights of labels: what `sample_weight` may be, and how labels count."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from dsfr.core.arrays import Array
from dsfr.core.scaling.affine import MAX_VALUE


def checked_weights(sample_weight: Any, n_rows: int) -> Array:
    """Weights as numbers, one for each row.

    Raises
    ------
    ValueError
        If there is not one number for each row, or one is negative, missing or too large.
    """
    weights: Array = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, ensure_min_samples=0, input_name="sample_weight"
    )
    if weights.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {weights.shape} for {n_rows} rows: give one number for every row")
    if (weights < 0.0).any() or (weights > MAX_VALUE).any():
        odd = float(weights[(weights < 0.0) | (weights > MAX_VALUE)][0])
        raise ValueError(f"sample_weight has {odd:g}; weights must lie between 0 and {MAX_VALUE:g}")
    return weights


def weighted_labels(y: Array, sample_weight: Any) -> tuple[Array, Array | None]:
    """Targets, NaN where the weight is 0, and the weights; None where every label weighs 1.

    Raises
    ------
    ValueError
        If weights are not numbers from 0 on, or that of every label is zero.
    """
    if sample_weight is None:
        return y, None
    weights = checked_weights(sample_weight, len(y))
    labeled = ~np.isnan(y)
    if labeled.any() and not weights[labeled].any():
        raise ValueError("sample_weight is zero for every labelled row: at least one label must have a weight above 0")
    y = np.where(weights > 0.0, y, np.nan)
    return y, None if (weights[~np.isnan(y)] == 1.0).all() else np.where(weights > 0.0, weights, 1.0)


def relative_weights(y: Array, weights: Array | None) -> tuple[Array | None, float]:
    """Weights divided by the mean weight of a label, and that mean."""
    labeled = ~np.isnan(y)
    if weights is None or not labeled.any():
        return weights, 1.0
    unit = float(weights[labeled].mean())
    relative = weights / unit
    return None if (relative[labeled] == 1.0).all() else relative, unit
