"""Options of ``dsfr fit`` about the engine, and what only the first of several processes does."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from dsfr.pipeline.processes import Processes

Command = TypeVar("Command", bound=Callable[..., Any])
ENGINE_NAMES = ("in-process", "mpi", "dask")


@contextmanager
def training_processes(engine: str | None) -> Iterator[Processes]:
    """The processes of a training, of which only the first shows warnings and errors; the others end silently."""
    from dsfr.pipeline.processes import open_processes

    is_first = True
    try:
        with open_processes(engine) as processes, warnings.catch_warnings():
            is_first = processes.rank == 0
            if not is_first:
                warnings.simplefilter("ignore")
            yield processes
    except Exception:
        if is_first:
            raise
        from dsfr.engines.mpi.ranks import EXIT_CODE

        sys.exit(EXIT_CODE)


_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(ENGINE_NAMES),
        help="DATA is several files, each an agent: here, in the ranks of an MPI job, or on a dask cluster.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Scheduler of the dask cluster.  [default: a cluster here]"),
    click.option("--checkpoint", metavar="DIR", help="With --engine: write every round there, to resume after a kill."),
    click.option("--policy", metavar="FILE", help="With --engine: disclosure control at every agent; or 'default'."),
    click.option("--masks", is_flag=True, help="With --engine: hide what single agents send; sums alone can be read."),
    click.option("--resume", is_flag=True, help="Continue from the checkpoint, if there is one."),
)


def engine_options(command: Command) -> Command:
    """Add the options about the engine."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
