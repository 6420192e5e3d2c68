"""Members of an ensemble: what was trained, its broadcast, and its leave-one-out predictions at the agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dsfr.core.arrays import BLOCK_ROWS, Array
from dsfr.core.features.bases import AnyBasis
from dsfr.core.features.effects import OPTIONAL_ARRAYS, Effects
from dsfr.core.features.takagi_sugeno import Rules, line_predictions
from dsfr.core.prediction.stacking import LeftOut
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.core.solve.evidence import Tuned
from dsfr.core.solve.leave_one_out import left_out_residuals, left_out_variances, leverages
from dsfr.core.threads import each_chunk
from dsfr.storage.bundles import Bundle
from dsfr.training.scaling.survey import Population
from dsfr.training.settings import Settings
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import Fields, array
from dsfr.training.tasks.fields import BASIS_OR_EFFECTS, COUNT, MIXTURE, MIXTURE_WITH_FACTORS, SCORE
from dsfr.training.tasks.messages import pack, scalar, unpack, unpack_basis
from dsfr.training.tasks.registry import task
from dsfr.training.tasks.semidefinite import GRAM
from dsfr.training.weights.leave_one_out import LabelGroups, labeled_blocks
from dsfr.training.weights.problem import Solution

LEFT_OUT: Fields = {
    "products": array("m", "m", rules=(GRAM,)),
    "moment": array("m"),
    "target_square": SCORE,
    "n": COUNT,
}
"""A `LeftOut`."""
RULE_OPTIMISM = 1.2
"""Typical factor by which leave-one-out errors of rule bases are too small, because relevance and ridge saw all labels.
Chosen on the design tables of benchmarks/tables; for effects it is estimated table by table."""
SUMS_ALONE: Fields = {name: field for name, field in MIXTURE.items() if name not in OPTIONAL_ARRAYS}
"""Agents that share sums alone are not asked for products of three features, nor for levels."""


@dataclass(frozen=True)
class Base:
    """A trained member of an ensemble: a rule base, or effects of features, pairs and triples."""

    settings: Settings
    basis: AnyBasis
    shares: Array
    converged: bool
    found: Solution
    cluster_scale: float
    """Width of its sets over the deviation of their clusters."""
    mean_square_slopes: Array
    """Of its model along each feature, over all rows; ones where relevances are not asked for."""
    estimate_optimism: Callable[[], float] | None = None
    """Takes as long as the training of a member: a scale of the target that is given up never needs it."""
    is_plane: bool = False
    """Whether it is the member of lines with one prior variance."""

    @classmethod
    def of_effects(
        cls, settings: Settings, effects: Effects, found: Solution, estimate_optimism: Callable[[], float] | None = None
    ) -> Base:
        """A member without clusters."""
        d = effects.knots.shape[1]
        return cls(settings, effects, np.empty(0), True, found, 1.0, np.ones(d), estimate_optimism)

    @property
    def has_rules(self) -> bool:
        """Whether it is a rule base."""
        return self.basis.n_rules > 0

    @cached_property
    def factor(self) -> Array:
        """Upper Cholesky factor of its system."""
        return self.found.factor()

    @cached_property
    def optimism(self) -> float:
        """Factor by which leave-one-out errors are too small, because what was tuned saw all labels."""
        if self.has_rules:
            return RULE_OPTIMISM
        return 1.0 if self.estimate_optimism is None else self.estimate_optimism()

    @property
    def score(self) -> float:
        """What the labels say of it, on the scale of a log evidence."""
        tuned, total = self.found.tuned, self.found.statistics
        if tuned is None or total is None:
            return 0.0
        if tuned.loo_error is None:
            return tuned.log_evidence
        return -total.n_labeled * float(np.log(max(tuned.loo_error, np.finfo(np.float64).tiny)))

    @property
    def tuned(self) -> Tuned | None:
        """What was chosen from the labels."""
        return self.found.tuned


@task(
    verb="sum",
    stage="averaging",
    reveals="How well the labels of others predict the agent's: products of leave-one-out predictions. With "
    '`tune="loo"` and several models.',
    broadcast=MIXTURE_WITH_FACTORS,
    contributes=LEFT_OUT,
    recalls=("label_groups",),
)
def stack(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): products of the leave-one-out predictions of all rule bases with each other and the targets."""
    sums = LeftOut.none(len(broadcast["shares"]))
    for rows in left_out_rows(shard, memory, broadcast):
        sums += LeftOut.of(rows.predictions, rows.y, rows.weights)
    return memory, pack(sums)


