"""Seconds per round and per fit on every engine, and their scaling, with one thread per process.

Four tables. *Consensus*: rounds of plain ADMM for 200 weights, one agent in each process. *Rounds*: one vector of 200
floats from each process, with almost no computation. *Fits*: the same 80 agents, rows and rounds on every engine,
SFR-ICR with sums. *Scaling*: 4,000,000 rows in one process against two ranks (strong), and 2,000,000 rows per rank
(weak; a lone agent needs no start from another one, so its base is short). Clustering runs at most twelve rounds, the
same number on every engine; "same model" means that predictions agree to 1e-8. Also written: engines.csv and
engines.png.

    python -m benchmarks.engines [--quick]
"""

import argparse
import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import dsfr
from benchmarks import MISSED

RESULTS = Path(__file__).parent / "results"
N_FLOATS = 200
RUNS = [("inprocess", 1), ("mpi", 2), ("mpi", 5), ("mpi", 16), ("dask", 2), ("dask", 5)]
SCALING = (
    ("strong", "inprocess", 1, 2),
    ("strong", "mpi", 1, 2),
    ("strong", "mpi", 2, 2),
    ("weak", "mpi", 1, 1),
    ("weak", "mpi", 2, 2),
)
"""Kind, engine, processes and agents."""
N_AGENTS, ROWS_PER_AGENT = 80, 5_000
LARGE, QUICK = 4_000_000, 400_000
MOST_RATIO, LEAST_SPEEDUP = 16.0, 1.5
FIELDS = ("table", "engine", "processes", "agents", "rows", "rounds", "seconds", "seconds_per_round")


