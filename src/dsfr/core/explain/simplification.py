"""Simplify a rule base: drop inactive rules, merge similar sets and equal rules, refit the weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import lstsq

from dsfr.core.arrays import Array
from dsfr.core.explain.rule_base import scaled_rows
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.predictor import Predictor

LEAST_SINGULAR_VALUE = 1e-8
"""Relative to the largest: directions of the weights with less are left as they were, since the rows do not determine
them."""


def simplify_predictor(predictor: Predictor, X: Array, *, similarity: float, min_strength: float) -> Predictor:
    """Drop rules below ``min_strength`` on all rows, merge sets above ``similarity``, merge rules with equal sets.

    The weights are then refitted to the predictions of the original model on ``X``; no labels are used. If there is
    nothing to simplify, the predictor is returned unchanged.
    """
    smaller = _without_inactive_rules(predictor, X, min_strength)
    smaller = _with_merged_rules(_with_merged_sets(smaller, similarity))
    if smaller is predictor:
        return predictor
    return _refitted(smaller, X, predictor.predict(X))


def set_similarity(centers: Array, widths: Array) -> Array:
    """Tanimoto similarity of Gaussian sets ``a``: ``<a,b> / (<a,a> + <b,b> - <a,b>)``, 1 for equal sets; (k, k)."""
    squares = widths[:, None] ** 2 + widths[None, :] ** 2
    cross = (
        np.outer(widths, widths) / np.sqrt(squares) * np.exp(-((centers[:, None] - centers[None, :]) ** 2) / squares)
    )
    own = np.diagonal(cross)
    similar: Array = cross / (own[:, None] + own[None, :] - cross)
    return similar


def n_sets(rules: Rules) -> int:
    """Number of distinct sets over all features."""
    pairs = np.stack([rules.centers, rules.widths], axis=2)
    return sum(len(np.unique(pairs[:, j], axis=0)) for j in range(pairs.shape[1]))


def _without_inactive_rules(predictor: Predictor, X: Array, min_strength: float) -> Predictor:
    strengths = predictor.basis.rules.strengths(scaled_rows(X, predictor))
    fires = strengths.max(axis=0) >= min_strength
    return predictor if fires.all() else _chosen(predictor, fires)


def _chosen(predictor: Predictor, rules: npt.NDArray[np.bool_]) -> Predictor:
    basis = predictor.basis.rules
    weights = predictor.weights.reshape(len(basis.centers), -1)[rules]
    shares = predictor.shares[rules]
    return replace(
        predictor,
        basis=replace(basis, centers=basis.centers[rules], widths=basis.widths[rules]),
        weights=weights.ravel(),
        shares=shares / shares.sum() if shares.sum() > 0 else np.full(len(shares), 1.0 / len(shares)),
    )


def _with_merged_sets(predictor: Predictor, similarity: float) -> Predictor:
    """Agglomerative merging of similar sets, feature by feature."""
    basis = predictor.basis.rules
    centers, widths = basis.centers.copy(), basis.widths.copy()
    for j in range(centers.shape[1]):
        _merge_sets(centers[:, j], widths[:, j], predictor.shares, similarity)
    if np.array_equal(centers, basis.centers) and np.array_equal(widths, basis.widths):
        return predictor
    return replace(predictor, basis=replace(basis, centers=centers, widths=widths))


def _merge_sets(centers: Array, widths: Array, shares: Array, similarity: float) -> None:
    """Merge sets of one feature in place: a group takes the mean of its sets, weighted by the shares of rules."""
    groups = [[k] for k in range(len(centers))]
    while len(groups) > 1:
        first = [group[0] for group in groups]
        similar = set_similarity(centers[first], widths[first])
        np.fill_diagonal(similar, -1.0)
        a, b = sorted(np.unravel_index(int(similar.argmax()), similar.shape))
        if similar[a, b] < similarity:
            return
        groups[a] += groups.pop(b)
        joined = groups[a]
        if len({(centers[k], widths[k]) for k in joined}) > 1:
            weights = np.maximum(shares[joined], 1e-12)
            centers[joined] = np.average(centers[joined], weights=weights)
            widths[joined] = np.average(widths[joined], weights=weights)


def _with_merged_rules(predictor: Predictor) -> Predictor:
    """Merge rules with equal sets; their strengths are equal, so their lines are averaged."""
    basis = predictor.basis.rules
    keys = np.concatenate([basis.centers, basis.widths], axis=1)
    _, first, owner = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    owner = owner.ravel()
    if len(first) == len(keys):
        return predictor
    weights = predictor.weights.reshape(len(keys), -1)
    order = np.argsort(first)
    means = np.array([weights[owner == group].mean(axis=0) for group in order])
    shares = np.array([predictor.shares[owner == group].sum() for group in order])
    kept = first[order]
    joined = replace(basis, centers=basis.centers[kept], widths=basis.widths[kept])
    return replace(predictor, basis=joined, weights=means.ravel(), shares=shares)


def _refitted(predictor: Predictor, X: Array, wanted: Array) -> Predictor:
    """The predictor with the smallest change of weights that minimises the squared distance to the wanted outputs."""
    H = predictor.basis.features(scaled_rows(X, predictor))
    gap = (wanted - predictor.predict(X)) / predictor.target_scale
    moved = lstsq(H, gap, cond=LEAST_SINGULAR_VALUE, check_finite=False)[0]
    return replace(predictor, weights=predictor.weights + moved)
