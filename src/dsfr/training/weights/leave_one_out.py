"""Ridge and weight of the penalty by leave-one-out: agents receive the totals and evaluate candidates on their labels.

Two rounds, the second on a finer grid about the best of the first. Only sums of squared errors come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dsfr.core.arrays import Array, IntArray, row_blocks
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.cholesky import SingularSystemError, cholesky, solve_factored
from dsfr.core.solve.evidence import LOG_RIDGE, LOG_WEIGHT, Evidence, Tuned
from dsfr.core.solve.leave_one_out import Together, left_out_residuals, leverages
from dsfr.core.solve.statistics import Statistics
from dsfr.engines import Engine
from dsfr.storage.bundles import Bundle
from dsfr.training.duplicates.distinct_rows import rows_of_groups
from dsfr.training.scaling.survey import KEPT_RANGES
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import Rule, array, at_least
from dsfr.training.tasks.fields import STATISTICS, problem_fields
from dsfr.training.tasks.messages import pack_statistics, scaling_ranges, unpack_basis, unpack_statistics
from dsfr.training.tasks.registry import task

COARSE = 7
"""Values of each number in the first round, evenly over their powers of ten."""
FINE = 5
"""Values in the second, between the neighbors of the best."""
HOPELESS = 1e300
"""Error of values for which the system cannot be solved."""
TOTAL = "total_"
_RIDGES = Rule("positive in its second column, the ridges", lambda values, *_: bool((values[:, 1] > 0.0).all()))


@task(
    verb="sum",
    stage="statistics",
    reveals='How well the labels of others predict the agent\'s: squared leave-one-out errors. With `tune="loo"`.',
    broadcast=problem_fields(
        {
            **{TOTAL + name: field for name, field in STATISTICS.items()},
            "candidates": array("c", 2, rules=(at_least(0.0), _RIDGES)),
        }
    ),
    contributes={"errors": array("c", rules=(at_least(0.0),))},
    needs=KEPT_RANGES,
    recalls=("label_groups",),
)
def left_out_errors(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Task (sum): squared leave-one-out errors of the own labels, for every candidate."""
    packed = {name.removeprefix(TOTAL): array for name, array in broadcast.items() if name.startswith(TOTAL)}
    total = unpack_statistics(packed)
    solved = [_solve(total, weight, ridge) for weight, ridge in broadcast["candidates"]]
    errors = np.array([0.0 if candidate is not None else HOPELESS for candidate in solved])
    zeros = np.zeros(len(total.moment))
    weights = np.stack([zeros if candidate is None else candidate[1] for candidate in solved], axis=1)
    groups, passed = LabelGroups.of(shard, memory, broadcast, weights), 0
    for H, y, counted in labeled_blocks(shard, memory, broadcast):
        for i, candidate in enumerate(solved):
            if candidate is not None:
                together = None if groups is None else groups.together(passed, passed + len(y), i)
                factor, found = candidate
                left = left_out_residuals(y - H @ found, leverages(H, factor), together)
                errors[i] += np.sum(counted * left**2)
        passed += len(y)
    return memory, {"errors": errors}


def labeled_blocks(shard: Shard, memory: Bundle, broadcast: Bundle) -> Iterator[tuple[Array, Array, Array]]:
    """Features, standardised targets and weights of the labelled rows, block by block."""
    basis, ranges = unpack_basis(broadcast), scaling_ranges(memory, broadcast)
    mean, scale = float(broadcast["target_mean"]), float(broadcast["target_scale"])
    for X, y, weights in shard.labeled().weighted_batches():
        for block in row_blocks(len(y)):
            H = basis.features(scale_features(X[block], ranges))
            yield H, (y[block] - mean) / scale, np.ones(len(H)) if weights is None else weights[block]


@dataclass(frozen=True, slots=True)
class LabelGroups:
    """Labelled rows that are left out together, and the sums of their residuals under several weights."""

    groups: IntArray
    """A number for every labelled row; shape (n,)."""
    size: Array
    """Number of its rows, or the sum of their weights; shape (g,)."""
    residual_sums: Array
    """Of every group, a column for each weights; shape (g, c)."""

    @classmethod
    def of(cls, shard: Shard, memory: Bundle, broadcast: Bundle, weights: Array) -> LabelGroups | None:
        """From one pass over the labelled rows, with a column of ``weights`` each; None if rows are left out alone.

        A row whose label weighs 2 is left out as two equal rows are, together.
        """
        if "label_groups" not in memory and not shard.has_weights:
            return None
        groups, passed = memory.get("label_groups", np.arange(shard.n_labeled)), 0
        size = np.zeros(int(groups.max(initial=-1)) + 1)
        sums = np.zeros((len(size), weights.shape[1]))
        for H, y, counted in labeled_blocks(shard, memory, broadcast):
            own = rows_of_groups(groups, passed, passed + len(y))
            np.add.at(size, own, counted)
            np.add.at(sums, own, counted[:, None] * (y[:, None] - H @ weights))
            passed += len(y)
        return cls(groups, size, sums)

    def together(self, start: int, stop: int, column: int) -> Together:
        """What is left out with each of consecutive labelled rows."""
        groups = self.groups[start:stop]
        return Together(self.size[groups], self.residual_sums[groups, column])


def minimize_left_out(engine: Engine, broadcast: Bundle, total: Statistics) -> Tuned | None:
    """Weight and ridge of the smallest leave-one-out error; None if the labels do not vary."""
    if total.n_labeled < 2 or total.target_square <= 0.0:
        return None
    penalized = bool(total.unlabeled_gram.any())
    packed = {TOTAL + name: array for name, array in pack_statistics(total, with_penalty=penalized).items()}
    sent = {**broadcast, **packed}
    axes = [np.linspace(low, high, COARSE) for low, high in (LOG_WEIGHT, LOG_RIDGE)]
    powers, _ = _best(engine, sent, axes, penalized)
    powers, error = _best(engine, sent, list(map(_finer, axes, powers)), penalized)
    weight, ridge = float(10.0 ** powers[0]) if penalized else 0.0, float(10.0 ** powers[1])
    evidence = Evidence(total)
    return Tuned(
        weight,
        ridge,
        evidence.noise(weight, ridge),
        evidence.value(weight, ridge),
        loo_error=float(np.sqrt(error / total.n_labeled)),
    )


def _finer(axis: Array, power: float) -> Array:
    """Values between the neighbors of a power on its axis; at an end of the axis, between the end and its neighbor."""
    step = axis[1] - axis[0]
    return np.linspace(max(power - step, axis[0]), min(power + step, axis[-1]), FINE)


def _best(engine: Engine, sent: Bundle, axes: list[Array], penalized: bool) -> tuple[Array, float]:
    """Powers of ten of the best candidate on a grid, and its summed error."""
    if not penalized:
        axes = [axes[0][:1], axes[1]]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    candidates = 10.0**grid * [1.0 if penalized else 0.0, 1.0]
    errors = engine.sum("left_out_errors", {**sent, "candidates": candidates})["errors"]
    best = int(errors.argmin())
    return grid[best], float(errors[best])


def _solve(total: Statistics, weight: float, ridge: float) -> tuple[Array, Array] | None:
    quadratic = total.quadratic(weight)
    try:
        factor = cholesky(quadratic.curvature + ridge * np.eye(len(quadratic.moment)))
    except SingularSystemError:
        return None
    return factor, solve_factored(factor, quadratic.moment)
