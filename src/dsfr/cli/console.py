"""Output to a terminal: tables on standard output, progress on standard error."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from dsfr.core.consensus.admm import RoundInfo
from dsfr.core.explain.words import one_line
from dsfr.engines import Ledger

if TYPE_CHECKING:
    from dsfr.paper.experiments.run import Progress as ExperimentProgress

MAX_AGENTS_SHOWN = 20
BLOCKS = "▁▂▃▄▅▆▇█"


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> None:
    """Print a table: the first column to the left, numbers to the right. Cells are text, never markup or escapes."""
    table = Table(
        title=Text(title), caption=Text(caption) if caption else None, box=box.SIMPLE_HEAD, show_header=any(header)
    )
    for j, name in enumerate(header):
        table.add_column(Text(name), justify="left" if j == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(one_line(cell)) for cell in row))
    # Without a terminal there is no width limit, and cut cells would lose numbers.
    console = Console() if Console().is_terminal else Console(width=120)
    console.print(table)


def show_ledger(ledger: Ledger) -> None:
    """Print the communication of every task."""
    rows = [
        [
            entry.task + (" *" if entry.reveals_single_contributions else ""),
            str(entry.rounds),
            str(entry.messages),
            f"{entry.bytes_down / 1e3:.1f}",
            f"{entry.bytes_up / 1e3:.1f}",
        ]
        for entry in ledger.entries.values()
    ]
    header = ["task", "rounds", "messages", "kB to agents", "kB from agents"]
    caption = "* one agent's own contribution is seen by others, not only a sum"
    show_table("Communication", header, rows, caption=caption)
    _show_agents(ledger)


def _show_agents(ledger: Ledger) -> None:
    """Print rounds, messages and bytes of every agent; of many agents, those with the most traffic."""
    agents = sorted(ledger.agents.items(), key=lambda item: -item[1].bytes_received - item[1].bytes_sent)
    rows = [
        [
            name,
            f"{traffic.rounds} of {ledger.rounds}",
            str(traffic.messages),
            f"{traffic.bytes_received / 1e3:.1f}",
            f"{traffic.bytes_sent / 1e3:.1f}",
        ]
        for name, traffic in agents[:MAX_AGENTS_SHOWN]
    ]
    left_out = len(agents) - len(rows)
    caption = f"and {left_out} agents with less" if left_out else ""
    show_table("Agents", ["agent", "rounds", "messages", "kB received", "kB sent"], rows, caption=caption)


class FitWatch:
    """Shows the progress of a training: rows read, then the latest round, with rows per second."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._n_rows, self._started, self._stage, self._first = 0, time.monotonic(), "", 0
        self._bounds: list[float] = []

    def on_rows(self, n_rows: int) -> None:
        """Rows have been read."""
        self._n_rows += n_rows
        self._show(f"reading: {_rows(self._n_rows)}, {_rate(self._n_rows, time.monotonic() - self._started)}")

    def on_round(self, info: RoundInfo) -> None:
        """A round has ended."""
        if info.stage != self._stage:
            self._stage, self._started, self._first = info.stage, time.monotonic(), info.round
            self._bounds = []
        self._bounds.append(info.error_bound)
        passes, seconds = info.round - self._first, time.monotonic() - self._started
        passed = passes * self._n_rows if info.stage == "clusters" else 0
        rate = f", {_rate(passed, seconds)}" if passed else ""
        self._show(describe_round(info, self._bounds) + rate)


@contextmanager
def watch_rounds() -> Iterator[FitWatch]:
    """Callbacks that show the latest round; silent if standard error is no terminal."""
    with spinner("reading") as show:
        yield FitWatch(show)


@contextmanager
def watch_rows(what: str) -> Iterator[Callable[[int], None]]:
    """A callback that counts rows and shows rows per second; silent if standard error is no terminal."""
    with spinner(what) as show:
        total, started = 0, time.monotonic()

        def on_rows(n_rows: int) -> None:
            nonlocal total
            total += n_rows
            show(f"{what}: {_rows(total)}, {_rate(total, time.monotonic() - started)}")

        yield on_rows


@contextmanager
def spinner(text: str) -> Iterator[Callable[[str], None]]:
    """A function that shows one line of text; silent if standard error is no terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(text, total=None)
        yield lambda now: progress.update(task, description=now)


def _rows(n_rows: int) -> str:
    return f"{n_rows / 1e6:.2f} million rows" if n_rows >= 1e6 else f"{n_rows} rows"


def _rate(n_rows: int, seconds: float) -> str:
    """Rows per second as text.

    >>> _rate(3_000_000, 2.0), _rate(500, 1.0)
    ('1.5 million rows/s', '500 rows/s')
    """
    rate = n_rows / max(seconds, 1e-9)
    return f"{rate / 1e6:.3g} million rows/s" if rate >= 1e6 else f"{rate:.0f} rows/s"


def describe_round(info: RoundInfo, bounds: Sequence[float]) -> str:
    """One line about a round: objective, error bound, residuals, and a sparkline of the bounds so far.

    >>> describe_round(RoundInfo("weights", 3, 1.25, 0.1, 0.02, 1e-3), [1.0, 0.1, 1e-3])
    'weights: round 3, objective 1.25, error 1.0e-03, residuals 1.0e-01 and 2.0e-02  █▆▁'
    """
    # Training by sums has no residuals.
    residuals = (
        f", residuals {info.primal_residual:.1e} and {info.dual_residual:.1e}" if info.primal_residual > 0 else ""
    )
    text = f"{info.stage}: round {info.round}, objective {info.objective:.6g}, error {info.error_bound:.1e}{residuals}"
    return f"{text}  {sparkline(bounds)}".rstrip()


def sparkline(values: Sequence[float], width: int = 24) -> str:
    """The last positive values as blocks, on a logarithmic scale.

    >>> sparkline([1e3, 1e2, 10.0, 1.0])
    '█▆▃▁'
    """
    logs = [math.log10(value) for value in values if 0 < value < math.inf][-width:]
    if len(logs) < 2 or max(logs) == min(logs):
        return ""
    return "".join(BLOCKS[round(7 * (log - min(logs)) / (max(logs) - min(logs)))] for log in logs)


@contextmanager
def working(description: str) -> Iterator[None]:
    """A spinner during work of unknown length; silent if standard error is no terminal."""
    with spinner(description):
        yield


@contextmanager
def count_steps(description: str, total: int) -> Iterator[Callable[[], None]]:
    """A progress bar over a known number of steps; silent if standard error is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(description, total=total)
        yield lambda: progress.advance(task)


@contextmanager
def watch_experiments() -> Iterator[Callable[[ExperimentProgress], None]]:
    """A progress bar with the estimated time left; without a terminal, a line at every twentieth."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting", total=None)
        shown: set[object] = set()

        def on_progress(info: ExperimentProgress) -> None:
            left = "" if info.seconds_left is None else f", about {duration(info.seconds_left)} left"
            progress.update(task, description=f"{info.experiment}{left}", completed=info.done, total=info.total)
            news = {20 * info.done // max(info.total, 1), "estimated" if left else "not yet"} - shown
            if not console.is_terminal and news:
                shown.update(news)
                console.print(f"{info.done} of {info.total} units ({info.experiment}){left}", highlight=False)

        yield on_progress


def duration(seconds: float) -> str:
    """A duration as text.

    >>> duration(42), duration(150), duration(4000)
    ('42 s', '2.5 min', '1.1 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"
