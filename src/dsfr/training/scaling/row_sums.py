"""Sums of complete rows and of their products, of which the density of the rows is made."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import SUM_ROWS, Array
from dsfr.core.clustering.normal_starts import RowMoments
from dsfr.core.density import MOST_CORRELATED, NormalSums, complete_sums, no_sums
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.core.threads import each_chunk
from dsfr.storage.bundles import Bundle
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array, at_least, optional
from dsfr.training.tasks.fields import FLAG
from dsfr.training.tasks.messages import scalar

ASKED = {"moments": optional(FLAG)}
ROW_SUMS = {
    "row_total": optional(array("d")),
    "row_products": optional(array("d(d+1)/2"), beside="row_total"),
    "row_squares": optional(array("d", rules=(at_least(0.0),)), beside="row_total"),
}
"""Sums of scaled rows, and of their products or, with many features, squares."""


def row_sums(shard: Shard, ranges: Ranges) -> Bundle:
    """Sums of the agent's scaled rows and of their products, of which the density of the rows is made."""
    sums = no_sums(shard.n_features)
    for X, _ in shard.batches():
        # A default argument binds the batch of this turn.
        def own(chunk: slice, X: Array = X) -> NormalSums:
            return complete_sums(scale_features(X[chunk], ranges))

        for part in each_chunk(own, len(X), SUM_ROWS):
            sums += part
    d = shard.n_features
    return {"row_total": sums.total, "row_squares" if len(sums.products) == d > 1 else "row_products": sums.products}


def ask_moments() -> Bundle:
    """What `agree` needs to know to sum rows and their products."""
    return {"moments": scalar(1.0)}


def known_sums(counted: Bundle, n_samples: float, moments: RowMoments | None) -> NormalSums | None:
    """Sums of rows and products, from what `agree` has summed or from the moments that are known without it."""
    if moments is not None:
        d = len(moments.total)
        squares = np.cumsum(np.append(0, np.arange(d, 1, -1)))  # where the diagonal is in a triangle
        products = moments.products if d <= MOST_CORRELATED else moments.products[squares]
        return NormalSums(moments.n_samples, moments.total, products)
    if "row_total" not in counted:
        return None
    products = counted["row_products"] if "row_products" in counted else counted["row_squares"]
    return NormalSums(n_samples, counted["row_total"], products)
