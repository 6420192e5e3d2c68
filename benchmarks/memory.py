"""Peak memory and time of a fit on ten million rows from Parquet; its model must equal that of the rows in memory.

python -m benchmarks.memory [rows]
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import dsfr
from benchmarks import MISSED

MOST_GIB = 1.0
MOST_APART = 1e-8
PART_ROWS = 500_000
LABELED = 0.01

CHILD = """
import json, resource, sys, time
import numpy as np
import dsfr
from benchmarks.memory import make_part, n_parts

folder, kind, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = dsfr.SFRRegressor(n_rules=5, n_agents=5, random_state=0)
start = time.perf_counter()
if kind == "streamed":
    model.fit(dsfr.scan(folder, target="y"))
else:
    parts = [make_part(number, n) for number in range(n_parts(n))]
    X, y = np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    del parts
    start = time.perf_counter()
    model.fit(X, y)
seconds = time.perf_counter() - start
predictor = model.model_.predictor
arrays = [predictor.weights, *(array.ravel() for array in predictor.basis.arrays().values())]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
stages = {stage.name: stage.seconds for stage in model.fit_report_.stages}
print(json.dumps({"seconds": seconds, "peak": peak, "rounds": model.n_rounds_, "stages": stages,
                  "model": np.concatenate(arrays).tolist()}))
"""


def n_parts(n: int) -> int:
    return -(-n // PART_ROWS)


def make_part(number: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows around six centers; one in a hundred is labelled."""
    rng = np.random.default_rng([5, number])
    size = min(PART_ROWS, n - number * PART_ROWS)
    places = np.random.default_rng(5).uniform(-1, 1, (6, 8))
    X = places[rng.integers(6, size=size)] + 0.25 * rng.standard_normal((size, 8))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(size)
    return X, np.where(rng.random(size) < LABELED, y, np.nan)


def write_parts(folder: Path, n: int) -> None:
    for number in range(n_parts(n)):
        X, y = make_part(number, n)
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])} | {"y": pa.array(y, mask=np.isnan(y))}
        pa.parquet.write_table(pa.table(columns), folder / f"part-{number:03}.parquet")


def measure(folder: Path, kind: str, n: int) -> dict:
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(folder), kind, str(n)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def main() -> None:
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_parts(folder, n)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
        told = {kind: measure(folder, kind, n) for kind in ("streamed", "in memory")}
    print(f"dsfr {dsfr.__version__}, SFR-ICR, {n} rows x 8 features, 1 in 100 labelled, 5 rules, 5 agents")
    print(f"Parquet files of {size:.0f} MiB; as numbers {n * 72 / 2**20:.0f} MiB\n")
    print(f"{'rows':<12} {'seconds':>8} {'rounds':>7} {'peak memory, GiB':>17}   seconds by stage")
    for kind, one in told.items():
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in one["stages"].items() if seconds >= 0.05)
        print(f"{kind:<12} {one['seconds']:>8.1f} {one['rounds']:>7} {one['peak']:>17.2f}   {stages}")
    apart = float(np.abs(np.subtract(told["streamed"]["model"], told["in memory"]["model"])).max())
    small, same = told["streamed"]["peak"] < MOST_GIB, apart <= MOST_APART
    print(f"\nstreamed in under {MOST_GIB:g} GiB: {'yes' if small else 'NO'}")
    print(f"the same model to {MOST_APART:g}: {'yes' if same else 'NO'} (largest difference {apart:.1e})")
    raise SystemExit(0 if small and same else MISSED)


if __name__ == "__main__":
    main()
