"""Graph smoothness ``H'LH`` with the Laplacian ``L = D - W`` of heat-kernel weights ``exp(-|x_i - x_j|^2 / 2)``.

Features are scaled to [-1, 1], so the kernel's bandwidth of 1 is half a feature's range. Neither the n x n kernel nor
the whole of ``H`` is ever formed.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import KDTree

from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.clustering.memberships import squared_distances
from dsfr.core.features.basis import FeatureMap

BLOCK_ROWS = 1024
TIE_FACTOR = 1.0 + 1e-9
"""Distances within this factor are ties, so that rounding does not decide who is a neighbour."""


def laplacian_gram(X: Array, basis: FeatureMap, *, n_neighbors: int | None) -> Array:
    """``H'LH`` over the rows of ``X``; ``n_neighbors=None`` is the paper's complete graph."""
    if len(X) < 2:
        return np.zeros((basis.n_outputs, basis.n_outputs))
    gram = _full_gram(X, basis) if n_neighbors is None else _neighbor_gram(X, basis, n_neighbors)
    return (gram + gram.T) / 2


def _neighbor_gram(X: Array, basis: FeatureMap, n_neighbors: int) -> Array:
    """Sum of ``w_ij (h_i - h_j)(h_i - h_j)'`` over joined rows, one block of distinct rows after another.

    Two rows are joined if one is at most as far from the other as that one's ``n_neighbors``-th nearest row. All ties
    are included, so the graph does not depend on the order of the rows. Equal rows are stored once with a count.
    """
    rows, counts = distinct_rows(X)
    tree = KDTree(rows)
    distances, nearest = _query(tree, rows, n_neighbors + 2)
    reach = _reach(distances, counts[nearest], min(n_neighbors, len(X) - 1))
    gram = np.zeros((basis.n_outputs, basis.n_outputs))
    for block in row_blocks(len(rows), BLOCK_ROWS):
        # In the order of the leaves of the tree, most neighbours of a block lie within it.
        members = tree.indices[block]
        found = _with_ties(tree, rows[members], reach[members], distances[members], nearest[members])
        edges, near = _edges(members, reach, counts, *found)
        H, H_near = basis.features(rows[members]), basis.features(rows[near])
        crossed = H.T @ (edges @ H_near)
        gram += H.T @ (edges.sum(axis=1)[:, None] * H) + H_near.T @ (edges.sum(axis=0)[:, None] * H_near)
        gram -= crossed + crossed.T
    return gram


def distinct_rows(X: Array) -> tuple[Array, IntArray]:
    """Distinct rows, sorted, and the count of each."""
    ordered = X[np.lexsort(X.T)]
    starts = np.flatnonzero(np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1)))
    return ordered[starts], np.diff(starts, append=len(X))


def _query(tree: KDTree, rows: Array, count: int) -> tuple[Array, IntArray]:
    """Distances and indices of the ``count`` nearest rows, the row itself included; shapes (n, count)."""
    found: tuple[Array, IntArray] = tree.query(rows, k=np.arange(1, min(count, tree.n) + 1))
    return found


def _reach(distances: Array, counts: IntArray, n_neighbors: int) -> Array:
    """Distance of the ``n_neighbors``-th nearest row, counting repetitions."""
    others = np.cumsum(counts, axis=1) - 1
    last = np.argmax(others >= n_neighbors, axis=1)
    reach: Array = TIE_FACTOR * distances[np.arange(len(distances)), last]
    return reach


def _with_ties(tree: KDTree, rows: Array, reach: Array, distances: Array, nearest: IntArray) -> tuple[Array, IntArray]:
    """Distances and indices of nearest rows, extended until all rows within reach are included."""
    while distances.shape[1] < tree.n and (distances[:, -1] <= reach).any():
        distances, nearest = _query(tree, rows, 2 * distances.shape[1])
    return distances, nearest


def _edges(
    members: IntArray, reach: Array, counts: IntArray, distances: Array, nearest: IntArray
) -> tuple[csr_array, IntArray]:
    """Weights of the edges from ``members`` to rows within their reach, and the indices of these rows, one per column.

    An edge within the reach of both ends occurs twice, so it counts half each time.
    """
    inside = (distances <= reach[members, None]) & (nearest != members[:, None])
    sources, targets, length = np.nonzero(inside)[0], nearest[inside], distances[inside]
    kernel = np.exp(-0.5 * length**2) * counts[members[sources]] * counts[targets]
    near, columns = np.unique(targets, return_inverse=True)
    weights = np.where(length <= reach[targets], 0.5 * kernel, kernel)
    return csr_array((weights, (sources, columns)), shape=(len(members), len(near))), near


def _full_gram(X: Array, basis: FeatureMap) -> Array:
    gram = np.zeros((basis.n_outputs, basis.n_outputs))
    for block in row_blocks(len(X), BLOCK_ROWS):
        H = basis.features(X[block])
        smoothed = np.zeros_like(H)
        degrees = np.zeros(len(H))
        for other in row_blocks(len(X), BLOCK_ROWS):
            kernel = np.exp(-0.5 * squared_distances(X[block], X[other]))
            smoothed += kernel @ basis.features(X[other])
            degrees += kernel.sum(axis=1)
        gram += H.T @ (degrees[:, None] * H - smoothed)
    return gram
