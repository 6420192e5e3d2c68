"""The processes that train together: this one alone, or all ranks of an MPI job."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from dsfr.training.blas_threads import single_threaded_blas

T = TypeVar("T")


class Processes(Protocol):
    """What the steps of a pipeline need of the processes; `dsfr.engines.mpi.ranks.Ranks` has it too."""

    rank: int
    size: int

    def run_on_all(self, work: Callable[[], T]) -> T:
        """The result of work on every process, or the same error on all if it fails on any."""

    def broadcast(self, text: str, root: int) -> str:
        """The text of one process, on all."""


class OneProcess:
    """This process alone."""

    rank, size = 0, 1

    def run_on_all(self, work: Callable[[], T]) -> T:
        """The result of work."""
        return work()

    def broadcast(self, text: str, root: int) -> str:
        """The text."""
        return text


@contextmanager
def open_processes(engine: str | None) -> Iterator[Processes]:
    """The processes of a training; MPI communicators are freed at the end, and after an error all ranks end.

    Raises
    ------
    ImportError
        If the engine is MPI and mpi4py is missing.
    """
    if engine != "mpi":
        yield OneProcess()
        return
    from dsfr.engines.mpi.ranks import Ranks

    ranks = Ranks()
    ranks.share_cores()
    with ranks, single_threaded_blas():
        yield ranks
