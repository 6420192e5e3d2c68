"""The graph Laplacian, the penalty of the paper's SFR-G and LapWNN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.basis import Basis
from dsfr.core.penalties.graph_laplacian import laplacian_gram
from dsfr.core.scaling.affine import scale_features
from dsfr.storage.bundles import Bundle
from dsfr.training.component import count, one_of, parameter
from dsfr.training.penalties.penalty import UnlabeledPenalty
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import Fields, optional, whole
from dsfr.training.tasks.messages import scaling_ranges

FULL_KERNEL = 0
MAX_NEIGHBORS = 1000
"""Neighbours of a row at most: their distances are in memory for all rows."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Graph(UnlabeledPenalty):
    """Graph Laplacian: predictions of similar rows should be similar.

    ``P = H'LH`` with the Laplacian ``L`` of a graph of each agent's rows, labelled or not.

    Parameters
    ----------
    weight : float, default=None
        Weight of the penalty (eta in the paper). None: 1e-4, or what ``tune`` chooses.
    n_neighbors : int, default=10
        Neighbours of a row; rows as near as the last of them are neighbours too.
    kernel : {"neighbors", "full"}, default="neighbors"
        Sparse graph of nearest neighbours, or the paper's full kernel (time grows with the square of the rows).
    """

    shorthand: ClassVar[str] = "graph"
    key: ClassVar[str] = "n_neighbors"
    default_weight: ClassVar[float] = 1e-4
    fields: ClassVar[Fields] = {"n_neighbors": optional(whole(0, MAX_NEIGHBORS))}

    n_neighbors: int = parameter(10, count(1, "a whole number >= 1; 10 is usual"))
    kernel: str = parameter("neighbors", one_of("neighbors", "full"))

    def message(self) -> Bundle:
        """Number of neighbours, 0 for the full kernel."""
        n_neighbors = FULL_KERNEL if self.kernel == "full" else self.n_neighbors
        return {"n_neighbors": np.asarray(n_neighbors, dtype=np.int64)}

    @classmethod
    def from_message(cls, broadcast: Bundle) -> Self:
        """The penalty of a broadcast."""
        n_neighbors = int(broadcast["n_neighbors"])
        return cls(kernel="full") if n_neighbors == FULL_KERNEL else cls(n_neighbors=n_neighbors)

    def gram(self, shard: Shard, memory: Bundle, broadcast: Bundle, basis: Basis, repeat: int = 0) -> Array:
        """``H'LH`` of the agent's rows, which are collected in memory for it."""
        X = scale_features(shard.collected()[0], scaling_ranges(memory, broadcast))
        return laplacian_gram(X, basis, n_neighbors=None if self.kernel == "full" else self.n_neighbors)
