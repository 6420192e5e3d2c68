"""What ranks run in tests: ``mpiexec -n 4 python -m tests.mpi_program NAME ...``; rank 0 prints JSON.

What few programs need is imported there: every rank of every job imports all that stands at the top.
"""

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import numpy as np
from mpi4py import MPI

from dsfr.engines import InProcessEngine
from dsfr.engines.checkpoint.engine import with_checkpoint
from dsfr.engines.local.gossip import GossipEngine
from dsfr.engines.mpi.engine import MPIEngine
from dsfr.engines.mpi.gossip import MPIGossipEngine
from dsfr.engines.mpi.network import MPINetworkEngine
from dsfr.engines.mpi.ranks import Ranks
from dsfr.engines.topology import make_topology
from dsfr.training import TASKS, make_shards, train
from tests.tables import make_settings, make_table, owners_of

COMM = MPI.COMM_WORLD
KINDS = [
    {"solver": "conjugate"},
    {"solver": "admm", "unlabeled": "graph", "width_pooling": "paper"},
    {"solver": "sums", "tune": "evidence"},
    {"solver": "few-rounds", "unlabeled": None},
    {"basis": "wavelets", "n_nodes": 8, "unlabeled": "graph"},
]


def shards_of(n_agents, seed=1, weights=None):
    X, _, y = make_table(seed, n_rows=120)
    return X, make_shards(X, y, owners_of(seed, len(y), n_agents), weights)


def own(shards):
    """The agents of this rank: all others by turns."""
    return {name: shards[name] for name in list(shards)[COMM.rank :: COMM.size]}


def over_graph(shards, graph, tasks=TASKS, kind=MPINetworkEngine):
    return kind(own(shards), tasks, lambda names: make_topology(graph, names))


def deadly(tasks, after):
    """Tasks that kill the process after so many calls, and after the others have gone on as far as they can."""
    calls = []

    def spoiled(task):
        def run(*told):
            calls.append(task)
            if len(calls) > after:
                time.sleep(0.5)
                os.kill(os.getpid(), signal.SIGKILL)
            return task(*told)

        return run

    return {name: spoiled(task) for name, task in tasks.items()}


def equality():
    """Largest differences of predictions from those in one process, by kind of training and graph."""
    X, shards = shards_of(COMM.size)
    found = {}
    for told in KINDS:
        reference = train(InProcessEngine(shards, TASKS), make_settings(seed=3, **told)).predictor.predict(X)
        for graph in (None, "ring", "grid"):
            engine = MPIEngine(own(shards), TASKS) if graph is None else over_graph(shards, graph)
            trained = train(engine, make_settings(seed=3, **told))
            found[f"{told} {graph}"] = float(np.abs(trained.predictor.predict(X) - reference).max())
            check_ledger(engine)
    _, heavy = shards_of(COMM.size, weights=np.linspace(0.2, 3.0, 120))
    told = make_settings(seed=3, solver="sums")
    weighted = [train(engine, told) for engine in (InProcessEngine(heavy, TASKS), MPIEngine(own(heavy), TASKS))]
    reference, spread = (trained.predictor.predict(X) for trained in weighted)
    found["weights of labels"] = float(np.abs(spread - reference).max())
    for graph in ("ring", "star"):
        told = make_settings(seed=3, solver="decentralized")
        copies = train(GossipEngine(shards, TASKS, make_topology(graph, list(shards))), told).copies
        engine = over_graph(shards, graph, kind=MPIGossipEngine)
        ((name, copy),) = train(engine, told).copies.items()
        apart = float(np.abs(copy.predict(X) - copies[name].predict(X)).max())
        check_ledger(engine)
        found[f"decentralized {graph}"] = COMM.allreduce(apart, MPI.MAX)
    return found


def check_ledger(engine):
    """All ranks tell the same of what was sent, and what agents have sent and received is all of it."""
    ledger = engine.ledger
    assert len({COMM.allgather(str(ledger))[rank] for rank in range(COMM.size)}) == 1
    assert sum(traffic.bytes_sent for traffic in ledger.agents.values()) <= ledger.bytes
    assert ledger.bytes > 0


def several():
    """Five agents on fewer ranks give the model of five ranks."""
    X, shards = shards_of(5)
    reference = train(InProcessEngine(shards, TASKS), make_settings(seed=3)).predictor.predict(X)
    with MPIEngine(own(shards), TASKS) as engine:
        trained = train(engine, make_settings(seed=3))
    apart = float(np.abs(trained.predictor.predict(X) - reference).max())
    return {"apart": apart, "agents": engine.n_agents, "oversubscribed": engine.oversubscribed}


def failing(where, graph=None):
    """An exception on rank 1: in a task, outside of one, or as other settings than the others have."""
    _, shards = shards_of(COMM.size)
    guilty = COMM.rank == 1
    tasks = dict(TASKS)
    if where == "task" and guilty:

        def spoiled(shard, memory, broadcast):
            raise ZeroDivisionError("nothing to divide by")

        tasks["cluster_sums"] = spoiled
    engine = over_graph(shards, graph, tasks, MPIGossipEngine) if graph else MPIEngine(own(shards), tasks)

    def on_round(info):
        if where == "outside" and guilty and info.round == 3:
            raise OSError("the disk is full")

    if where == "graph":
        over_graph(shards, "ring" if guilty else "star")
    told = {"ridge": 0.2 if where == "settings" and guilty else 0.1, "n_rules": 3 + (where == "layout" and guilty)}
    solver = "decentralized" if graph else "sums" if where != "settings" else "admm"
    with engine:
        try:
            train(engine, make_settings(seed=3, solver=solver, **told), on_round)
        except RuntimeError as error:
            if COMM.rank == 0:
                print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
            raise SystemExit(2) from None


