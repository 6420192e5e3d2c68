"""Run experiments: units in parallel, each stored when it is finished, with an estimate of the remaining time."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dsfr.paper.datasets import load_values
from dsfr.paper.experiments.folds import Unit
from dsfr.paper.experiments.results import Store, read_results
from dsfr.paper.experiments.selection import best_on_test
from dsfr.paper.experiments.spec import Spec, SpecError
from dsfr.paper.experiments.workers import Workers

Key = tuple[str, str]
"""Experiment and data set; units with the same key take about the same time."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress that is reported after every unit."""

    experiment: str
    done: int
    total: int
    """Units of all experiments."""
    seconds_left: float | None
    """None while some kind of unit has no measured time."""


@dataclass(slots=True)
class TimeEstimate:
    """Estimate of the remaining time from the measured times of units."""

    jobs: int
    needs: Mapping[str, str]
    """Experiment whose times are used for an experiment without measured times."""
    waiting: list[Key]
    measured: dict[Key, list[float]] = field(default_factory=lambda: defaultdict(list))

    def done(self, key: Key, seconds: float) -> None:
        """Record the time of a finished unit."""
        self.waiting.remove(key)
        self.measured[key].append(seconds)

    def remaining(self) -> float | None:
        """Estimated seconds until all units are finished; None if unknown."""
        timed = [self.measured.get(key) or self.measured.get((self.needs[key[0]], key[1])) for key in self.waiting]
        if not all(timed):
            return None
        return sum(float(np.mean(seconds)) for seconds in timed if seconds) / self.jobs


def run_experiments(
    specs: Sequence[Spec],
    folder: str | Path,
    *,
    jobs: int,
    force: bool = False,
    watch: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Compute and store the missing units of these experiments.

    One unit of every experiment and data set is computed first, so that the remaining time can be estimated early.

    Raises
    ------
    ResultsError
        Before anything is computed, if the folder holds results of another version or spec.
    DatasetError
        Before anything is computed, if a data set cannot be loaded.
    """
    stores = [store for store in open_stores(specs, folder, force=force) if not store.complete]
    for name in sorted({unit.dataset for store in stores for unit in store.missing()}):
        load_values(name)
    with Workers(jobs) as workers:
        run = _Run(stores, workers, watch)
        for store in stores:
            if not store.spec.needs:
                run.compute(store, _first_of_each(store.missing()))
        for store in stores:
            run.compute(store, store.missing())
            run.finish(store)


def open_stores(specs: Sequence[Spec], folder: str | Path, *, force: bool = False) -> list[Store]:
    """Open the store of every experiment; its fingerprint includes that of the experiment it needs."""
    stores: dict[str, Store] = {}
    for spec in specs:
        if spec.needs and spec.needs not in stores:
            raise SpecError(f"{spec.name} needs the results of {spec.needs!r}: give the folder that holds both specs")
        needed = stores[spec.needs].fingerprint if spec.needs else ""
        stores[spec.name] = Store.open(folder, spec, needed, force=force)
    return list(stores.values())


class _Run:
    """State of one run over several experiments."""

    def __init__(self, stores: Sequence[Store], workers: Workers, watch: Callable[[Progress], None]) -> None:
        self.workers, self.watch = workers, watch
        self.total = sum(len(store.missing()) for store in stores)
        waiting = [(store.spec.name, unit.dataset) for store in stores for unit in store.missing()]
        self.estimate = TimeEstimate(workers.jobs, {store.spec.name: store.spec.needs for store in stores}, waiting)
        self.wall: dict[str, float] = defaultdict(float)
        self.resumed = set()
        for store in stores:
            store.begin()
            for unit, seconds in store.seconds().items():
                self.estimate.measured[store.spec.name, unit.dataset].append(seconds)
                self.resumed.add(store.spec.name)

    def compute(self, store: Store, units: Sequence[Unit]) -> None:
        spec, start = store.spec, time.perf_counter()
        choices = best_on_test(read_results(store.folder, spec.needs)) if spec.needs else {}
        self._report(spec)
        for unit, rows, seconds in self.workers.compute(spec, units, choices):
            store.write(unit, rows, seconds)
            self.estimate.done((spec.name, unit.dataset), seconds)
            self._report(spec)
        self.wall[spec.name] += time.perf_counter() - start

    def finish(self, store: Store) -> None:
        name = store.spec.name
        # After an interruption the wall-clock time is unknown; the computing time of the units is known.
        wall = None if name in self.resumed else round(self.wall[name], 1)
        store.finish(jobs=self.workers.jobs, wall_seconds=wall)

    def _report(self, spec: Spec) -> None:
        done = self.total - len(self.estimate.waiting)
        self.watch(Progress(spec.name, done, self.total, self.estimate.remaining()))


def _first_of_each(units: Iterable[Unit]) -> list[Unit]:
    first: dict[str, Unit] = {}
    for unit in units:
        first.setdefault(unit.dataset, unit)
    return list(first.values())
