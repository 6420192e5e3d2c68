"""Training on tables in several files, here, over MPI or over dask: the work behind ``dsfr fit --engine``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dsfr.core.consensus.admm import RoundInfo
from dsfr.engines import Engine, choose_engine
from dsfr.estimators.methods import METHODS
from dsfr.io.batches import column_names
from dsfr.io.columns import TableError
from dsfr.io.sites import Columns, find_sites, read_light, read_shards
from dsfr.pipeline.fit import FitOptions, FitOutcome, feature_columns, make_estimator
from dsfr.training import TASKS, Settings

ENGINES = ("inprocess", "mpi", "dask")
OnRound = Callable[[RoundInfo], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadOptions:
    """Options of ``dsfr fit`` that say where it runs."""

    engine: str = "inprocess"
    scheduler: str | None = None
    checkpoint: str | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        if self.scheduler is not None and self.engine != "dask":
            raise TableError(f"--scheduler goes with --engine dask, not with {self.engine}")
        if self.resume and self.checkpoint is None:
            raise TableError("--resume needs to know where the checkpoint is: add --checkpoint DIR")


def fit_sites(pattern: str, options: FitOptions, spread: SpreadOptions, on_round: OnRound | None) -> FitOutcome:
    """Train over the agents of several files, all of them in this process or on a dask cluster."""
    _refuse_one_table(options)
    sites = find_sites(pattern)
    columns = columns_of(next(iter(sites.values())), options)
    if spread.engine == "inprocess":
        shards = read_shards(sites, columns)
        return _fit(columns, options, spread, on_round, lambda settings: _local_engine(shards, options, settings))
    from dsfr.engines.dask.cluster import cluster_client
    from dsfr.engines.dask.engine import file_engine

    if options.topology is not None:
        raise TableError("--topology does not go with --engine dask, whose workers all talk to each other: take mpi")
    paths = {name: str(path.resolve()) for name, path in sites.items()}
    with cluster_client(spread.scheduler) as client:
        engine = file_engine(client, paths, TASKS, partial(read_light, columns=columns))
        return _fit(columns, options, spread, on_round, lambda settings: engine)


def fit_rank(
    ranks: Any, pattern: str, options: FitOptions, spread: SpreadOptions, on_round: OnRound | None
) -> FitOutcome:
    """Train as one rank of an MPI job; all ranks end with the same outcome."""
    _refuse_one_table(options)
    place = {"rank": ranks.rank, "n_ranks": ranks.size}
    sites = ranks.together(lambda: find_sites(pattern, **place))
    first = ranks.together(lambda: asdict(columns_of(next(iter(sites.values())), options)) if ranks.rank == 0 else {})
    told = json.loads(ranks.broadcast(json.dumps(first), 0))
    columns = Columns(**told | {"features": tuple(told["features"]), "ignored": tuple(told["ignored"])})
    return _fit(columns, options, spread, on_round, partial(_rank_engine, ranks.comm, sites, columns, options))


def columns_of(path: Path, options: FitOptions) -> Columns:
    """What to read of every file, from the first one."""
    names = feature_columns(column_names(path, options.delimiter), options)
    return Columns(
        features=tuple(names),
        target=options.target,
        exact=not options.features,
        ignored=options.ignore,
        labeled_only=METHODS[options.method].needs_all_labels,
        delimiter=options.delimiter,
    )


def _refuse_one_table(options: FitOptions) -> None:
    told = {"--agents": options.agents, "--agent-column": options.agent_column, "--labels": options.labels}
    for name, value in told.items():
        if value is not None:
            raise TableError(f"{name} is for a table in one file; here every file is an agent: leave it out")


def _fit(
    columns: Columns,
    options: FitOptions,
    spread: SpreadOptions,
    on_round: OnRound | None,
    make_engine: Callable[[Settings], Any],
) -> FitOutcome:
    def prepared(settings: Settings) -> Engine:
        engine: Engine = make_engine(settings)
        if spread.checkpoint is None:
            return engine
        from dsfr.engines.checkpoint.engine import with_checkpoint

        about = asdict(settings) | {"topology": options.topology, "columns": asdict(columns)}
        return with_checkpoint(engine, spread.checkpoint, about, resume=spread.resume)

    estimator = make_estimator(options, on_round).fit_over(prepared, columns.features, columns.target)
    return FitOutcome(estimator.model_, estimator.ledger_, {}, estimator.fit_report_)


def _local_engine(shards: Mapping[str, Any], options: FitOptions, settings: Settings) -> Engine:
    return choose_engine(
        shards,
        TASKS,
        topology=options.topology,
        seed=settings.seed,
        faults=None,
        min_agents=len(shards),
        gossip=settings.solver == "decentralized",
    )


def _rank_engine(
    comm: Any, sites: Mapping[str, Path], columns: Columns, options: FitOptions, settings: Settings
) -> Engine:
    def read() -> Mapping[str, Any]:
        return read_shards(sites, columns)

    if options.topology is None:
        from dsfr.engines.mpi.engine import MPIEngine

        return MPIEngine(read, TASKS, comm=comm)
    from dsfr.engines.mpi.gossip import MPIGossipEngine
    from dsfr.engines.mpi.network import MPINetworkEngine
    from dsfr.engines.topology import make_topology

    def links(names: Any) -> Any:
        return make_topology(options.topology, names, seed=settings.seed)

    kind = MPIGossipEngine if settings.solver == "decentralized" else MPINetworkEngine
    return kind(read, TASKS, links, comm=comm)
