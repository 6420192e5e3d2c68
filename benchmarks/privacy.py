"""What differential privacy costs: NRMSE on ccpp, by epsilon and number of labels. Needs DSFR_DATA_HOME.

Number and width of the rules here, and the ridge factor of `dsfr.training.solvers.private`, were chosen on splits of
the same table: the numbers are optimistic.
"""

from __future__ import annotations

import numpy as np

import dsfr
from dsfr.paper.datasets.loading import load_values

EPSILONS = (1.0, 3.0, 10.0, None)
LABELS = (1000, 3000, 7654)
N_SPLITS, N_OWNERS, N_TRAIN = 10, 5, 7654
LOW, HIGH, TARGETS = (0.0, 20.0, 980.0, 20.0), (40.0, 90.0, 1040.0, 110.0), (400.0, 500.0)
"""Round values that owners could declare without looking."""


def model(epsilon: float | None, seed: int) -> dsfr.SFRRegressor:
    """Three wide rules, by noisy sums or by plain ones."""
    return dsfr.SFRRegressor(
        n_rules=3,
        rules=dsfr.FuzzyRules(width_scale=3.0),
        unlabeled=None,
        solver="sums" if epsilon is None else "private-sums",
        scaling=dsfr.RangeScaling(lower=LOW, upper=HIGH, target_range=TARGETS),
        engine=dsfr.InProcess(policy=dsfr.Policy(epsilon=epsilon), masks=True),
        random_state=seed,
    )


def errors(epsilon: float | None, n_labels: int) -> list[float]:
    """NRMSE on the rows that were left out, split by split."""
    values = load_values("ccpp")
    X, y = np.asarray(values.X), np.asarray(values.y)
    found = []
    for seed in range(N_SPLITS):
        rows = np.random.default_rng(seed).permutation(len(y))
        train, test = rows[:N_TRAIN], rows[N_TRAIN:]
        known = np.where(np.arange(N_TRAIN) < n_labels, y[train], np.nan)
        fitted = model(epsilon, seed).fit(X[train], known, agents=np.arange(N_TRAIN) % N_OWNERS)
        found.append(float(dsfr.nrmse(y[test], fitted.predict(X[test]))))
    return found


def main() -> None:
    """Print the table."""
    print(f"NRMSE on ccpp, mean and deviation over {N_SPLITS} splits; {N_OWNERS} owners, {N_TRAIN} rows, delta 1e-6,")
    print("3 rules of width 3, noise that protects as long as more than half of the owners are honest")
    print("epsilon " + "".join(f"{f'{labels:,} labels':>16}" for labels in LABELS))
    for epsilon in EPSILONS:
        cells = [errors(epsilon, n_labels) for n_labels in LABELS]
        shown = "".join(f"{f'{np.mean(cell):.3f} +- {np.std(cell):.3f}':>16}" for cell in cells)
        print(f"{'none' if epsilon is None else f'{epsilon:g}':<8}{shown}", flush=True)


if __name__ == "__main__":
    main()
