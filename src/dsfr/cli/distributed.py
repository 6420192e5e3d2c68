"""``dsfr fit`` on several files: over MPI, over dask, or in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])


def fit_spread(data: str, output: str, told: Any, options: dict[str, Any]) -> Any:
    """Train where the options say and write the model; the outcome, or None on ranks that have nothing to show."""
    from dsfr.cli.console import watch_rounds
    from dsfr.pipeline.distributed_fit import SpreadOptions, fit_sites
    from dsfr.storage.atomic import check_writable

    spread = SpreadOptions(**options)
    if spread.engine == "mpi":
        return _fit_as_rank(data, output, told, spread)
    check_writable(output)
    with watch_rounds() as watch:
        outcome = fit_sites(data, told, spread, watch.on_round)
    outcome.model.save(output)
    return outcome


def _fit_as_rank(data: str, output: str, told: Any, spread: Any) -> Any:
    """Train as a rank; rank 0 writes and speaks, for all if all have failed."""
    from dsfr.engines.mpi.ranks import FAILED, Ranks
    from dsfr.pipeline.distributed_fit import fit_rank
    from dsfr.storage.atomic import check_writable
    from dsfr.training.blas_threads import single_threaded_blas

    ranks = Ranks()
    ranks.share_cores()

    def work() -> Any:
        ranks.together(lambda: check_writable(output) if ranks.rank == 0 else None)
        with _watch(ranks.rank) as watch, single_threaded_blas():
            outcome = fit_rank(ranks, data, told, spread, watch and watch.on_round)
        ranks.together(lambda: outcome.model.save(output) if ranks.rank == 0 else None)
        return outcome

    try:
        return _leaving_together(ranks, work) if ranks.rank == 0 else _silently(lambda: _leaving_together(ranks, work))
    except Exception:
        if ranks.rank == 0:
            raise
        sys.exit(FAILED)


def _leaving_together(ranks: Any, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except BaseException as error:
        ranks.leave(error)
        raise


def _silently(work: Callable[[], Any]) -> None:
    """Do without showing warnings: rank 0 shows the same."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        work()


def _watch(rank: int) -> Any:
    from contextlib import nullcontext

    from dsfr.cli.console import watch_rounds

    return watch_rounds() if rank == 0 else nullcontext(None)


_OPTIONS = (
    click.option(
        "--engine",
        type=click.Choice(["inprocess", "mpi", "dask"]),
        help="DATA is several files, each an agent: here, in the ranks of an MPI job, or on a dask cluster.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Scheduler of the dask cluster.  [default: a cluster here]"),
    click.option("--checkpoint", metavar="DIR", help="With --engine: write every round down, to go on after a kill."),
    click.option("--resume", is_flag=True, help="Go on from the checkpoint, if there is one."),
)


def engine_options(command: Command) -> Command:
    """Add the options that say where a training runs."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
