"""Worker of `benchmarks.engines`: measures one engine with one number of processes and prints JSON.

[mpiexec -n 2] python -m benchmarks.engine_worker ENGINE N_PROCESSES rounds N_FLOATS
[mpiexec -n 2] python -m benchmarks.engine_worker ENGINE N_PROCESSES consensus N_WEIGHTS
[mpiexec -n 2] python -m benchmarks.engine_worker ENGINE N_PROCESSES fit N_AGENTS ROWS_PER_AGENT REPEATS
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dsfr.engines import InProcessEngine
from dsfr.training import ADMM, TASKS, Settings, Shard, Sums, make_shards, train

N_FEATURES = 4
WARM_UP, MEASURED = 20, 200
CONSENSUS_ROWS = 1000
SETTINGS = Settings(solver=Sums(max_rounds=12), n_rules=5, seed=0)
"""At most twelve rounds of clustering."""


def make_shard(name: str, n_rows: int) -> Shard:
    """Random rows of one agent, which every process can generate."""
    rng = np.random.default_rng([7, int(name)])
    X = rng.uniform(-1.0, 1.0, (n_rows, N_FEATURES))
    y = np.where(np.arange(n_rows) < max(n_rows // 100, 1), np.sin(3.0 * X[:, 0]) + X[:, 1], np.nan)
    return make_shards(X, y, np.full(n_rows, name))[name]


def make_vector(name: str, n_floats: int) -> np.ndarray:
    return np.full(n_floats, float(name))


def add_vector(shard: np.ndarray, memory: dict, told: dict) -> tuple[dict, dict]:
    """A task with almost no computation."""
    return memory, {"sum": shard + told["x"]}


@contextmanager
def open_engine(kind: str, n_processes: int, make: Callable, names: list[str], size: int, tasks: Any) -> Iterator[Any]:
    """An engine over agents with the given names; over MPI they are assigned to ranks in turn."""
    if kind == "inprocess":
        yield InProcessEngine({name: make(name, size) for name in names}, tasks)
    elif kind == "mpi":
        from mpi4py import MPI

        from dsfr.engines.mpi.engine import MPIEngine

        own = names[MPI.COMM_WORLD.rank :: MPI.COMM_WORLD.size]
        with MPIEngine({name: make(name, size) for name in own}, tasks) as engine:
            yield engine
    else:
        import dask
        import distributed

        from dsfr.engines.dask.engine import DaskEngine

        settings = {"n_workers": n_processes, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 40}
        with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
            yield DaskEngine(client, {name: dask.delayed(make)(name, size) for name in names}, tasks)


def time_rounds(kind: str, n_processes: int, n_floats: int) -> dict[str, float]:
    """Seconds per round of one vector from each process."""
    names, told = [str(number) for number in range(n_processes)], {"x": np.ones(n_floats)}
    measured = MEASURED if kind != "dask" else MEASURED // 4
    with open_engine(kind, n_processes, make_vector, names, n_floats, {"add": add_vector}) as engine:
        for _ in range(WARM_UP):
            engine.sum("add", told)
        seconds = []
        for _ in range(5):
            start = time.perf_counter()
            for _ in range(measured // 5):
                engine.sum("add", told)
            seconds.append((time.perf_counter() - start) / (measured // 5))
    return {"seconds": float(np.median(seconds))}


def time_consensus(kind: str, n_processes: int, n_weights: int) -> dict[str, float]:
    """Seconds per round of plain ADMM for so many weights; every process has one agent, a lone process two."""
    names = [str(number) for number in range(max(n_processes, 2))]
    measured = MEASURED if kind != "dask" else MEASURED // 4
    solver = ADMM(acceleration=None, penalty=1.0, tol=1e-300, max_rounds=WARM_UP + measured + 1)
    asked, times = Settings(basis="wavelets", n_nodes=n_weights, unlabeled=None, solver=solver), list[float]()
    with open_engine(kind, n_processes, make_shard, names, CONSENSUS_ROWS, TASKS) as engine:
        train(engine, asked, lambda _: times.append(time.perf_counter()))
    ends = np.array(times[WARM_UP :: measured // 5])
    return {"seconds": float(np.median(np.diff(ends))) / (measured // 5)}


def time_fit(kind: str, n_processes: int, n_agents: int, n_rows: int, repeats: int) -> dict[str, float]:
    """Median seconds of a training without making rows, its rounds, and a number that identifies the model."""
    names = [str(number) for number in range(n_agents)]
    with open_engine(kind, n_processes, make_shard, names, n_rows, TASKS) as engine:
        train(engine, replace(SETTINGS, solver=Sums(max_rounds=1)))  # loads and compiles, and dask makes the rows
        seconds, rounds = [], engine.ledger.rounds
        for _ in range(repeats):
            start = time.perf_counter()
            trained = train(engine, SETTINGS)
            seconds.append(time.perf_counter() - start)
        rounds = (engine.ledger.rounds - rounds) // repeats
    told = float(trained.predictor.predict(np.linspace(-0.9, 0.9, 20).reshape(5, 4)).sum())
    return {"seconds": float(np.median(seconds)), "rounds": rounds, "model": told}


def main() -> None:
    kind, n_processes, what, *numbers = sys.argv[1:]
    work = {"rounds": time_rounds, "consensus": time_consensus, "fit": time_fit}[what]
    with threadpool_limits(1):
        found = work(kind, int(n_processes), *map(int, numbers))
    if kind != "mpi" or _rank() == 0:
        print(json.dumps(found), flush=True)


def _rank() -> int:
    from mpi4py import MPI

    return int(MPI.COMM_WORLD.rank)


if __name__ == "__main__":
    main()
