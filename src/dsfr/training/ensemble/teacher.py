"""A trained mixture at the agents: its broadcast, its predictions of an agent's rows, and its leave-one-out errors.

Everything that learns from a trained mixture uses these functions alone, so that a new kind of member needs a change
here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.linalg import solve_triangular

from dsfr.core.arrays import Array
from dsfr.core.prediction.link import Link
from dsfr.core.prediction.mixture import Mixture
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.storage.bundles import Bundle
from dsfr.training.ensemble.members import base_message, left_out_rows, member_predictions
from dsfr.training.shard import LOG_TARGET, Shard
from dsfr.training.tasks.declaration import Fields, array, number
from dsfr.training.tasks.fields import POSITIVE
from dsfr.training.tasks.messages import pack, scalar, unpack, unpack_basis

LINKED: Fields = {
    "link": array(4),
    "own_mean": number(),
    "own_scale": POSITIVE,
}
"""From values of a mixture to the target's own scale, see `link_arrays`."""


def link_arrays(link: Link, own_mean: float, own_scale: float) -> Bundle:
    """The way from values of a mixture to standardised targets on their own scale."""
    numbers = np.array([float(link.is_log), link.factor, link.low, link.high])
    return {"link": numbers, "own_mean": scalar(own_mean), "own_scale": scalar(own_scale)}


def on_own_scale(values: Array, broadcast: Bundle) -> Array:
    """Values of a broadcast mixture, in deviations of what it learns, as predictions in deviations of the target."""
    learnt = float(broadcast["target_mean"]) + float(broadcast["target_scale"]) * values
    predictions = _link(broadcast).predictions(learnt)
    return (predictions - float(broadcast["own_mean"])) / float(broadcast["own_scale"])


def _link(broadcast: Bundle) -> Link:
    is_log, *others = broadcast["link"].tolist()
    return Link(bool(is_log), *others)


def own_targets(y: Array, memory: Mapping[str, Array]) -> Array:
    """Targets on their own scale, from those on the scale of learning."""
    targets: Array = np.exp(y) if LOG_TARGET in memory else y
    return targets


def mixture_arrays(mixture: Mixture, *, with_factors: bool) -> Bundle:
    """The broadcast of a mixture, with the factors of its systems where labels are to be left out.

    Raises
    ------
    ValueError
        If factors are asked for and the mixture was trained without uncertainty.
    """
    first = mixture.members[0].predictor
    message = {
        **pack(first.ranges),
        "target_mean": scalar(first.target_mean),
        "target_scale": scalar(first.target_scale),
        "shares": np.array([member.share for member in mixture.members]),
    }
    for i, member in enumerate(mixture.members):
        arrays = {**member.predictor.basis.arrays(), "weights": member.predictor.weights}
        if with_factors:
            if member.posterior is None:
                raise ValueError("leave-one-out needs a mixture trained with uncertainty=True")
            arrays["factor"] = member.posterior.factor
            arrays["noise"] = scalar(member.posterior.noise / first.target_scale)
        message |= {f"{name}_{i}": array for name, array in arrays.items()}
    return message


def mixture_predictions(X: Array, broadcast: Bundle, *, fast: bool = False) -> Array:
    """Predictions of a broadcast mixture for rows that are not scaled, in deviations of the target; shape (n,)."""
    parts = (part @ broadcast["shares"] for part in member_predictions(X, broadcast, fast=fast))
    return np.concatenate([np.empty(0), *parts])


def mixture_deviations(X: Array, broadcast: Bundle) -> Array:
    """Deviations of new observations from a broadcast mixture with factors, in deviations of the target; shape (n,)."""
    bases = [base_message(broadcast, i) for i in range(len(broadcast["shares"]))]
    mean, square = np.zeros(len(X)), np.zeros(len(X))
    scaled = scale_features(X, unpack(Ranges, broadcast))
    for share, base in zip(broadcast["shares"].tolist(), bases, strict=True):
        H = unpack_basis(base).features(scaled)
        values, root = H @ base["weights"], solve_triangular(base["factor"], H.T, trans="T")
        mean += share * values
        square += share * (float(np.square(base["noise"])) * (1.0 + np.einsum("pn,pn->n", root, root)) + values**2)
    learnt = float(broadcast["target_mean"]) + float(broadcast["target_scale"]) * mean
    spread = float(broadcast["target_scale"]) * np.sqrt(np.maximum(square - mean**2, 0.0))
    return _link(broadcast).deviations(learnt, spread) / float(broadcast["own_scale"])


def left_out_averages(shard: Shard, memory: Bundle, broadcast: Bundle) -> Array:
    """Leave-one-out predictions of a broadcast mixture for labelled rows, in deviations of the target; shape (n,)."""
    averages = [rows.averages(broadcast["shares"]) for rows in left_out_rows(shard, memory, broadcast)]
    return np.concatenate([np.empty(0), *averages])
