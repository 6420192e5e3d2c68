"""Growth of the time of a fit with rows, agents and rules: fitted exponents, a table (CSV) and a figure.

Every fit has the same number of clustering rounds, so that the work is comparable; one row in a hundred is labelled.
Agents share 10,000 pairs of unlabelled rows; the default, up to 10,000 pairs for each agent, is shown as well.

    python -m benchmarks.scaling [most rows]
"""

import csv
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import dsfr
from benchmarks import MISSED

RESULTS = Path(__file__).parent / "results"
ROUNDS, REPEATS = 10, 3
AGENTS = (1, 2, 5, 10, 20, 50, 100)
RULES = (2, 5, 10, 20, 50)
PAIRS = 10_000
REACH = {"rows": 1.05, "agents": 0.1}


def table_of(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(6)
    X = rng.uniform(-1, 1, (n, 8))
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, np.where(np.arange(n) % 100 == 0, y, np.nan)


def seconds(X: np.ndarray, y: np.ndarray, n_rules: int = 5, n_agents: int = 1, n_pairs: int | None = None) -> float:
    """Median time of a fit; a new one each time."""
    times = []
    for _ in range(REPEATS):
        model = dsfr.SFRRegressor(
            n_rules,
            unlabeled=dsfr.ICR(n_pairs=n_pairs),
            n_agents=n_agents,
            solver=dsfr.Sums(max_rounds=ROUNDS),
            random_state=0,
        )
        start = time.perf_counter()
        model.fit(X, y)
        if sum(info.stage == "clusters" for info in model.history_) != ROUNDS:
            raise SystemExit("a fit has converged before its last round: the work was not the same")
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def exponent(sizes: list[int], times: list[float]) -> float:
    """Slope of the regression line in log-log coordinates."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def measure(most_rows: int) -> dict[str, tuple[list[int], list[float]]]:
    sizes = [int(n) for n in (1e4, 1e5, 1e6, 1e7) if n <= most_rows]
    middle = min(10**6, most_rows)
    seconds(*table_of(200_000))  # compiled kernels are loaded once
    found = {"rows": (sizes, [seconds(*table_of(n)) for n in sizes])}
    X, y = table_of(middle)
    found["agents"] = (list(AGENTS), [seconds(X, y, n_agents=count, n_pairs=PAIRS // count) for count in AGENTS])
    found["rules"] = (list(RULES), [seconds(X, y, n_rules=count) for count in RULES])
    found["agents, own pairs"] = (list(AGENTS[::3]), [seconds(X, y, n_agents=count) for count in AGENTS[::3]])
    return found


def draw(found: dict[str, tuple[list[int], list[float]]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(13, 3.2), layout="constrained")
    for axis, (what, (sizes, times)) in zip(axes, found.items(), strict=True):
        axis.loglog(sizes, times, "o-")
        axis.set(xlabel=what, title=f"exponent {exponent(sizes, times):.2f}")
        axis.set_ylim(min(times) / 3, max(times) * 3)
        axis.set_xticks(sizes, [f"{size:.0e}" if size > 9999 else str(size) for size in sizes], minor=False)
        axis.minorticks_off()
        axis.grid(True, which="major", alpha=0.3)
    axes[0].set_ylabel("seconds of a fit")
    figure.savefig(path, dpi=120)


def main() -> None:
    warnings.simplefilter("ignore")
    most_rows = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7
    found = measure(most_rows)
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / "scaling.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["what", "size", "seconds"])
        writer.writerows((what, n, f"{t:.4f}") for what, (ns, ts) in found.items() for n, t in zip(ns, ts, strict=True))
    draw(found, RESULTS / "scaling.png")
    print(f"dsfr {dsfr.__version__}, SFR-ICR, 8 features, {ROUNDS} rounds of clustering, medians of {REPEATS} fits")
    print(
        f"rows: 1 agent, 5 rules; agents: {min(10**6, most_rows)} rows in all, 5 rules; rules: as many rows, 1 agent\n"
    )
    missed = False
    for what, (sizes, times) in found.items():
        print(f"{what:<18} {' '.join(f'{size:>9}' for size in sizes)}")
        slope, reach = exponent(sizes, times), REACH.get(what)
        verdict = "" if reach is None else f", at most {reach:g}: {'yes' if slope <= reach else 'NO'}"
        print(f"{'seconds':<18} {' '.join(f'{t:>9.3f}' for t in times)}   exponent {slope:.2f}{verdict}\n")
        missed |= reach is not None and slope > reach
    raise SystemExit(MISSED if missed else 0)


if __name__ == "__main__":
    main()
