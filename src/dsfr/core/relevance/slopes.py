"""Relevance of features from the mean squared slope of a model.

The mean squared slope ``E (df/dx_j)^2`` over rows needs no labels beyond those the model has learnt from, and adds over
agents. Features scaled by its root before clustering are relevant in proportion to how much the target changes with
them, the diagonal of the average gradient outer product (Radhakrishnan et al. 2024).
"""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.compiled import rule_strengths
from dsfr.core.features.membership import Gaussian, membership_of
from dsfr.core.features.takagi_sugeno import Rules, firing_strengths

MIN_RELEVANCE = 0.02
"""Relative to the most relevant feature. Not 0, because a feature that is removed cannot become relevant again."""


def slopes(X: Array, rules: Rules, weights: Array, *, fast: bool = False) -> Array:
    """Gradient of the model at every scaled row; shape (n, d).

    With strengths ``p_k``, lines ``g_k`` and the prediction ``f = sum p_k g_k``, the slope along feature j is
    ``sum_k p_k w_kj + sum_k p_k (g_k - f) l'(z_kj) / s_kj``, where ``l`` is the logarithm of the membership function.
    """
    lines = weights.reshape(len(rules.centers), -1)
    if fast and rules.compiled:
        strengths = rule_strengths(X, rules.centers, rules.widths)
    else:
        strengths = firing_strengths(X, rules)
    values = lines[:, 0] + X @ lines[:, 1:].T
    predictions = np.einsum("nk,nk->n", strengths, values)
    pulls = strengths * (values - predictions[:, None])
    gradient: Array = strengths @ lines[:, 1:]
    if rules.membership != Gaussian.name:
        membership = membership_of(rules.membership)
        for k, (center, width) in enumerate(zip(rules.centers, rules.widths, strict=True)):
            gradient += pulls[:, k : k + 1] * membership.slope((X - center) / width) / width
        return gradient
    # Gaussian sets: l'(z) = -2z, two matrix products instead of a loop over rules.
    precisions = rules.widths**-2.0
    gradient -= 2.0 * (X * (pulls @ precisions) - pulls @ (rules.centers * precisions))
    return gradient


def relevance(mean_squares: Array) -> Array:
    """Relevance of every feature, 1 for the most relevant; all 1 for a constant model."""
    steepness = np.sqrt(mean_squares)
    top = float(steepness.max())
    if not 0.0 < top < np.inf:
        return np.ones_like(steepness)
    return np.maximum(steepness / top, MIN_RELEVANCE)


def effective_features(stretch: Array) -> float:
    """Effective number of features of a stretched space, between 1 and their number."""
    squares = stretch**2
    return float(squares.sum() / squares.max())
