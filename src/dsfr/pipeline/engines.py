"""Engines over one file per agent: in this process, over MPI, or over dask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from dsfr.disclosure import Policy, protect, protected_tasks
from dsfr.engines import BaseEngine, Tasks, choose_engine
from dsfr.io.agent_files import Columns, read_movable, read_shards
from dsfr.io.columns import TableError
from dsfr.pipeline.processes import Processes
from dsfr.training import TASKS, Settings
from dsfr.training.component import as_record

MakeEngine: TypeAlias = Callable[[Settings], BaseEngine]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Options of ``dsfr fit`` about the engine."""

    engine: str | None = None
    """One of `ENGINES`; None trains in this process on one table."""
    scheduler: str | None = None
    checkpoint: str | None = None
    resume: bool = False
    policy: str | None = None
    """A file of `Policy.read`, or "default"."""
    masks: bool = False

    def __post_init__(self) -> None:
        given = [name for name in ("scheduler", "checkpoint", "resume", "policy", "masks") if getattr(self, name)]
        if self.engine is None and given:
            options = ", ".join(f"--{name}" for name in given)
            raise TableError(f"{options} needs --engine ({', '.join(ENGINES)})")
        if self.scheduler is not None and self.engine != "dask":
            raise TableError(f"--scheduler is for --engine dask, not for {self.engine}: leave it out")
        if self.resume and self.checkpoint is None:
            raise TableError("--resume needs the folder of the checkpoint: add --checkpoint DIR")

    def protected(self) -> Tasks:
        """The tasks of agents, behind the policy and the masks if there are any."""
        if self.policy is None and not self.masks:
            return TASKS
        policy = None if self.policy is None else read_policy(self.policy)
        return protected_tasks(TASKS, policy=policy, masked=self.masks)

    def protect(self, engine: BaseEngine) -> BaseEngine:
        """The engine, with the coordinator's side of the policy if there is one."""
        return protect(engine, policy=self.policy is not None, masked=self.masks)


def read_policy(given: str) -> Policy:
    """The default policy, or that of a file."""
    return Policy() if given == Policy.shorthand else Policy.read(given)


@dataclass(frozen=True, slots=True)
class FileAgents:
    """Agents whose rows are files."""

    files: Mapping[str, Path]
    """Files of this process by the agent's name."""
    columns: Columns
    topology: Any
    processes: Processes


@contextmanager
def open_engine(agents: FileAgents, options: EngineOptions) -> Iterator[MakeEngine]:
    """A function that makes the engine from the settings of a training; engines end with the context."""
    if options.policy is not None:
        read_policy(options.policy).check_columns(agents.columns.features)
    with ENGINES[str(options.engine)](agents, options) as make_engine:
        yield partial(_with_checkpoint, make_engine, agents, options)


def _with_checkpoint(make: MakeEngine, agents: FileAgents, options: EngineOptions, settings: Settings) -> BaseEngine:
    """The engine, which writes and resumes a checkpoint if the options name one."""
    engine = make(settings)
    if options.checkpoint is None:
        return engine
    from dsfr.engines.checkpoint.engine import with_checkpoint

    about = as_record(settings) | {"topology": agents.topology, "columns": asdict(agents.columns)}
    return with_checkpoint(engine, options.checkpoint, about, resume=options.resume)


@contextmanager
def _in_process(agents: FileAgents, options: EngineOptions) -> Iterator[MakeEngine]:
    shards = read_shards(agents.files, agents.columns)

    def make_engine(settings: Settings) -> BaseEngine:
        wanted = {"topology": agents.topology, "seed": settings.seed}
        wanted["gossip"] = settings.solver.gossips
        engine = choose_engine(shards, options.protected(), **wanted, faults=None, min_agents=len(shards))
        return options.protect(engine)

    yield make_engine


@contextmanager
def _dask(agents: FileAgents, options: EngineOptions) -> Iterator[MakeEngine]:
    from dsfr.engines.dask.cluster import cluster_client
    from dsfr.engines.dask.engine import file_engine

    if agents.topology is not None:
        raise TableError("--topology is not for --engine dask, whose workers are all connected: take --engine mpi")
    paths = {name: str(path.resolve()) for name, path in agents.files.items()}
    with cluster_client(options.scheduler) as client:
        engine = file_engine(client, paths, options.protected(), partial(read_movable, columns=agents.columns))
        yield lambda settings: options.protect(engine)


@contextmanager
def _mpi(agents: FileAgents, options: EngineOptions) -> Iterator[MakeEngine]:
    from dsfr.engines.mpi.engine import MPIEngine
    from dsfr.engines.mpi.gossip import MPIGossipEngine
    from dsfr.engines.mpi.network import MPINetworkEngine
    from dsfr.engines.mpi.ranks import Ranks
    from dsfr.engines.topology import make_topology

    ranks = agents.processes
    assert isinstance(ranks, Ranks), "the engine of MPI runs in the processes of an MPI job"

    def read() -> Mapping[str, Any]:
        return read_shards(agents.files, agents.columns)

    def make_engine(settings: Settings) -> BaseEngine:
        def links(names: Sequence[str]) -> Any:
            return make_topology(agents.topology, names, seed=settings.seed)

        tasks = options.protected()
        if agents.topology is None:
            return options.protect(MPIEngine(read, tasks, ranks=ranks))
        kind = MPIGossipEngine if settings.solver.gossips else MPINetworkEngine
        return options.protect(kind(read, tasks, links, ranks=ranks))

    yield make_engine


ENGINES: dict[str, Callable[[FileAgents, EngineOptions], AbstractContextManager[MakeEngine]]] = {
    "in-process": _in_process,
    "mpi": _mpi,
    "dask": _dask,
}
"""How to open each engine, by name."""
