"""Cost model of training on clusters of 10, 100 and 1,000 nodes, from sizes of messages and the measured time per row.

Computing time is the number of passes times rows per node times the time per row (measured here, on one thread); every
round is a pass, except those of the iterative solver for the weights. An ``Allreduce`` of B bytes over P nodes is taken
to be 2 log2(P) steps of latency + B / (2 bandwidth). Rounds are those that ``dsfr plan`` assumes. Not included: the
start centers, which one agent computes from some of its rows, reading files, and nodes of different speed.

    python -m benchmarks.clusters
"""

import math
import os
import time

import numpy as np
from threadpoolctl import threadpool_limits

import dsfr
from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, Settings, Sums, make_shards, train
from dsfr.training.plan import legs as make_legs

N_FEATURES, N_RULES = 8, 5
LATENCY, BANDWIDTH = 50e-6, 10e9 / 8
"""Seconds of a message and bytes per second of a link: 10-gigabit Ethernet."""
NODES = (1, 10, 100, 1000)
SAMPLE, REPEATS = 2**18, 7
TOTAL, PER_NODE = 1_000_000_000, 1_000_000
ROUNDS = {"sums": (20, 1), "conjugate": (20, 30)}
"""Rounds of clustering and of solving that are assumed, by solver."""


def allreduce_seconds(n_bytes: float, n_nodes: int) -> float:
    """Time of a sum over all nodes, up and down a binary tree."""
    if n_nodes == 1:
        return 0.0
    return 2.0 * math.ceil(math.log2(n_nodes)) * (LATENCY + n_bytes / 2.0 / BANDWIDTH)


def seconds_per_row() -> float:
    """Processor seconds of one pass of clustering over one row, on one thread; the best of several."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1.0, 1.0, (SAMPLE, N_FEATURES)), np.full(SAMPLE, np.nan)
    y[:100] = X[:100, 0]
    engine = InProcessEngine(make_shards(X, y, np.full(SAMPLE, "0")), TASKS)
    settings = Settings(n_rules=N_RULES, solver=Sums(max_rounds=1))
    found, centers = [], train(engine, settings).predictor.basis.centers
    for _ in range(REPEATS):
        start = time.process_time()
        engine.sum("cluster_sums", {"centers": centers})
        found.append(time.process_time() - start)
    return min(found) / SAMPLE


def line(solver: str, rows_per_node: float, n_nodes: int, row: float) -> tuple[float, float, float, int, float]:
    """Seconds of computing and of sums, kB of a sum, rounds, and share of the time spent computing."""
    settings = Settings(n_rules=N_RULES, solver=solver)
    legs = make_legs(N_FEATURES, settings, *ROUNDS[solver])
    rounds = sum(leg.rounds for leg in legs)
    n_passes = sum(leg.rounds for leg in legs if leg.task != "weight_gradient")
    computing = n_passes * rows_per_node * row
    sums = sum(leg.rounds * allreduce_seconds(leg.bytes_up, n_nodes) for leg in legs)
    n_bytes = sum(leg.rounds * leg.bytes_up for leg in legs) / rounds
    return computing, sums, n_bytes / 1e3, rounds, computing / (computing + sums)


def main() -> None:
    os.environ["DSFR_THREADS"] = "1"
    with threadpool_limits(1):
        row = seconds_per_row()
    shape = f"{N_FEATURES} features, {N_RULES} rules"
    print(f"dsfr {dsfr.__version__}, SFR-ICR, {shape}: {1e9 * row:.0f} ns per row and pass, one core per node;")
    print(f"links of {1e6 * LATENCY:g} microseconds and {8 * BANDWIDTH / 1e9:g} Gbit/s; a model, not run\n")
    head = (
        f"{'rows':<22}{'solver':<10}{'nodes':>6}{'rounds':>8}{'kB/sum':>8}{'computing s':>13}{'sums s':>9}{'busy':>7}"
    )
    print(head)
    for what, per_node in ((f"{TOTAL:,} in all", lambda n: TOTAL / n), (f"{PER_NODE:,} per node", lambda n: PER_NODE)):
        for solver in ("sums", "conjugate"):
            for n_nodes in NODES:
                computing, sums, n_bytes, rounds, busy = line(solver, per_node(n_nodes), n_nodes, row)
                numbers = f"{n_nodes:>6}{rounds:>8}{n_bytes:>8.1f}{computing:>13.2f}{sums:>9.3f}{busy:>7.0%}"
                print(f"{what:<22}{solver:<10}{numbers}")


if __name__ == "__main__":
    main()
