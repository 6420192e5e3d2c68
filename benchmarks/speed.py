"""Seconds of each kernel and of a whole fit compared with other packages, on the same rows and the same work.

Each pair is measured alternately in one run, after one unmeasured warm-up of both; medians are compared. Packages that
need another version of numpy run in a separate process, which sleeps between requests.

    python -m benchmarks.speed [rows]
"""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge

import dsfr
from benchmarks import MISSED
from benchmarks.peers import rows, start_centers
from dsfr.core.clustering.fuzzy_c_means import fuzzy_c_means
from dsfr.core.compiled import available
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import Ranges
from dsfr.core.solve.statistics import Statistics
from dsfr.core.threads import n_threads
from dsfr.training.blas_threads import single_threaded_blas

ROOT = Path(__file__).parent.parent
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"
REPEATS = 5
FUZZY_STEPS, HARD_STEPS = 2, 20
LABELS, FEW_LABELS = 10_000, 50
SMALL_ROWS = 6_400
USUAL_SECONDS, MOST_ROUNDS = 0.7, 250.0
"""Processor seconds of a fit of so many rows on the machine of the stored results, and rounds that are enough."""


@dataclass
class Row:
    """One line of the table."""

    work: str
    peer: str
    ours: float
    theirs: float
    reach: float
    """Largest allowed ratio of our time to theirs."""
    equal: str = ""

    @property
    def reached(self) -> bool:
        """Whether the ratio of the times is within the limit."""
        return self.ours <= self.reach * self.theirs

    def __str__(self) -> str:
        verdict = "yes" if self.reached else "NO"
        ratio = f"{self.ours / self.theirs:.3f}"
        times = f"{self.ours:>8.3f} {self.theirs:>9.3f} {ratio:>7} {self.reach:>7.3f} {verdict:>8}"
        return f"{self.work:<36} {self.peer:<30} {times}  {self.equal}".rstrip()


def in_turns(ours: Callable[[], object], theirs: Callable[[], object], repeats: int = REPEATS) -> tuple[float, float]:
    """Median seconds of both; a function may return its own measurement."""
    times: list[tuple[float, float]] = [(_seconds(ours), _seconds(theirs)) for _ in range(repeats + 1)]
    return tuple(float(np.median(column)) for column in zip(*times[1:], strict=True))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    told = work()
    return told if isinstance(told, float) else time.perf_counter() - start