@task(
    verb="sum",
    stage="averaging",
    reveals="How well a model predicts the agent's labels: products of the predictions of its members with each other "
    "and with the targets, over labelled rows. Where sums alone leave the agents.",
    broadcast=SUMS_ALONE,
    contributes=LEFT_OUT,
)
def label_products(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): as `stack`, of predictions that have seen the label, for which agents need no factors."""
    bases = [base_message(broadcast, i) for i in range(len(broadcast["shares"]))]
    sums = LeftOut.none(len(bases))
    for blocks in zip(*(labeled_blocks(shard, memory, base) for base in bases), strict=True):
        parts = zip(blocks, bases, strict=True)
        predictions = np.stack([H @ base["weights"] for (H, _, _), base in parts], axis=1)
        sums += LeftOut.of(predictions, *blocks[0][1:])
    return memory, pack(sums)


def mixture_message(
    population: Population, trained: Sequence[Base], shares: Array, *, with_factors: bool = True
) -> Bundle:
    """All rule bases of a mixture, for agents to predict with, and with the factors of their systems to leave out."""
    message = {
        **pack(population.ranges),
        "target_mean": scalar(population.target.mean),
        "target_scale": scalar(population.target.deviation),
        "shares": shares,
    }
    for i, base in enumerate(trained):
        factor = {"factor": base.factor, "noise": scalar(base.found.noise())} if with_factors else {}
        arrays = {**base.basis.arrays(), "weights": base.found.weights, **factor}
        message |= {f"{name}_{i}": array for name, array in arrays.items()}
    return message


def base_message(broadcast: Bundle, number: int) -> Bundle:
    """One rule base of a `mixture_message`, with what all have in common."""
    common = ("low", "high", "target_mean", "target_scale")
    own = (*BASIS_OR_EFFECTS, "weights", "factor", "noise")
    arrays = {name: broadcast[f"{name}_{number}"] for name in own if f"{name}_{number}" in broadcast}
    return {name: broadcast[name] for name in common} | arrays


def member_predictions(X: Array, broadcast: Bundle, *, fast: bool) -> Iterator[Array]:
    """Predictions of every member of a broadcast for rows that are not scaled, chunk by chunk; shapes (n, m).

    In deviations of the target.
    """
    bases, ranges = [base_message(broadcast, i) for i in range(len(broadcast["shares"]))], unpack(Ranges, broadcast)
    made = [(unpack_basis(base), base["weights"]) for base in bases]
    kernels = [basis.kernel(ranges, weights) if fast else None for basis, weights in made]
    lean = [_lean(*own) if kernel is None else own for own, kernel in zip(made, kernels, strict=True)]

    def of_chunk(chunk: slice) -> Array:
        # Compiled kernels scale on their way.
        scaled = scale_features(X[chunk], ranges) if None in kernels else X[chunk]
        parts = zip(lean, kernels, strict=True)
        values = [_predicted(scaled, *own) if kernel is None else kernel(X[chunk]) for own, kernel in parts]
        return np.stack(values, axis=1)

    return each_chunk(of_chunk, len(X), BLOCK_ROWS)


def _lean(basis: AnyBasis, weights: Array) -> tuple[AnyBasis, Array]:
    """The same function with fewer features: curves that no product has are one, see `Effects.summed`."""
    return basis.summed(weights) if isinstance(basis, Effects) else (basis, weights)


def _predicted(scaled: Array, basis: AnyBasis, weights: Array) -> Array:
    return line_predictions(scaled, basis, weights) if isinstance(basis, Rules) else basis.features(scaled) @ weights


@dataclass(frozen=True, slots=True)
class LeftOutRows:
    """Labelled rows, each predicted by every member without its own label; standardised."""

    predictions: Array
    """Shape (n, m)."""
    variances: Array
    """Of a new observation, the noise included; shape (n, m)."""
    y: Array
    weights: Array
    """How often each label counts; (n,)."""

    def averages(self, shares: Array) -> Array:
        """Predictions of the average of all members; (n,)."""
        averaged: Array = self.predictions @ shares
        return averaged

    def deviations(self, shares: Array) -> Array:
        """Standard deviations of a new observation, from noise, weights and disagreement of members; (n,)."""
        mean = self.averages(shares)
        square = (self.variances + self.predictions**2) @ shares - mean**2
        return np.sqrt(np.maximum(square, 0.0))


def left_out_rows(shard: Shard, memory: Bundle, broadcast: Bundle) -> Iterator[LeftOutRows]:
    """Leave-one-out predictions of labelled rows by every member, block by block."""
    bases = [base_message(broadcast, i) for i in range(len(broadcast["shares"]))]
    groups = [LabelGroups.of(shard, memory, base, base["weights"][:, None]) for base in bases]
    passed = 0
    for blocks in zip(*(labeled_blocks(shard, memory, base) for base in bases), strict=True):
        y = blocks[0][1]
        together = [None if own is None else own.together(passed, passed + len(y), 0) for own in groups]
        features = [H for H, *_ in blocks]
        leverage = [leverages(H, of["factor"]) for H, of in zip(features, bases, strict=True)]
        seen = (y - H @ of["weights"] for H, of in zip(features, bases, strict=True))
        residuals = [left_out_residuals(*own) for own in zip(seen, leverage, together, strict=True)]
        noise = (float(np.square(of["noise"])) for of in bases)
        parts = zip(noise, leverage, together, strict=True)
        variances = [square * left_out_variances(own, others) for square, own, others in parts]
        passed += len(y)
        yield LeftOutRows(y[:, None] - np.stack(residuals, axis=1), np.stack(variances, axis=1), y, blocks[0][2])