def measure(engine: str, n_processes: int, *what: object) -> dict[str, float]:
    """Run the worker on one engine and return its measurements."""
    command = [sys.executable, "-m", "benchmarks.engine_worker", engine, n_processes, *what]
    if engine == "mpi":
        launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
        command = [launcher or "mpiexec", "-n", n_processes, *command]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(list(map(str, command)), env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def row(table: str, engine: str, n_processes: int, agents: int, rows: int, found: dict[str, float]) -> dict:
    rounds = int(found.get("rounds", 1))
    values = (table, engine, n_processes, agents, rows, rounds, found["seconds"], found["seconds"] / rounds)
    return dict(zip(FIELDS, values, strict=True))


def show_rounds(table: str, title: str) -> tuple[list[dict], float]:
    """A table of rounds, and the ratio of the times with 16 and with 2 ranks."""
    print(f"{title}\n{'engine':<12}{'processes':>10}{'ms per round':>14}")
    rows = []
    for engine, n in RUNS:
        found = measure(engine, n, table, N_FLOATS)
        rows.append(row(table, engine, n, max(n, 2) if table == "consensus" else n, 0, found))
        print(f"{engine:<12}{n:>10}{1e3 * found['seconds']:>14.3f}", flush=True)
    by_ranks = {entry["processes"]: entry["seconds"] for entry in rows if entry["engine"] == "mpi"}
    return rows, by_ranks[16] / by_ranks[2]


def show_fits(n_rows: int, repeats: int) -> tuple[list[dict], bool]:
    """The table of fits, and whether all gave the same model."""
    print(f"\nfits of {N_AGENTS * n_rows:,} rows, {N_AGENTS} agents")
    print(f"{'engine':<12}{'processes':>10}{'seconds':>10}{'rounds':>8}{'ms per round':>14}")
    rows, models = [], []
    for engine, n in RUNS:
        found = measure(engine, n, "fit", N_AGENTS, n_rows, repeats)
        models.append(found["model"])
        rows.append(row("fits", engine, n, N_AGENTS, N_AGENTS * n_rows, found))
        per_round = 1e3 * rows[-1]["seconds_per_round"]
        print(f"{engine:<12}{n:>10}{found['seconds']:>10.3f}{rows[-1]['rounds']:>8}{per_round:>14.2f}", flush=True)
    return rows, max(models) - min(models) < 1e-8


def show_scaling(n_rows: int, repeats: int, passes: int) -> tuple[list[dict], float]:
    """The table of scaling, and the speedup of two ranks over one process with the same two agents."""
    print(f"\nscaling, two agents of {n_rows // 2:,} rows each (strong); ranks of {n_rows // 2:,} rows (weak)")
    print(f"median of {passes} passes over the table\n")
    print(f"{'':<8}{'engine':<12}{'processes':>10}{'rows':>12}{'seconds':>10}{'speedup':>10}")
    found = [
        [measure(engine, n, "fit", agents, n_rows // 2, repeats) for _, engine, n, agents in SCALING]
        for _ in range(passes)
    ]
    seconds = np.array([[entry["seconds"] for entry in one] for one in found])
    rows, speedups = [], []
    for j, (kind, engine, n, agents) in enumerate(SCALING):
        base = next(i for i, entry in enumerate(SCALING) if entry[0] == kind)
        # A machine is faster at times; within a pass less so.
        speedups.append(float(np.median(seconds[:, base] / seconds[:, j])) * (1 if kind == "strong" else n))
        rows.append(
            row(kind, engine, n, agents, agents * n_rows // 2, found[0][j] | {"seconds": np.median(seconds[:, j])})
        )
        head = f"{kind:<8}{engine:<12}{n:>10}{agents * n_rows // 2:>12,}"
        print(f"{head}{rows[-1]['seconds']:>10.3f}{speedups[-1]:>10.2f}", flush=True)
    return rows, speedups[2]


def plot(rows: list[dict], path: Path) -> None:
    """Milliseconds per round by engine, and speedup by ranks beside the ideal."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    for shift, table, label in ((-0.2, "consensus", "consensus"), (0.2, "rounds", "nothing to compute")):
        own = [entry for entry in rows if entry["table"] == table]
        left.bar(np.arange(len(own)) + shift, [1e3 * entry["seconds"] for entry in own], 0.4, label=label)
    left.set_xticks(range(len(own)), [f"{entry['engine']} {entry['processes']}" for entry in own])
    left.set(yscale="log", ylabel="ms per round", title=f"rounds of {N_FLOATS} numbers")
    left.legend()
    left.tick_params(axis="x", rotation=30)
    for kind, mark in (("strong", "o-"), ("weak", "s--")):
        own = [entry for entry in rows if entry["table"] == kind and entry["engine"] == "mpi"]
        base = own[0]["seconds"] * (1 if kind == "strong" else own[0]["processes"])
        ranks = [entry["processes"] for entry in own]
        gain = [base / entry["seconds"] * (1 if kind == "strong" else entry["processes"]) for entry in own]
        right.plot(ranks, gain, mark, label=f"{kind} scaling")
    right.plot([1, 2], [1, 2], color="gray", linewidth=0.8, label="ideal")
    right.set(xlabel="ranks", ylabel="speedup", xticks=[1, 2], title="large tables, two cores")
    right.legend()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one run each; writes no files")
    quick = parser.parse_args().quick
    size, large, repeats, passes = (ROWS_PER_AGENT // 10, QUICK, 1, 1) if quick else (ROWS_PER_AGENT, LARGE, 3, 5)
    print(f"dsfr {dsfr.__version__}, SFR-ICR, 5 rules, 4 features, one thread per process, median of {repeats}\n")
    consensus, ratio = show_rounds("consensus", f"rounds of consensus on {N_FLOATS} weights")
    rounds, bare_ratio = show_rounds("rounds", f"\nrounds of {N_FLOATS} floats, nothing to compute")
    fits, same = show_fits(size, repeats)
    scaling, speedup = show_scaling(large, repeats, passes)
    if not quick:
        RESULTS.mkdir(exist_ok=True)
        with (RESULTS / "engines.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows([*consensus, *rounds, *fits, *scaling])
        plot([*consensus, *rounds, *fits, *scaling], RESULTS / "engines.png")
    said = {True: "yes", False: "NO"}
    print(f"\nthe same model on every engine: {said[same]}")
    print(f"16 ranks take {ratio:.1f} x as long per round of consensus as 2, ", end="")
    print(f"at most {MOST_RATIO:g}: {said[ratio <= MOST_RATIO]} ({bare_ratio:.1f} x with nothing to compute)")
    print(f"2 ranks on {large:,} rows are {speedup:.2f} x faster than one process, at least {LEAST_SPEEDUP}: ", end="")
    print(said[speedup >= LEAST_SPEEDUP])
    raise SystemExit(0 if same and ratio <= MOST_RATIO and speedup >= LEAST_SPEEDUP else MISSED)


if __name__ == "__main__":
    main()