class Peers:
    """The process in which other fuzzy c-means run."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [str(PEERS_PYTHON), "-m", "benchmarks.peers"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def ask(self, **question: object) -> tuple[float, np.ndarray]:
        """Seconds and centers of a peer."""
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["seconds"], np.array(answer["centers"])

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()


def fcm(X: np.ndarray, k: int, fuzzifier: float, steps: int, fast: bool | None = None) -> np.ndarray:
    start, fast = start_centers(k, X.shape[1]), available() if fast is None else fast
    return fuzzy_c_means(X, start, fuzzifier=fuzzifier, tol=0.0, max_rounds=steps, fast=fast)


def against_fuzzy(n: int) -> list[Row]:
    X, table, peers = rows(n, 8), [], Peers()
    for k in (5, 20):
        for fuzzifier in (2.0, 1.1):
            for peer, reach in (("scikit-fuzzy", 0.1), ("fuzzy-c-means", 1 / 6)):
                question = {"peer": peer, "n": n, "d": 8, "k": k, "fuzzifier": fuzzifier, "steps": FUZZY_STEPS}
                found = []

                def theirs(question: dict = question, found: list = found) -> float:
                    seconds, centers = peers.ask(**question)
                    found.append(centers)
                    return seconds

                times = in_turns(lambda k=k, a=fuzzifier: fcm(X, k, a, FUZZY_STEPS), theirs, repeats=3)
                apart = np.abs(fcm(X, k, fuzzifier, FUZZY_STEPS) - found[-1]).max()
                work = f"FCM, {k} clusters, fuzzifier {fuzzifier:g}"
                table.append(Row(work, peer, *times, reach, f"centers differ by {apart:.0e}"))
    peers.close()
    return table


def against_kmeans(n: int) -> list[Row]:
    X, table = rows(n, 8), []
    for k, reach in ((5, 1.5), (20, 2.5)):
        for fuzzifier in (2.0, 1.1):
            model = KMeans(k, init=start_centers(k, 8), n_init=1, max_iter=HARD_STEPS, tol=0.0)
            times = in_turns(lambda k=k, a=fuzzifier: fcm(X, k, a, HARD_STEPS), lambda model=model: model.fit(X))
            work = f"FCM, {k} clusters, fuzzifier {fuzzifier:g}"
            table.append(Row(work, "KMeans (Lloyd)", *times, reach, f"{HARD_STEPS} and {model.n_iter_} steps"))
    return table


def statistics(n: int) -> Row:
    rng = np.random.default_rng(2)
    X, y = rows(n, 15), rng.standard_normal(n)
    rules = Rules(rng.uniform(-1, 1, (20, 15)), rng.uniform(0.3, 1.0, (20, 15)))
    H = rules.features(X)

    def ours() -> Statistics:
        with single_threaded_blas():
            return sum(Statistics.parts(X, y, rules, fast=available()), Statistics.none(rules.n_outputs))

    apart = np.abs(ours().gram / (H.T @ H) - 1.0).max()
    return Row(
        "statistics, 15 features, 20 rules",
        "H.T @ H, H given",
        *in_turns(ours, lambda: H.T @ H),
        1.0,
        f"relative difference {apart:.0e}",
    )


def whole_fit(n: int) -> list[Row]:
    rng = np.random.default_rng(3)
    X = rows(n, 8)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    few = np.where(np.arange(n) < LABELS, y, np.nan)
    table = []
    for labels, told in ((few, f"{LABELS} labels"), (y, "all labels")):
        times = in_turns(
            lambda labels=labels: dsfr.SFRRegressor(n_agents=5, random_state=0).fit(X, labels),
            lambda: HistGradientBoostingRegressor().fit(X, y),
            repeats=3,
        )
        table.append(Row(f"SFR-ICR, 5 agents, {told}", "HistGradientBoosting, all labels", *times, 1.0))
    return table


def few_labels(n: int, n_labels: int = FEW_LABELS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, their targets, and the targets of which all but a few are hidden."""
    rng = np.random.default_rng(5)
    X = rows(n, 8)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)
    return X, y, np.where(np.arange(n) < n_labels, y, np.nan)


def automatic(n: int) -> list[Row]:
    """The automatic mode and short rules: fit compared with clustering, and its growth with the number of rows."""
    (X, _, few), (longer, _, longer_few) = few_labels(n), few_labels(2 * n)
    means = KMeans(20, init=start_centers(20, 8), n_init=1, max_iter=HARD_STEPS, tol=0.0)
    lloyd, peer = lambda: means.fit(X), f"KMeans, 20 clusters, {HARD_STEPS} steps"
    table = []
    for kind in (dsfr.AutoSFRRegressor, dsfr.RuleRegressor):
        times = in_turns(lambda kind=kind: kind(random_state=0).fit(X, few), lloyd, repeats=3)
        table.append(Row(f"{kind.__name__}, {FEW_LABELS} labels", peer, *times, 8.0))

    def fit(X: np.ndarray, y: np.ndarray) -> float:
        return _seconds(lambda: dsfr.AutoSFRRegressor(random_state=0).fit(X, y))

    times = in_turns(lambda: fit(longer, longer_few), lambda: 2.0 * fit(X, few), repeats=3)
    growth = 1.0 + np.log2(times[0] / times[1])
    table.append(Row("AutoSFRRegressor, twice the rows", "twice its time", *times, 1.0, f"exponent {growth:.2f}"))
    return table


