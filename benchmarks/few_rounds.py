"""Test error of training in six rounds against many: 10 label draws, four ways of spreading rows over five owners.

"ratio" is the mean error of ``rounds="few"`` over that of ``solver="exact"`` with converged clusters, on the same
folds, labels and owners; "rounds" the mean number of rounds of each. The aim is a ratio of at most 1.01.

    python -m benchmarks.few_rounds [--draws 10] [--seed 0]
"""

import argparse
import sys

import numpy as np
from sklearn.model_selection import train_test_split

import dsfr
from benchmarks.tables import MISSED, load
from dsfr.datasets import hide_labels_by_agent, split_by_cluster, split_by_column, split_by_dirichlet, split_evenly

NAMES = ("airfoil", "wmsl", "ccpp", "ch", "kch")
N_AGENTS = 5
AIM = 1.01
PARTITIONS = {
    "random": lambda X, rng: split_evenly(len(X), N_AGENTS, rng),
    "by column": lambda X, rng: split_by_column(X[:, 0], N_AGENTS),
    "by cluster": lambda X, rng: split_by_cluster(X, N_AGENTS, rng),
    "Dirichlet": lambda X, rng: split_by_dirichlet(len(X), N_AGENTS, 0.5, rng),
}


def measure(name: str, partition: str, draws: int, seed: int) -> tuple[float, float, float, float]:
    """Mean error and rounds of few, then of many rounds."""
    X, y = load(name)
    errors, rounds = np.empty((draws, 2)), np.empty((draws, 2))
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed + draw)
        owners = PARTITIONS[partition](X[train], rng)
        known = hide_labels_by_agent(y[train], owners, 50, rng)
        for j, plan in enumerate(({"rounds": "few"}, {"solver": "exact"})):
            model = dsfr.SFRRegressor(random_state=seed + draw, **plan).fit(X[train], known, agents=owners)
            errors[draw, j], rounds[draw, j] = dsfr.nrmse(y[test], model.predict(X[test])), model.n_rounds_
    return (*errors.mean(axis=0), *rounds.mean(axis=0))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"dsfr {dsfr.__version__}, {arguments.draws} draws, {N_AGENTS} owners, 50 labels, seed {arguments.seed}\n")
    print(f"{'data':<8} {'owners':<11} {'few':>7} {'many':>7} {'ratio':>6} {'rounds':>13}")
    ratios = []
    for name in NAMES:
        for partition in PARTITIONS:
            few, many, few_rounds, many_rounds = measure(name, partition, arguments.draws, arguments.seed)
            ratios.append(few / many)
            mark = "" if ratios[-1] <= AIM else "  ABOVE"
            counts = f"{few_rounds:.0f} / {many_rounds:.0f}"
            print(
                f"{name:<8} {partition:<11} {few:>7.4f} {many:>7.4f} {ratios[-1]:>6.3f} {counts:>13}{mark}", flush=True
            )
    missed = sum(ratio > AIM for ratio in ratios)
    print(f"\nmean ratio {np.mean(ratios):.4f}; ratios above {AIM}: {missed} of {len(ratios)}")
    sys.exit(MISSED if missed else 0)


if __name__ == "__main__":
    main()
