"""SFR-ICR with ridge and consistency chosen by evidence and by other criteria, on the folds of the reproduction.

Mean test NRMSE over 10 repetitions of 5 folds, 50 labels, 5 rules, centralised. "grid, on test" and "grid, loo" are
read from the stored results of `dsfr reproduce`: one grid value per data set, the best on the test folds (which is
optimistic), and one per fold by leave-one-out on the training labels. "evidence" uses training labels only, on the same
folds. The difference is evidence minus leave-one-out, with the standard error of the paired differences.

    python -m benchmarks.tuning [--repetitions 10]
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

import dsfr
from dsfr.paper.datasets import NAMES
from dsfr.paper.experiments.folds import make_fold, units
from dsfr.paper.experiments.results import read_results
from dsfr.paper.experiments.selection import best_on_test, chosen_by_leave_one_out
from dsfr.paper.experiments.spec import read_spec

ROOT = Path(__file__).parent.parent
STORED = ROOT / "docs" / "reproduction" / "results"
CELL = ("centralised", "SFR-ICR")
WIDTHS = (13, 10, 10, 12, 10, 18)


def errors_by_evidence(spec, name: str) -> dict[tuple[int, int], float]:
    """Test NRMSE of every fold."""
    errors = {}
    for unit in units(replace(spec, datasets=(name,))):
        fold = make_fold(spec, unit)
        model = dsfr.SFRRegressor(tune="evidence", random_state=fold.seed).fit(fold.X, fold.known)
        errors[unit.repetition, unit.fold] = dsfr.nrmse(fold.y_test, model.predict(fold.X_test))
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10)
    arguments = parser.parse_args()
    spec = replace(read_spec(ROOT / "experiments" / "grid.toml"), repetitions=arguments.repetitions)
    rows = [row for row in read_results(STORED, "grid") if (row["setting"], row["method"]) == CELL]
    by_loo, on_test = chosen_by_leave_one_out(rows), best_on_test(rows)
    print(f"dsfr {dsfr.__version__}, {arguments.repetitions} repetitions of 5 folds, 50 labels, seed {spec.seed}\n")
    header = ("grid, on test", "grid, loo", "evidence", "median, loo", "evidence", "difference")
    print(f"{'data':<11} " + " ".join(f"{name:>{width}}" for name, width in zip(header, WIDTHS, strict=True)))
    for name in NAMES:
        evidence = errors_by_evidence(spec, name)
        loo = {run: row["nrmse"] for run, row in by_loo[name, *CELL].items() if run in evidence}
        ridge, weight = on_test[name, *CELL]
        test = [r["nrmse"] for r in rows if (r["dataset"], r["ridge"], r["weight"]) == (name, ridge, weight)]
        paired = np.array([evidence[run] - loo[run] for run in sorted(evidence)])
        shown = f"{paired.mean():+.4f} ± {paired.std(ddof=1) / np.sqrt(len(paired)):.4f}"
        means = f"{np.mean(test):>13.4f} {np.mean(list(loo.values())):>10.4f} {np.mean(list(evidence.values())):>10.4f}"
        medians = f"{np.median(list(loo.values())):>12.4f} {np.median(list(evidence.values())):>10.4f}"
        print(f"{name:<11} {means} {medians} {shown:>18}", flush=True)


if __name__ == "__main__":
    main()
