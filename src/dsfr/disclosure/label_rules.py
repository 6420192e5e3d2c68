"""Labels by rule: an owner can ask for several of its labels in every rule and curve, beyond their number in all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dsfr.core.arrays import Array
from dsfr.disclosure.differences import Weights, effective_rows, fewest_rows
from dsfr.disclosure.history import asked, distinct_values, has_centers, weights_of
from dsfr.disclosure.rules import Request
from dsfr.storage.bundles import Bundle


def label_mass(request: Request) -> str | None:
    """No rule and no set of a curve has a few own labels, nor has the difference to an earlier question."""
    least = request.policy.min_label_mass
    if least <= 0.0:
        return None
    new = list(asked(request))
    rules = [weights_of(one) for one in new if has_centers(one, is_cluster=False)]
    fewest = min((_fewest_labels(request, weights) for weights in (*rules, *_sets(request, new))), default=np.inf)
    if not fewest >= least:
        return _too_few(fewest, "a rule or a set of a curve with", least)
    before = [weights_of(one) for one in request.answered if has_centers(one, is_cluster=False)]
    fewest = fewest_rows(rules, [*before, *rules], lambda: _labeled(request), least) if rules else np.inf
    if not fewest >= least:
        return _too_few(fewest, "rules that differ from those of another question of this fit by", least)
    return None


def _fewest_labels(request: Request, weights: Weights) -> float:
    """Fewest own labels in a column of weights, in units of the largest weight; infinite for columns without labels."""
    total, largest = np.zeros(1), np.zeros(1)
    for X in _labeled(request):
        found = weights(X)
        total, largest = total + found.sum(axis=0), np.maximum(largest, found.max(axis=0, initial=0.0))
    return float(effective_rows(total, largest).min())


def _sets(request: Request, new: list[Bundle]) -> Iterator[Weights]:
    """Triangular sets about all knots that curves of the fit have had, column by column."""
    if not any("curve_knots" in one for one in new):
        return
    together = np.concatenate([one["curve_knots"] for one in (*new, *request.answered) if "curve_knots" in one])
    for j in range(together.shape[1]):
        yield _triangles(distinct_values(together[:, j]), j)


def _triangles(knots: Array, j: int) -> Weights:
    corners = np.eye(len(knots))
    return lambda X: np.stack([np.interp(X[:, j], knots, corner) for corner in corners], axis=1)


def _labeled(request: Request) -> Iterator[Array]:
    """The own labelled rows, batch by batch."""
    for X, y in request.shard.batches():
        yield X[~np.isnan(y)].astype(np.float64)


def _too_few(found: float, what: str, least: float) -> str:
    return (
        f"{what} {int(found)} of the own labels, and min_label_mass is {least:g}. Take fewer rules, or label more rows"
    )
