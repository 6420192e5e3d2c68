"""What leaves an owner: kilobytes and tasks by kind, on scikit-learn's diabetes table with 300 labels.

python -m benchmarks.traffic
"""

from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes

from dsfr import AutoSFRRegressor, InProcess, Policy, RangeScaling, RuleRegressor, SFRRegressor

COLUMNS = ("age", "bmi", "bp", "s5")
N_OWNERS, N_LABELS = 5, 300


def trainings(X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Estimators by the name they have in the table."""
    declared = RangeScaling(lower=X.min(axis=0), upper=X.max(axis=0), target_range=(y.min(), y.max()))
    guarded = InProcess(policy=Policy(), masks=True)
    return {
        "RuleRegressor()": RuleRegressor(random_state=0),
        "AutoSFRRegressor()": AutoSFRRegressor(random_state=0),
        "SFRRegressor()": SFRRegressor(random_state=0),
        "SFRRegressor, Policy and masks": SFRRegressor(
            n_rules=2, scaling=declared, engine=guarded, solver="sums", random_state=0
        ),
    }


def main() -> None:
    table = load_diabetes(as_frame=True, scaled=False)
    X, y = table.data[list(COLUMNS)].to_numpy(), table.target.to_numpy()
    rng = np.random.default_rng(0)
    owners = rng.integers(N_OWNERS, size=len(y))
    known = np.where(rng.permutation(len(y)) < N_LABELS, y, np.nan)
    print(f"{len(X)} rows x {X.shape[1]} features of {N_OWNERS} owners, {N_LABELS} labels")
    print("tasks by what others see of one owner: its part of a sum or an extreme over owners, or its part by itself\n")
    print(f"{'training':<32}{'rounds':>7}{'kB of an owner':>16}{'sums':>6}{'extremes':>10}{'single parts':>14}")
    for name, estimator in trainings(X, y).items():
        ledger = estimator.fit(X, known, agents=owners).ledger_
        verbs = [entry.verb for entry in ledger.entries.values()]
        sent = np.mean([traffic.bytes_sent for traffic in ledger.agents.values()]) / 1e3
        counts = [verbs.count(verb) for verb in ("sum", "max", "gather")]
        print(f"{name:<32}{ledger.rounds:>7}{sent:>16,.1f}{counts[0]:>6}{counts[1]:>10}{counts[2]:>14}")


if __name__ == "__main__":
    main()