def automatic_predict(n: int) -> list[Row]:
    """Predictions of the whole ensemble and of short rules."""
    X, y, few = few_labels(n)
    boosting, table = HistGradientBoostingRegressor().fit(X, y), []
    for kind in (dsfr.AutoSFRRegressor, dsfr.RuleRegressor):
        model = kind(random_state=0).fit(X[:10_000], few[:10_000])
        times = in_turns(lambda model=model: model.predict(X), lambda: boosting.predict(X))
        table.append(Row(f"{kind.__name__}, predict", "HistGradientBoosting, predict", *times, 1.0))
    return table


def small_table(_: int) -> list[Row]:
    """The automatic mode on a table of usual size: processor time, and rounds with five agents."""
    X, _, few = few_labels(SMALL_ROWS)

    def processor_time() -> float:
        start = time.process_time()
        dsfr.AutoSFRRegressor(random_state=0).fit(X, few)
        return time.process_time() - start

    times = in_turns(processor_time, lambda: USUAL_SECONDS)
    rounds = dsfr.AutoSFRRegressor(n_agents=5, random_state=0).fit(X, few).n_rounds_
    return [
        Row(f"AutoSFRRegressor, {SMALL_ROWS} rows", "processor time to stay near", *times, 2.0),
        Row("AutoSFRRegressor, 5 agents", "rounds to stay below", float(rounds), MOST_ROUNDS, 1.0, "rounds"),
    ]


def predict(n: int) -> Row:
    rng = np.random.default_rng(4)
    X = rows(n, 8)
    rules = Rules(rng.uniform(-1, 1, (5, 8)), rng.uniform(0.3, 1.0, (5, 8)))
    predictor = Predictor(Ranges.of(X), rules, rng.standard_normal(rules.n_outputs), 0.0, 1.0, np.ones(5))
    H = rules.features(X)
    ridge = Ridge().fit(H[:10_000], X[:10_000, 0])
    times = in_turns(lambda: predictor.predict(X), lambda: ridge.predict(H), repeats=9)
    return Row("predict, 5 rules", "Ridge on H, H given", *times, 3.0)


def against_numpy(n: int) -> list[Row]:
    """Compiled kernels compared with our numpy kernels, which are used if numba is not installed."""
    X, table = rows(n, 8), []
    for fuzzifier in (2.0, 1.1):
        work = f"FCM, 5 clusters, fuzzifier {fuzzifier:g}"
        times = in_turns(
            lambda a=fuzzifier: fcm(X, 5, a, FUZZY_STEPS),
            lambda a=fuzzifier: fcm(X, 5, a, FUZZY_STEPS, fast=False),
            repeats=3,
        )
        table.append(Row(work, "our own kernels in numpy", *times, 1.0))
    return table


def main() -> None:
    warnings.simplefilter("ignore")
    n = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    if not PEERS_PYTHON.exists():
        sys.exit("the other packages are not installed: run this by `make bench`, which does it")
    kernels = "compiled kernels" if available() else "numpy alone"
    print(f"dsfr {dsfr.__version__}, {n} rows x 8 features, {n_threads()} threads of {os.cpu_count()} cores, {kernels}")
    print(f"seconds, medians in turns; FCM is {FUZZY_STEPS} steps against fuzzy peers, {HARD_STEPS} against KMeans\n")
    print(f"{'work':<36} {'against':<30} {'ours':>8} {'theirs':>9} {'ratio':>7} {'reach':>7} {'reached':>8}")
    table = []
    for group in (
        against_fuzzy,
        against_kmeans,
        lambda n: [statistics(n)],
        whole_fit,
        lambda n: [predict(n)],
        automatic,
        automatic_predict,
        small_table,
        against_numpy,
    ):
        for row in group(n):
            table.append(row)
            print(row, flush=True)
    missed = [row for row in table if not row.reached]
    print(f"\n{len(table) - len(missed)} of {len(table)} reached")
    raise SystemExit(MISSED if missed else 0)


if __name__ == "__main__":
    main()
