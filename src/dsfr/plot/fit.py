"""Plots of predictions: against true values, and along one feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from dsfr.core.arrays import Array, as_floats
from dsfr.model.inputs import as_matrix
from dsfr.model.model import Model
from dsfr.model.student import student_card
from dsfr.plot.axes import COLORS, Axes, axes_or_new, index_of, label_of, model_of

N_GRID = 300
MOST_CURVES = 300
"""Largest number of rows whose curves make the bands of a response."""


def predictions(model: Model | Any, X: Any, y: Any, *, coverage: float = 0.9, ax: Axes | None = None) -> Axes:
    """Predicted against true values of the labelled rows; on the dashed line predictions are right.

    If the model has uncertainty, bars are jackknife intervals of nominal ``coverage``.
    """
    model = model_of(model)
    rows, truth = as_matrix(X, model.feature_names, model.schema), as_floats(y, "y")
    if truth.shape != (len(rows),):
        raise ValueError(f"y has shape {truth.shape}; it needs one target for each of {len(rows)} rows")
    known = ~np.isnan(truth)
    if not known.any():
        raise ValueError("y has no known target: every one is NaN")
    ax = axes_or_new(ax)
    guess, truth = model.predict(rows[known]), truth[known]
    ends = [min(guess.min(), truth.min()), max(guess.max(), truth.max())]
    ax.plot(ends, ends, color="0.5", linestyle="--", linewidth=1.0, zorder=1)
    if model.half_widths([coverage]):
        low, high = model.interval(rows[known], coverage)
        bars = {"color": COLORS[0], "alpha": 0.15, "linewidth": 1.0, "label": f"{coverage:.0%} of targets"}
        ax.vlines(truth, low, high, zorder=2, **bars)
        ax.legend(frameon=False, fontsize="small")
    ax.scatter(truth, guess, s=12, color=COLORS[0], alpha=0.5, linewidths=0, zorder=3)
    name = label_of(model.target_name)
    ax.set(xlabel=f"true {name}", ylabel=f"predicted {name}")
    return ax


def response(
    model: Model | Any,
    feature: str | int,
    X: Any = None,
    *,
    at: Any = None,
    coverage: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """The prediction along one feature, the others as in ``at`` (default: the model's typical row).

    With rows ``X`` the line is the mean over rows that keep their other features (partial dependence), and the bands
    contain the middle half and the middle nine tenths of their curves. Without ``X``, the band contains the target with
    probability ``coverage``, if the model has uncertainty.
    """
    if X is not None and at is not None:
        raise ValueError("X averages over rows and at fixes one row: give one of them")
    model = model_of(model)
    j = index_of(model, feature)
    ax = axes_or_new(ax)
    grid = np.linspace(*_ends(model, j), N_GRID)
    at_rows = _rows(model, X, at)
    curves = _curves(model, j, grid, at_rows)
    if len(curves) > 1:
        for low, high, alpha in ((0.05, 0.95, 0.12), (0.25, 0.75, 0.22)):
            band = np.quantile(curves, [low, high], axis=0)
            ax.fill_between(grid, *band, color=COLORS[0], alpha=alpha, linewidth=0, label=f"{high - low:.0%} of rows")
        ax.legend(frameon=False, fontsize="small")
    elif model.half_widths([coverage]):
        ends = model.interval(_moved(j, grid, at_rows), coverage)
        ax.fill_between(grid, *ends, color=COLORS[0], alpha=0.15, linewidth=0, label=f"{coverage:.0%} of targets")
        ax.legend(frameon=False, fontsize="small")
    ax.plot(grid, curves.mean(axis=0), color=COLORS[0], linewidth=2.0)
    ax.set(xlabel=label_of(model.feature_names[j]), ylabel=label_of(model.target_name))
    return ax


def _rows(model: Model, X: Any, at: Any) -> Array:
    if X is not None:
        rows = as_matrix(X, model.feature_names, model.schema)
        return rows[np.unique(np.linspace(0, len(rows) - 1, MOST_CURVES).round().astype(np.int64))]
    if at is not None:
        return as_matrix([at], model.feature_names, model.schema)
    if model.is_student:
        return np.array(model.training["student"]["typical_row"], dtype=np.float64)[None]
    return model.structure.typical_row[None]


def _ends(model: Model, j: int) -> tuple[float, float]:
    """Lowest and highest value of a feature that the model follows."""
    domain = model.predictor.domain if model.is_student else model.structure.domain
    if model.is_student and model.predictor.limits is None:  # the file of another program: what the words span
        ends = [end for ramp in student_card(model).rules.ramps_of(j) for end in ramp] or [0.0, 1.0]
        return min(ends) - np.ptp(ends), max(ends) + np.ptp(ends)
    return float(domain.low[j]), float(domain.high[j])


def _curves(model: Model, j: int, grid: Array, rows: Array) -> Array:
    """Predictions of every row with its feature ``j`` moved along the grid; shape (rows, grid)."""
    return model.predict(_moved(j, grid, rows)).reshape(len(rows), len(grid))


def _moved(j: int, grid: Array, rows: Array) -> Array:
    """Every row at every place of the grid along feature ``j``; shape (rows * grid, d)."""
    moved = np.repeat(rows, len(grid), axis=0)
    moved[:, j] = np.tile(grid, len(rows))
    return moved
