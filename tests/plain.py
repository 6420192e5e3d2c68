"""The paper's formulas once more, as plainly as can be: what the package computes is compared with these."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from dsfr.core.features.takagi_sugeno import MIN_WIDTH
from dsfr.core.penalties.interpolation_consistency import Pairs, interpolation_gap
from dsfr.core.scaling.affine import scale_features
from dsfr.training import ICR, Graph
from dsfr.training.shard import Purpose


def powers(X, centers, fuzzifier):
    """``u^a``, with ``u`` from eq. (5); distances are relative to the nearest center, so that nothing overflows."""
    distances = cdist(X, centers, "sqeuclidean")
    nearest = distances.min(axis=1, keepdims=True)
    ratios = np.where(nearest > 0, nearest / np.where(distances > 0, distances, 1.0), distances == 0)
    closeness = ratios ** (1 / (fuzzifier - 1))
    return (closeness / closeness.sum(axis=1, keepdims=True)) ** fuzzifier


def variances(X, centers, fuzzifier):
    """Eq. (19), squared; shape (k, d). NaN for a cluster without mass."""
    u = powers(X, centers, fuzzifier)
    mass = u.sum(axis=0)
    square = np.array([(u[:, k, None] * (X - center) ** 2).sum(axis=0) for k, center in enumerate(centers)])
    return np.where(mass[:, None] > 0, square, np.nan) / np.where(mass > 0, mass, 1.0)[:, None]


def paper_widths(rows, centers, fuzzifier, width_scale=1.0):
    """Eq. (18) with every agent's own centers; a cluster that is empty at an agent does not count there."""
    local = np.array([variances(X, m, fuzzifier) for X, m in zip(rows, centers, strict=True)])
    sizes = np.array([len(X) for X in rows])[:, None, None] * ~np.isnan(local)
    pooled = (sizes * np.nan_to_num(local)).sum(axis=0) / np.maximum(sizes.sum(axis=0), 1)
    return np.maximum(width_scale * np.sqrt(pooled), MIN_WIDTH)


def algorithm_1(rows, start, rho, fuzzifier, rounds):
    """Per round the consensus before it, the agents' centers before and after it: eq. (5), (26), (27), (25)."""
    L, r = len(rows), start
    m, dual = [start] * L, [np.zeros_like(start)] * L
    for _ in range(rounds):
        before = m
        u = [powers(X, centers, fuzzifier) for X, centers in zip(rows, m, strict=True)]
        m = [(u[i].T @ rows[i] - dual[i] + rho * r) / (u[i].sum(axis=0) + rho)[:, None] for i in range(L)]
        yield r, before, m
        r = sum(dual) / L / rho + sum(m) / L
        dual = [dual[i] + rho * (m[i] - r) for i in range(L)]
    yield r, m, None


def algorithm_2(systems, rho, ridge):
    """Per round the consensus before it and the agents' weights after it: eq. (36) with rho_p in Q, (38), (35).

    ``systems`` has the matrices and right-hand sides of all agents, round by round.
    """
    z = np.zeros_like(systems[0][1][0])
    dual = [np.zeros_like(z)] * len(systems[0][1])
    for A, b in systems:
        L = len(b)
        w = [np.linalg.solve(A[i] + rho * np.eye(len(z)), b[i] + rho * z - dual[i]) for i in range(L)]
        yield z, w
        z = sum(dual[i] + rho * w[i] for i in range(L)) / (ridge + rho * L)
        dual = [dual[i] + rho * (w[i] - z) for i in range(L)]


def graph_weights(X, n_neighbors):
    """Heat-kernel weights between rows: as near as either's n-th nearest other row, ties and all; None joins all."""
    distances = cdist(X, X)
    kernel = np.exp(-(distances**2) / 2)
    if n_neighbors is None or len(X) < 2:
        return kernel
    others = distances + np.diag(np.full(len(X), np.inf))
    reach = np.sort(others, axis=1)[:, min(n_neighbors, len(X) - 1) - 1]
    return kernel * (others <= np.maximum(reach[:, None], reach) * (1 + 1e-9))


def laplacian_gram(H, W):
    return H.T @ (np.diag(W.sum(axis=1)) - W) @ H


def scaled(shard, ranges):
    return scale_features(shard.rows.X, ranges)


def labeled_rows(shard):
    return ~np.isnan(shard.rows.y)


def gap_rows(shard, ranges, basis, told, repeat=0):
    """Interpolation gaps of one agent, one row per pair; of fewer pairs than rows, as long as those of as many."""
    U = scaled(shard, ranges)[~labeled_rows(shard)]
    drawn = min(len(U), told.penalty.most_pairs) if told.penalty.n_pairs is None else told.penalty.n_pairs
    pairs = Pairs.draw(len(U), drawn, told.penalty.mix_concentration, shard.rng(told.seed, Purpose.PAIRS, repeat))
    length = np.sqrt(len(U) / drawn) if told.penalty.n_pairs is None and len(U) > drawn else 1.0
    return length * interpolation_gap(U[pairs.first], U[pairs.second], pairs.mix, basis)


def local_system(shard, ranges, basis, target, told, repeat=0):
    """``A_l``, ``b_l`` and ``y'y`` of one agent, for targets of mean and deviation ``target``."""
    Z, labeled = scaled(shard, ranges), labeled_rows(shard)
    H, y = basis.features(Z[labeled]), (shard.rows.y[labeled] - target[0]) / target[1]
    penalty = np.zeros((basis.n_outputs, basis.n_outputs))
    if isinstance(told.unlabeled, ICR):
        B = gap_rows(shard, ranges, basis, told, repeat)
        penalty = B.T @ B
    elif isinstance(told.unlabeled, Graph):
        W = graph_weights(Z, None if told.penalty.kernel == "full" else told.penalty.n_neighbors)
        penalty = laplacian_gram(basis.features(Z), W)
    return H.T @ H + told.penalty.strength * penalty, H.T @ y, float(y @ y)


def pooled_weights(shards, ranges, basis, target, told):
    """Least squares on all agents' rows stacked: labelled rows, penalty rows of every agent, ridge rows."""
    p = basis.n_outputs
    H = basis.features(np.concatenate([scaled(s, ranges)[labeled_rows(s)] for s in shards]))
    y = (np.concatenate([s.rows.y[labeled_rows(s)] for s in shards]) - target[0]) / target[1]
    penalty = np.empty((0, p))
    if isinstance(told.unlabeled, ICR):
        penalty = np.concatenate([gap_rows(shard, ranges, basis, told) for shard in shards])
    elif isinstance(told.unlabeled, Graph):
        n_neighbors = None if told.penalty.kernel == "full" else told.penalty.n_neighbors
        tables = [scaled(shard, ranges) for shard in shards]
        grams = [laplacian_gram(basis.features(Z), graph_weights(Z, n_neighbors)) for Z in tables]
        values, vectors = np.linalg.eigh(sum(grams))
        penalty = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    stacked = np.vstack([H, np.sqrt(told.penalty.strength) * penalty, np.sqrt(told.ridge) * np.eye(p)])
    right = np.concatenate([y, np.zeros(len(stacked) - len(y))])
    return np.linalg.lstsq(stacked, right, rcond=None)[0]
