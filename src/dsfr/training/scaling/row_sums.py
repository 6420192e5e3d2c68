"""Sums of complete rows and of their products, of which the density of the rows is made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dsfr.core.arrays import SUM_ROWS, Array
from dsfr.core.clustering.normal_starts import RowMoments
from dsfr.core.density import MOST_CORRELATED, NormalSums, complete_sums
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.core.threads import each_chunk
from dsfr.storage.bundles import Bundle
from dsfr.training.tasks.declaration import array, optional
from dsfr.training.tasks.fields import FLAG
from dsfr.training.tasks.messages import scalar

ASKED = {"moments": optional(FLAG)}
ROW_SUMS = {
    "row_total": optional(array("d")),
    "row_products": replace(array("d(d+1)/2"), beside="row_total"),
}
"""Sums of scaled rows and of their products."""


def row_sums(X: Array, ranges: Ranges) -> Iterable[NormalSums]:
    """Sums of the scaled rows of every chunk of a batch and of their products."""
    return each_chunk(lambda chunk: complete_sums(scale_features(X[chunk], ranges)), len(X), SUM_ROWS)


def ask_moments(n_features: int) -> Bundle:
    """What `agree` needs to know to sum rows and their products; nothing where there are too many of them."""
    return {"moments": scalar(1.0)} if n_features <= MOST_CORRELATED else {}


def known_sums(counted: Bundle, n_samples: float, moments: RowMoments | None) -> NormalSums | None:
    """Sums of rows and products, from what `agree` has summed or from the moments that are known without it."""
    if moments is not None and len(moments.total) <= MOST_CORRELATED:
        return NormalSums(moments.n_samples, moments.total, moments.products)
    return NormalSums(n_samples, counted["row_total"], counted["row_products"]) if "row_total" in counted else None
