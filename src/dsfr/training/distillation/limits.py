"""Limits of the features of lines, chosen so that lines follow the teacher: one round for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.distillation.joint_sums import JointSums
from dsfr.core.distillation.knots import N_KNOTS
from dsfr.core.distillation.limits import Limits, chosen_limits, piece_columns, possible_spans
from dsfr.core.distillation.lines import matrices
from dsfr.core.distillation.tree import Tree, ramps_by_feature
from dsfr.core.features.linguistic import LinguisticRules
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.distillation.columns import CONDITIONS, LINE_FEATURES, Columns
from dsfr.training.distillation.taught import KEPT_TEACHER, taught_blocks
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import array
from dsfr.training.tasks.fields import ASCENDING
from dsfr.training.tasks.messages import unpack, upper_triangle
from dsfr.training.tasks.registry import task
from dsfr.training.tasks.semidefinite import gram_triangles


@task(
    verb="sum",
    stage="distillation",
    reveals="Averages of known functions over the agent's rows: products of parts of features between quantiles, of "
    "two features at a time, and of these and predictions, by rule; with few rows, nearly the rows.",
    broadcast={**CONDITIONS, **LINE_FEATURES, "line_knots": array("d", N_KNOTS, rules=(ASCENDING,))},
    contributes={"products": array("k", "(10u+2)(10u+3)/2", rules=(gram_triangles("10u+2"),))},
    needs=KEPT_TEACHER,
)
def piece_sums(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): products of the pieces of line features and predictions, weighted by strengths, rule by rule."""
    rules, columns = LinguisticRules.of_arrays(broadcast), broadcast["line_features"]
    knots = _scaled_knots(broadcast["line_knots"], Columns(columns, unpack(Ranges, broadcast)))
    size = 2 + len(columns) * (N_KNOTS + 1)
    products = np.zeros((rules.n_rules, size, size))
    for X, U in taught_blocks(shard, memory, broadcast, columns):
        H = np.column_stack([U[:, 0], piece_columns(U[:, 1:-1], knots), U[:, -1]])
        for k, strengths in enumerate(rules.strengths(X).T):
            products[k] += (strengths[:, None] * H).T @ H
    return memory, {"products": np.stack([upper_triangle(matrix) for matrix in products])}


def _scaled_knots(knots: Array, columns: Columns) -> Array:
    """Knots of the features of lines, scaled as these; shape (u, q)."""
    scaled: Array = scale_features(knots.T, columns.ranges).T[columns.features]
    return scaled


@dataclass(frozen=True, slots=True)
class Bending:
    """What limits may be chosen."""

    knots: Array
    """Where they may be, in the units of the data; shape (d, q)."""
    widest: Ranges
    """Limits that all rows are within."""
    worth: float
    """Drop of the squared distance to the teacher, summed over the rows, that a limit must be worth."""


@dataclass(frozen=True, slots=True)
class Bent:
    """Limits of lines, in the units of the data."""

    plane: JointSums
    """Sums of one rule without conditions, within its limits."""
    plane_limits: Ranges
    limits: Ranges
    """Of the lines of more rules."""

    def message(self) -> Bundle:
        """What agents must know of the limits of the lines of more rules."""
        return {"line_low": self.limits.low, "line_high": self.limits.high}


def agree_limits(engine: Engine, tree: Tree, columns: Columns, bending: Bending) -> Bent:
    """Limits for one rule, and for the rules of a tree and all smaller ones on the way: no ramp is beyond them."""
    rules = tree.rules(columns.n_features)
    summed = engine.sum("piece_sums", {**rules.arrays(), **columns.message(), "line_knots": bending.knots})
    knots = _scaled_knots(bending.knots, columns)
    pieces = matrices(summed["products"], 2 + knots.size + len(knots))
    whole = pieces.sum(axis=0, keepdims=True)
    plane = chosen_limits(whole, [None], knots, _possible(columns, bending, {}), bending.worth)
    ramps = ramps_by_feature([leaf.bounds for leaf in tree.leaves])
    kept = {feature: (found[0][0], found[-1][1]) for feature, found in ramps.items()}
    possible, priors = _possible(columns, bending, kept), [leaf.prior for leaf in tree.leaves]
    limits = plane if len(priors) == 1 else chosen_limits(pieces, priors, knots, possible, bending.worth)
    own = (_ranges(found, columns, bending) for found in (plane, limits))
    return Bent(JointSums.of(plane.sums(whole[0]), 1), *own)


def _possible(columns: Columns, bending: Bending, kept: dict[int, tuple[float, float]]) -> list[list[tuple[int, int]]]:
    """Limits that every feature of lines may have."""
    return [possible_spans(bending.knots[j], kept.get(j)) for j in columns.features.tolist()]


def _ranges(limits: Limits, columns: Columns, bending: Bending) -> Ranges:
    """Limits of all features, in the units of the data."""
    low, high = bending.widest.low.copy(), bending.widest.high.copy()
    unscaled = replace(limits, knots=bending.knots[columns.features])
    for column, j in enumerate(columns.features.tolist()):
        lower, upper = unscaled.ends(column)
        low[j] = low[j] if lower is None else lower
        high[j] = high[j] if upper is None else upper
    return Ranges(low, high)
