"""How features are distributed over all rows, from two rounds of counts; and the number of labels that differ."""

from __future__ import annotations

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.quantile_curves import Distribution
from dsfr.core.scaling.quantiles import N_THRESHOLDS
from dsfr.engines import Engine
from dsfr.training.scaling.survey import Population
from dsfr.training.tasks.messages import ask_sample

FEW_VALUES, LABELS_PER_VALUE = 10, 3.0
"""Different labels that are few, at most, and labels for each of them at least."""


def agree_distribution(engine: Engine, population: Population) -> tuple[Distribution, int | None]:
    """Counts of all rows at thresholds, at first evenly spaced, then by the counts of the first round.

    Labels are counted like a feature. The number of different ones comes along if it is small.
    """
    limits, target = population.ranges if population.limits is None else population.limits, population.target
    low, high = target.origin - target.unit, target.origin + target.unit
    share = np.linspace(0.0, 1.0, 2 * N_THRESHOLDS)[:, None]
    first = np.append(limits.low, low) * (1.0 - share) + np.append(limits.high, high) * share
    counts = _counted(engine, first, population.sample)
    levels = np.linspace(0.0, 1.0, 2 * N_THRESHOLDS)
    columns = [np.interp(levels * of[-1], of, at) for of, at in zip(counts.T, first.T, strict=True)]
    second = np.stack(columns, axis=1)
    finer = _counted(engine, second, population.sample)
    all_of = Distribution.of(np.concatenate([first, second]), np.concatenate([counts, finer]))
    features = Distribution(all_of.thresholds[:, :-1], all_of.counts[:, :-1])
    return features, _few_values(all_of.counts[:, -1])


def _few_values(counts: Array) -> int | None:
    """Number of different labels, from their counts at ascending thresholds; None if they are not few."""
    different = int(np.count_nonzero(np.diff(counts, prepend=0.0)))
    return different if 1 < different <= min(FEW_VALUES, counts[-1] / LABELS_PER_VALUE) else None


def _counted(engine: Engine, thresholds: Array, sample: float | None) -> Array:
    """Number of rows, and in the last column labels, at or below thresholds; shape (2 `N_THRESHOLDS`, d + 1).

    The last ones are taken to hold all.
    """
    halves = np.stack(np.split(np.maximum.accumulate(thresholds, axis=0), 2)).transpose(0, 2, 1)
    asked = {"thresholds": halves[:, :-1], "target_thresholds": halves[:, -1]}
    counted = engine.sum("count_below", asked | ask_sample(sample))
    both = np.concatenate([counted["counts"], counted["target_counts"][:, None]], axis=1)
    counts: Array = both.transpose(0, 2, 1).reshape(thresholds.shape)
    counts[-1] = np.append(np.full(thresholds.shape[1] - 1, float(counted["n_samples"])), float(counted["n_labeled"]))
    return counts
