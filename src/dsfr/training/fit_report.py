"""Where the time of a training goes, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from dsfr.engines import Task, Tasks
from dsfr.storage.bundles import Bundle
from dsfr.training.shard import RowCounter, Shard
from dsfr.training.tasks.registry import OTHER, REGISTRY, STAGES


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a training."""

    name: str
    seconds: float
    share: float
    """Of the whole training's time."""
    rows: int
    """Rows passed over, each as often as it was."""

    @property
    def rows_per_second(self) -> float:
        """Rows passed over in a second."""
        return self.rows / self.seconds if self.seconds > 0.0 else 0.0


@dataclass(frozen=True, slots=True)
class FitReport:
    """Time of a training by stage, in the order they come; printing it shows a table."""

    stages: tuple[Stage, ...]
    seconds: float
    n_samples: int

    def table(self) -> list[list[str]]:
        """Name, seconds, share and rows per second of every stage, as text."""
        return [
            [
                stage.name,
                f"{stage.seconds:.2f}",
                f"{stage.share:.0%}",
                f"{stage.rows_per_second:.3g}" if stage.rows else "",
            ]
            for stage in self.stages
        ]

    def __str__(self) -> str:
        lines = [f"{name:<12}{seconds:>9}{share:>8}{rate:>12}" for name, seconds, share, rate in self.table()]
        head = f"{'stage':<12}{'seconds':>9}{'share':>8}{'rows/s':>12}"
        return "\n".join([head, *lines, f"{'all':<12}{self.seconds:>9.2f}"])


@dataclass(slots=True)
class Stopwatch:
    """Adds up the time of stages, and of tasks where they run in this process."""

    started: float = field(default_factory=time.perf_counter)
    seconds: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, n_rows: int = 0) -> Iterator[None]:
        """Time what is inside."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
            self.rows[name] = self.rows.get(name, 0) + n_rows

    def around(self, tasks: Tasks) -> Tasks:
        """The same tasks, timed."""
        return {name: self._timed(name, task) for name, task in tasks.items()}

    def _timed(self, name: str, task: Task) -> Task:
        stage = REGISTRY[name].stage if name in REGISTRY else OTHER

        def timed(shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
            counter = RowCounter()
            with self.stage(stage):
                result = task(replace(shard, counter=counter), memory, broadcast)
            self.rows[stage] += counter.rows
            return result

        return timed

    def report(self, n_samples: int) -> FitReport:
        """What was measured so far; all that is in no stage is `OTHER`."""
        total = time.perf_counter() - self.started
        seconds = self.seconds | {OTHER: total - sum(s for name, s in self.seconds.items() if name != OTHER)}
        rows = self.rows | {"reading": n_samples}
        order = [name for name in ("reading", *STAGES, OTHER) if name in seconds]
        stages = (Stage(name, seconds[name], seconds[name] / total, rows.get(name, 0)) for name in order)
        return FitReport(tuple(stages), total, n_samples)
