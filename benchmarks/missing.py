"""Error against the share of missing values: ours, and imputers in front of the same model and of a peer.

Values are missing in training and test rows alike, at random or by value: the higher a value among those of its
feature, the more often it is missing. "ours" is `AutoSFRRegressor` with the missing values in its rows. The others fill
them in first, by the mean or the median of the feature, or by scikit-learn's `IterativeImputer`, and train the same
model, or extra trees (500 trees, on the labelled rows), on what they get. 100 labels among at most 1,000 rows, 600 test
rows, design tables of all kinds. Draws are counted from 10: parameters were chosen on others. Also written: missing.csv
with every row, and missing.png.

    python -m benchmarks.missing [--draws 3] [--seed 0] [--resume] [--minutes 10]
"""

import argparse
import csv
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer

import dsfr
from benchmarks import MISSED
from benchmarks.accuracy.scores import nrmse
from benchmarks.accuracy.summary import geometric_mean
from benchmarks.tables import Draw, draw_rows
from dsfr import AutoSFRRegressor

NAMES = ("airfoil", "ccpp", "wmsl", "kch", "friedman1", "regimes", "repeated_columns", "concrete")
FIRST_DRAW = 10
KINDS = ("random", "value")
SHARES = (0.1, 0.3, 0.5)
N_TRAIN, N_TEST, N_LABELS = 1000, 600, 100
RESULTS = Path(__file__).parent / "results"
COLUMNS = ("table", "kind", "share", "draw", "method", "nrmse", "seconds")
IMPUTERS: dict[str, Callable[[int], Any]] = {
    "mean": lambda seed: SimpleImputer(),
    "median": lambda seed: SimpleImputer(strategy="median"),
    "iterative": lambda seed: IterativeImputer(random_state=seed),
}


