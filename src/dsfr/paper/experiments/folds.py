"""Units of work: a training set with few labels, divided between agents, and the test rows of a fold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold

from dsfr.core.arrays import Array, IntArray
from dsfr.paper.datasets import (
    hide_labels_by_agent,
    load_values,
    split_by_cluster,
    split_by_column,
    split_by_dirichlet,
    split_evenly,
)
from dsfr.paper.experiments.spec import Spec

PARTITION_COLUMN = 0
"""Feature by which the partition "column" divides the rows."""
DIRICHLET_CONCENTRATION = 0.5


@dataclass(frozen=True, slots=True, order=True)
class Unit:
    """One fold of one repetition on one data set: computed and stored as a whole."""

    repetition: int
    fold: int
    dataset: str

    @property
    def name(self) -> str:
        """Name of the file of its results."""
        return f"{self.dataset}-{self.repetition:02d}-{self.fold}"


@dataclass(frozen=True, slots=True)
class Fold:
    """Training rows with their agents, and test rows."""

    unit: Unit
    X: Array
    y: Array
    """All training labels; only FR uses them."""
    owners: IntArray
    known: Array
    """Training labels that the other methods use, NaN elsewhere."""
    X_test: Array
    y_test: Array
    seed: int
    """Random state of every fit on this fold."""

    def rng(self, *purpose: int) -> np.random.Generator:
        """Random generator of this fold for one purpose."""
        return np.random.default_rng([self.seed, *purpose])


def units(spec: Spec) -> Iterator[Unit]:
    """All units of an experiment, by repetition, so that the remaining time can be estimated early."""
    for repetition in range(spec.repetitions):
        for fold in range(spec.test_folds):
            for dataset in spec.datasets:
                yield Unit(repetition, fold, dataset)


def make_fold(spec: Spec, unit: Unit) -> Fold:
    """The fold of a unit. Its split, agents and labels depend on seed, repetition and fold only.

    Experiments with the same seed and the same numbers of labels and agents therefore use the same rows and labels.
    """
    values = load_values(unit.dataset)
    splits = KFold(spec.folds, shuffle=True, random_state=1000 * spec.seed + unit.repetition).split(values.X)
    train, test = list(splits)[unit.fold]
    X, y = values.X[train], values.y[train]
    rng = np.random.default_rng([spec.seed, unit.repetition, unit.fold])
    owners = split_evenly(len(y), spec.agents, rng)
    known = hide_labels_by_agent(y, owners, spec.labels, rng)
    return Fold(unit, X, y, owners, known, values.X[test], values.y[test], int(rng.integers(2**31 - 1)))


def owners_by(partition: str, fold: Fold, n_agents: int, rng: np.random.Generator) -> IntArray:
    """Agents of the training rows by one of `dsfr.paper.experiments.spec.PARTITIONS`."""
    if partition == "column":
        return split_by_column(fold.X[:, PARTITION_COLUMN], n_agents)
    if partition == "cluster":
        return split_by_cluster(fold.X, n_agents, rng)
    if partition == "dirichlet":
        return split_by_dirichlet(len(fold.y), n_agents, DIRICHLET_CONCENTRATION, rng)
    return split_evenly(len(fold.y), n_agents, rng)
