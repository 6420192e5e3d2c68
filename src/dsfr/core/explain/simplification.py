"""Fewer rules and fewer sets that predict nearly the same."""

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
    """Drop rules that stay under ``min_strength`` on all rows, share sets that are alike, join rules that became equal.

    Weights are then moved as little as it takes to predict on ``X`` what the model predicted before; labels play no
    part. If there was nothing to simplify, the predictor comes back as it was.
    """
    smaller = _without_silent_rules(predictor, X, min_strength)
    smaller = _with_joined_rules(_with_shared_sets(smaller, similarity))
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
    alike: Array = cross / (own[:, None] + own[None, :] - cross)
    return alike


def n_sets(rules: Rules) -> int:
    """Number of different sets, of all features together."""
    pairs = np.stack([rules.centers, rules.widths], axis=2)
    return sum(len(np.unique(pairs[:, j], axis=0)) for j in range(pairs.shape[1]))


def _without_silent_rules(predictor: Predictor, X: Array, min_strength: float) -> Predictor:
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
        shares=shares / shares.sum() if shares.sum() > 0 else shares,
    )


def _with_shared_sets(predictor: Predictor, similarity: float) -> Predictor:
    """Feature by feature, the two most similar groups of sets become one until none are similar enough."""
    basis = predictor.basis.rules
    centers, widths = basis.centers.copy(), basis.widths.copy()
    for j in range(centers.shape[1]):
        _share_sets(centers[:, j], widths[:, j], predictor.shares, similarity)
    if np.array_equal(centers, basis.centers) and np.array_equal(widths, basis.widths):
        return predictor
    return replace(predictor, basis=replace(basis, centers=centers, widths=widths))


def _share_sets(centers: Array, widths: Array, shares: Array, similarity: float) -> None:
    """Share sets of one feature, in place: a group has the mean of its members, weighted by the rules' shares."""
    groups = [[k] for k in range(len(centers))]
    while len(groups) > 1:
        first = [group[0] for group in groups]
        alike = set_similarity(centers[first], widths[first])
        np.fill_diagonal(alike, -1.0)
        a, b = sorted(np.unravel_index(int(alike.argmax()), alike.shape))
        if alike[a, b] < similarity:
            return
        groups[a] += groups.pop(b)
        joined = groups[a]
        if len({(centers[k], widths[k]) for k in joined}) > 1:
            weights = np.maximum(shares[joined], 1e-12)
            centers[joined] = np.average(centers[joined], weights=weights)
            widths[joined] = np.average(widths[joined], weights=weights)


def _with_joined_rules(predictor: Predictor) -> Predictor:
    """Rules with the same sets become one, with the mean of their lines: they fire alike, so lines average."""
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