def gaps(X: np.ndarray, share: float, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Rows with NaN where values are missing; in every row one value at least is there."""
    ranks = X.argsort(axis=0).argsort(axis=0) / max(len(X) - 1, 1)
    chances = np.full(X.shape, share) if kind == "random" else np.clip(2.0 * share * ranks, 0.0, 1.0)
    missing = rng.random(X.shape) < chances
    missing[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    return np.where(missing, np.nan, X)


def methods(seed: int) -> dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]:
    """Predictions of test rows by method, from training rows and targets."""

    def ours(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
        return AutoSFRRegressor(random_state=seed).fit(X, y).predict(X_test)

    def after(imputer: str) -> Callable[..., np.ndarray]:
        def predict(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
            filled = IMPUTERS[imputer](seed).fit(X)
            return ours(filled.transform(X), y, filled.transform(X_test))

        return predict

    def trees(imputer: str) -> Callable[..., np.ndarray]:
        def predict(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
            filled, known = IMPUTERS[imputer](seed).fit(X), ~np.isnan(y)
            model = ExtraTreesRegressor(500, min_samples_leaf=2, random_state=seed)
            return model.fit(filled.transform(X[known]), y[known]).predict(filled.transform(X_test))

        return predict

    found = {"ours": ours} | {name: after(name) for name in IMPUTERS}
    return found | {f"trees, {name}": trees(name) for name in ("mean", "iterative")}


def scored(draw: Draw, kind: str, share: float, seed: int) -> Iterator[tuple[str, float, float]]:
    """Method, error and seconds."""
    rng = np.random.default_rng([seed, draw.seed])
    X, X_test = (gaps(rows, share, kind, rng) for rows in (draw.X[:N_TRAIN], draw.X_test[:N_TEST]))
    for name, predict in methods(seed).items():
        began = time.perf_counter()
        predicted = predict(X, draw.y[:N_TRAIN], X_test)
        yield name, nrmse(draw.y_test[:N_TEST], predicted), time.perf_counter() - began


def run(n_draws: int, seed: int, minutes: float, *, resume: bool) -> bool:
    """Write all scores that are not stored, case by case; whether there was time for all."""
    path, end = RESULTS / "missing.csv", time.monotonic() + 60.0 * minutes
    if not resume:
        path.write_text(",".join(COLUMNS) + "\n")
    known = set(pd.read_csv(path)[list(COLUMNS[:4])].itertuples(index=False, name=None))
    cases = product(range(FIRST_DRAW, FIRST_DRAW + n_draws), NAMES, KINDS, SHARES)
    for number, table, kind, share in cases:
        case = (table, kind, share, number)
        if case in known:
            continue
        if time.monotonic() > end:
            return False
        draw = draw_rows(table, N_LABELS, number)
        assert draw is not None
        found = [
            (*case, method, f"{error:.4g}", f"{spent:.3g}") for method, error, spent in scored(draw, *case[1:3], seed)
        ]
        with path.open("a", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(found)
    return True


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """Geometric means of errors over tables and draws; a row for every kind and share, a column for every method."""
    means = scores.groupby(["kind", "share", "method"]).nrmse.apply(geometric_mean).unstack()
    return means[list(methods(0))]


def plot(means: pd.DataFrame) -> None:
    """Error against the share of missing values."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(KINDS), figsize=(10, 4.2), layout="constrained", sharey=True)
    for axis, kind in zip(axes, KINDS, strict=True):
        for method in means.columns:
            style = {"color": "black", "linewidth": 2.2} if method == "ours" else {}
            lines = "--" if method.startswith("trees") else "-"
            axis.plot(means.loc[kind].index, means.loc[kind][method], lines, marker="o", label=method, **style)
        axis.set(
            xlabel="share of values that are missing",
            title=f"missing {'at random' if kind == 'random' else 'by value'}",
        )
    axes[0].set_ylabel("NRMSE (geometric mean over tables)")
    axes[0].legend(fontsize=8)
    figure.savefig(RESULTS / "missing.png", dpi=100)
    plt.close(figure)


def against_the_mean(scores: pd.DataFrame) -> pd.DataFrame:
    """Ratio of our error to that of imputing the mean, for every table over all cases, and its standard error."""
    errors = scores.pivot_table(index=["table", "kind", "share", "draw"], columns="method", values="nrmse")
    logs = np.log(errors["ours"] / errors["mean"])
    # Cases of one draw share their rows: draws are what varies independently.
    by_draw = logs.groupby(["table", "draw"]).mean().groupby("table")
    found = pd.DataFrame({"ratio": np.exp(by_draw.mean()), "error": by_draw.std() / np.sqrt(by_draw.count())})
    return found.assign(worse=by_draw.mean() > 2.0 * found["error"].fillna(np.inf))


def lines(means: pd.DataFrame, scores: pd.DataFrame, seed: int) -> Iterator[str]:
    n_draws = scores["draw"].nunique()
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    version = f"dsfr {dsfr.__version__} ({commit.stdout.strip()})"
    yield f"{version}, {len(NAMES)} tables, {n_draws} draws from {FIRST_DRAW} on, {N_LABELS} labels, seed {seed}"
    yield "NRMSE, geometric mean over tables and draws"
    yield ""
    yield f"{'missing':<8}{'share':>6}" + "".join(f"{method:>18}" for method in means.columns)
    for (kind, share), errors in means.iterrows():
        yield f"{kind:<8}{share:>6.0%}" + "".join(f"{error:>18.4f}" for error in errors)
    errors = scores.pivot_table(index=["table", "kind", "share", "draw"], columns="method", values="nrmse")
    yield ""
    for method in ("mean", "median", "iterative"):
        ratio, won = geometric_mean(errors["ours"] / errors[method]), (errors["ours"] <= errors[method]).mean()
        yield f"ours over {method:<10} {ratio:.4f} in all, better in {won:.0%} of {len(errors)} cases"
    yield ""
    yield f"{'ours over mean':<20}{'ratio':>8}{'± of its logarithm, between draws':>36}"
    for table, found in against_the_mean(scores).iterrows():
        yield f"{table:<20}{found['ratio']:>8.4f}{found['error']:>36.4f}"
    yield ""
    for name, reached in targets(means, scores).items():
        yield f"{name}: {'reached' if reached else 'MISSED'}"


def targets(means: pd.DataFrame, scores: pd.DataFrame) -> dict[str, bool]:
    """What is to be reached, and whether it is."""
    overall = means.apply(geometric_mean)
    return {
        "never worse than the mean (every share and kind, mean over tables)": bool((means.ours <= means["mean"]).all()),
        "on no table worse than the mean beyond two standard errors": not against_the_mean(scores)["worse"].any(),
        "better on average than IterativeImputer before the same model": bool(overall.ours < overall.iterative),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="keep the cases of missing.csv and run the others")
    parser.add_argument("--minutes", type=float, default=np.inf, help="start no case after so many minutes")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if not run(arguments.draws, arguments.seed, arguments.minutes, resume=arguments.resume):
        print("not finished: run it again with --resume")
        return 1
    scores = pd.read_csv(RESULTS / "missing.csv")
    means = summary(scores)
    plot(means)
    print("\n".join(lines(means, scores, arguments.seed)))
    return 0 if all(targets(means, scores).values()) else MISSED


if __name__ == "__main__":
    raise SystemExit(main())
