"""Where the time of a training goes, stage by stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dsfr.engines import Task, Tasks
from dsfr.storage.bundles import Bundle

STAGES = {
    "survey": (
        "count_duplicates",
        "weigh_duplicates",
        "drop_duplicates",
        "mark_labels",
        "drop_matched",
        "measure",
        "tally",
        "spread_within",
        "agree",
        "draw_ticket",
    ),
    "start": ("start_centers", "local_clusters"),
    "clusters": ("cluster_sums", "cluster_consensus", "count_and_sum"),
    "widths": ("cluster_spread", "local_spread"),
    "statistics": ("statistics", "prepare_weights", "first_gradient", "left_out_errors"),
    "averaging": ("bends", "square_slopes", "stack", "compare", "score", "tally_errors"),
    "weights": ("weight_consensus", "weight_gradient"),
}
"""Stages of a training and their tasks; what the coordinator does and what is not listed is the stage "other"."""
PASSES = {
    "count_duplicates": 3,
    "measure": 1,
    "tally": 1,
    "spread_within": 1,
    "square_slopes": 1,
    "compare": 1,
    "agree": 1,
    "cluster_sums": 1,
    "cluster_consensus": 1,
    "count_and_sum": 2,
    "cluster_spread": 1,
    "local_spread": 1,
    "statistics": 1,
    "prepare_weights": 1,
    "first_gradient": 1,
}
"""How often a task goes over all rows of an agent."""

_STAGE_OF = {task: stage for stage, tasks in STAGES.items() for task in tasks}


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
        stage, passes = _STAGE_OF.get(name, "other"), PASSES.get(name, 0)

        def timed(shard: Any, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
            with self.stage(stage, passes * shard.n_samples):
                return task(shard, memory, broadcast)

        return timed

    def report(self, n_samples: int) -> FitReport:
        """What was measured so far; all that is in no stage is "other"."""
        total = time.perf_counter() - self.started
        seconds = self.seconds | {"other": total - sum(s for name, s in self.seconds.items() if name != "other")}
        rows = self.rows | {"reading": n_samples}
        order = [name for name in ("reading", *STAGES, "other") if name in seconds]
        stages = (Stage(name, seconds[name], seconds[name] / total, rows.get(name, 0)) for name in order)
        return FitReport(tuple(stages), total, n_samples)
