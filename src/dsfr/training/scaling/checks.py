"""What cannot be trained on is refused early: numbers that are too large, too many weights or rules."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from dsfr.core.scaling.affine import MAX_VALUE, Ranges
from dsfr.training.tasks.symbols import MAX_WEIGHTS

if TYPE_CHECKING:
    from dsfr.training.settings import Settings

NO_LABEL = "no row is labelled: every target is NaN, at every agent. Give at least one row a known target."

FEW_ROWS, FEW_RULES = 2, 10
"""Rows per rule up to which there are too many rules: the width of such a cluster is the distance of two rows. Ten
rules or fewer are never too many: they cost nothing, and the default must fit tables of any size."""


def check_targets(low: float, high: float) -> None:
    """Refuse targets that are too large to compute with.

    Raises
    ------
    ValueError
        Naming the value and the remedy.
    """
    farthest = max(low, high, key=abs)
    if abs(farthest) > MAX_VALUE:
        raise ValueError(
            f"y has a target of {farthest:g}; targets must lie between {-MAX_VALUE:g} and {MAX_VALUE:g}. Make it NaN "
            "if it stands for a missing value, or train on targets in larger units"
        )


def check_features(ranges: Ranges) -> None:
    """Refuse features with values that are too large to compute with.

    Raises
    ------
    ValueError
        Naming the column, the value and the remedy.
    """
    sizes = np.maximum(np.abs(ranges.low), np.abs(ranges.high))
    column = int(sizes.argmax())
    if sizes[column] > MAX_VALUE:
        raise ValueError(
            f"X has values up to {sizes[column]:g} in size in column {column} (columns are counted from 0); features "
            f"must lie between {-MAX_VALUE:g} and {MAX_VALUE:g}. Drop rows where such a number stands for a missing "
            "value, or use larger units"
        )


def checked_ranges(settings: Settings, n_features: int) -> Ranges | None:
    """Declared ranges of the features, if there are any.

    Raises
    ------
    ValueError
        If they are those of another number of features.
    """
    declared = settings.scaling.declared
    if declared is not None and len(declared.low) != n_features:
        raise ValueError(
            f"scaling={settings.scaling!r} declares the ranges of {len(declared.low)} features, and there are "
            f"{n_features}: give the lowest and the highest value of every one"
        )
    return declared


def check_size(settings: Settings, n_features: int) -> None:
    """Refuse a system of weights that is too large to solve.

    Raises
    ------
    ValueError
        Naming the number of weights and the remedy.
    """
    if settings.basis == "wavelets":
        n_weights, remedy = settings.n_nodes, "use fewer nodes"
    else:
        n_weights, remedy = settings.most_rules * (n_features + 1), "use fewer rules or fewer columns"
        if settings.most_rules > settings.n_rules:
            remedy = f"lower n_models={settings.n_models} (every second model has twice the rules), {remedy}"
    if n_weights > MAX_WEIGHTS:
        raise ValueError(
            f"{n_weights} weights (from {n_features} features) are too many: their system would take "
            f"{8e-9 * n_weights**2:.1f} GB, and at most {MAX_WEIGHTS} are allowed. {remedy[0].upper()}{remedy[1:]}."
        )


def warn_of_many_rules(settings: Settings, n_samples: float) -> None:
    """Warn, before any round of clustering, of more rules than the rows of all agents can tell apart."""
    if settings.basis == "rules" and settings.n_rules > FEW_RULES and n_samples <= FEW_ROWS * settings.n_rules:
        warnings.warn(
            f"n_rules={settings.n_rules} is too many for {int(n_samples)} rows: a rule is made from a cluster of rows, "
            f"and there are {n_samples / settings.n_rules:.2g} rows per rule. Lower n_rules to at most "
            f"{max(int(n_samples) // 10, 1)}, ten rows each, or add rows; they need no labels.",
            UserWarning,
            stacklevel=2,
        )