def later(how):
    """Rank 1 differs in a round whose layout is known from before: it fails, or was told something else."""

    def tell_late(shard, memory, broadcast):
        if how == "task" and COMM.rank == 1 and broadcast["round"] == 3.0:
            raise ZeroDivisionError("nothing to divide by")
        return memory, {"number": np.array(shard)}

    with MPIEngine({str(COMM.rank): 1.0}, {"tell": tell_late}) as engine:
        for number in range(5):
            told = number + 0.25 * (how == "told" and COMM.rank == 1 and number == 3)
            try:
                engine.sum("tell", {"round": np.array(float(told))})
            except RuntimeError as error:
                return {"round": number, "error": str(error)}


def killed(folder, rank, after, graph=""):
    """A training with a checkpoint, of which one rank is killed after some rounds."""
    return checkpointed(folder, int(rank), int(after), graph)


def resumed(folder, graph=""):
    """The same without a kill."""
    return checkpointed(folder, None, 0, graph)


def checkpointed(folder, victim, after, graph=""):
    n_agents = COMM.size if graph else 4
    X, shards = shards_of(n_agents)
    told = {"solver": "decentralized"} if graph else {"solver": "admm"}
    settings = make_settings(seed=3, **told)
    tasks = deadly(TASKS, after) if COMM.rank == victim else TASKS
    engine = over_graph(shards, graph, tasks, MPIGossipEngine) if graph else MPIEngine(own(shards), tasks)
    with engine:
        kept = with_checkpoint(engine, folder, told, resume=True)
        trained = train(kept, settings)
    with_coordinator = make_settings(seed=3, solver="sums") if graph else settings
    reference = train(InProcessEngine(shards, TASKS), with_coordinator).predictor.predict(X)
    return {"replayed": kept.n_replayed, "apart": float(np.abs(trained.predictor.predict(X) - reference).max())}


def many():
    """More engines one after another than MPI has communicators at a time."""
    for _ in range(1500):
        with MPIEngine({str(COMM.rank): COMM.rank + 1.0}, {"tell": tell}) as engine:
            total = engine.sum("tell", {})
    return {"total": float(total["number"])}


def closing():
    """Engines over one `Ranks`, as the command has them: whether the end of its context frees every communicator."""
    shards, tasks = {str(COMM.rank): 1.0}, {"tell": tell}
    with Ranks() as ranks:
        MPIEngine(shards, tasks, ranks=ranks).sum("tell", {})
        linked = []
        for kind in (MPINetworkEngine, MPIGossipEngine):
            engine = kind(shards, tasks, lambda names: {"0": ["1"], "1": ["0"]}, ranks=ranks)
            engine.sum("tell", {})
            linked.append(engine.linked._graph)
        opened = [*ranks._open]
    return {"open": len(opened), "freed": sum(comm == MPI.COMM_NULL for comm in (*opened, *linked))}


def tell(shard, memory, broadcast):
    return memory, {"number": np.array(shard)}


def contract(name, folder):
    """The laws of `tests.engine_contract` on ranks: the errors of all ranks in every law."""
    from tests.engine_contract import ALONG_TREE, BY_GOSSIP, PATH, TO_COORDINATOR, Kind, laws_of

    def over_path(shards, tasks):
        return MPINetworkEngine(own(shards), tasks, lambda names: PATH)

    def gossip_over_path(shards, tasks):
        return MPIGossipEngine(own(shards), tasks, lambda names: PATH)

    makers = {
        "mpi": (over_ranks, TO_COORDINATOR),
        "mpi network": (over_path, ALONG_TREE),
        "mpi gossip": (gossip_over_path, BY_GOSSIP),
    }
    make, traffic = makers[name]
    bare = Kind(make, Path(folder), traffic)
    found = {}
    for title, kind in (("bare", bare), ("checkpointed", bare.with_checkpoints())):
        laws = laws_of(gossip=make is gossip_over_path, checkpointed=kind.checkpointed)
        found[title] = {law.__name__: keep(law, kind) for law in laws}
    return found | {"oversubscribed": make(shards_of(COMM.size)[1], TASKS).oversubscribed}


def over_ranks(shards, tasks):
    return MPIEngine(own(shards), tasks)


def keep(law, kind):
    """Errors of all ranks in a law; ranks that disagree on it must not go on to the next one apart."""
    error = ""
    try:
        law(kind, 1)
    except Exception:
        error = traceback.format_exc()
    return "\n".join(filter(None, COMM.allgather(error)))


def asleep():
    """Ranks that wait for one which never answers."""
    _, shards = shards_of(COMM.size)

    def lazy(shard, memory, broadcast):
        pids = COMM.gather(os.getpid())
        if COMM.rank == 0:
            print(json.dumps(pids), flush=True)
        time.sleep(120 if COMM.rank == 1 else 0)
        raise AssertionError

    with MPIEngine(own(shards), {"measure": lazy}) as engine:
        engine.max("measure", {})


def bad_input(folder):
    """What comes of fits on the folders of odd columns, one after the other in one job."""
    from dsfr.pipeline.engines import EngineOptions
    from dsfr.pipeline.fit import fit_model
    from dsfr.pipeline.options import FitOptions
    from dsfr.pipeline.processes import open_processes
    from tests.bad_input import EXPECTED, outcome

    engine, found = EngineOptions(engine="mpi"), {}
    with open_processes("mpi") as processes:
        for cell in EXPECTED:
            options = FitOptions(target="y", method="sfr-icr", rules=2, solver="few-rounds")
            data = f"{folder}/{cell}/*"
            found[cell] = outcome(lambda data=data, options=options: fit_model(data, options, engine, processes).model)
    return found


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    answer = globals()[name](*rest)
    if COMM.rank == 0 and answer is not None:
        print(json.dumps(answer), flush=True)
