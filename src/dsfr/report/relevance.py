"""Which inputs matter most, for pages of tables with many columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dsfr.core.arrays import Array
from dsfr.model.model import Model

QUANTILES = (0.1, 0.9)
"""Between these of a feature, the change of the prediction decides how relevant it is."""


def by_relevance(model: Model, typical: Array, among: Array, first: Sequence[int] = ()) -> list[int]:
    """Numbers of the features: given ones, then those along which predictions vary most, from the typical row."""
    d = len(typical)
    rows = np.repeat(typical[None], 2 * d, axis=0)
    each = np.arange(d)
    rows[each, each], rows[d + each, each] = np.quantile(among, QUANTILES, axis=0)
    low, high = np.split(model.predict_rows(rows), 2)
    order = np.argsort(-np.abs(high / 2 - low / 2), kind="stable").tolist()
    return [*first, *(j for j in order if j not in first)]
