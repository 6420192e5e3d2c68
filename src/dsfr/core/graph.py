"""Graph smoothness ``H'LH`` with the Laplacian ``L = D - W`` of heat-kernel weights ``exp(-|x_i - x_j|^2 / 2)``.

Features are scaled to [-1, 1], so the kernel's bandwidth of 1 is half a feature's range. Neither the n x n kernel nor
the whole of ``H`` is ever formed.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial import KDTree

from dsfr.core.arrays import Array, row_blocks
from dsfr.core.clusters import squared_distances
from dsfr.core.features import Basis

BLOCK_ROWS = 1024


def laplacian_gram(X: Array, basis: Basis, *, n_neighbors: int | None) -> Array:
    """``H'LH`` over the rows of ``X``; ``n_neighbors=None`` joins every row with every other, as in the paper."""
    if len(X) < 2:
        return np.zeros((basis.n_outputs, basis.n_outputs))
    gram = _full_gram(X, basis) if n_neighbors is None else _neighbor_gram(X, basis, n_neighbors)
    return (gram + gram.T) / 2


def neighbor_weights(X: Array, n_neighbors: int) -> csr_array:
    """Symmetric heat-kernel weights between each row and its nearest ones (joined if either is near the other)."""
    n_rows = len(X)
    count = min(n_neighbors, n_rows - 1)
    distances, nearest = KDTree(X).query(X, k=count + 1)
    rows = np.repeat(np.arange(n_rows), count + 1)
    columns = nearest.ravel()
    # Among duplicate rows a row need not be its own first neighbour, so itself is dropped by index, not by position.
    others = rows != columns
    kernel = np.exp(-0.5 * distances.ravel() ** 2)
    directed = csr_array((kernel[others], (rows[others], columns[others])), shape=(n_rows, n_rows))
    return csr_array(directed.maximum(directed.T))


def _neighbor_gram(X: Array, basis: Basis, n_neighbors: int) -> Array:
    """Sum over row blocks I of ``H_I' (D_I H_I - W_IJ H_J)`` where J are the neighbours of I."""
    # In the order of the tree's leaves, the neighbours of a block are few and mostly in it.
    X = X[KDTree(X).indices]
    weights = neighbor_weights(X, n_neighbors)
    degrees = weights.sum(axis=1)
    gram = np.zeros((basis.n_outputs, basis.n_outputs))
    for block in row_blocks(len(X), BLOCK_ROWS):
        H = basis.features(X[block])
        of_block = weights[block]
        near, positions = np.unique(of_block.indices, return_inverse=True)
        shape = (H.shape[0], len(near))
        compact = csr_array((of_block.data, positions, of_block.indptr), shape=shape)
        gram += H.T @ (degrees[block, None] * H - compact @ basis.features(X[near]))
    return gram


def _full_gram(X: Array, basis: Basis) -> Array:
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
