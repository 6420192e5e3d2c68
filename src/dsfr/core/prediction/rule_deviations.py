"""How far observations lie from short rules: every rule has a deviation, which grows with the distance from the rows.

A row has the mean of the rules' variances, weighted by their strengths, times ``1 + m^2 / n`` with the squared distance
``m^2`` of the row from the mean of all rows (in deviations, correlations taken into account) and ``n`` labels: the
factor by which the variance of a prediction grows along a line that ``n`` labels determine.
"""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.density import RowDensity
from dsfr.core.distillation.rounding import power_below, rounded

DIGITS = 3
"""Digits of a deviation."""
LEAST = 1e-3
"""Smallest deviation of a rule, as a part of the largest: errors are divided by it."""


def row_deviations(by_rule: Array, strengths: Array, X: Array, density: RowDensity | None, n: float) -> Array:
    """Deviations of new observations, at the mean of the rows and where they are; shape (2, n)."""
    unit = float(by_rule.max(initial=0.0))
    if unit == 0.0:
        return np.zeros((2, len(X)))
    usual = unit * np.sqrt(np.maximum(strengths @ (by_rule / unit) ** 2, 0.0))
    far = np.zeros(len(X)) if density is None else density.squared_distances(X)
    return np.stack([usual, usual * np.sqrt(1.0 + far / max(n, 1.0))])


def deviations_by_rule(variances: Array, masses: Array) -> Array:
    """Deviations of rules from sums of squares over their rows, and the sums of strengths; (k,).

    A rule without rows has that of all; without any error, all are 1.
    """
    overall = float(variances.sum() / max(float(masses.sum()), np.finfo(np.float64).tiny))
    found = np.sqrt(np.where(masses > 0.0, variances / np.where(masses > 0.0, masses, 1.0), overall))
    largest = float(found.max(initial=0.0))
    floored: Array = np.maximum(found, LEAST * largest) if largest > 0.0 else np.ones(len(found))
    return floored


def rounded_deviations(by_rule: Array) -> Array:
    """Deviations with as many digits as are printed."""
    return np.array([rounded(value, power_below(value) - DIGITS + 1) for value in by_rule.tolist()])
