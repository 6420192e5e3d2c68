"""Test error of training in six rounds against many: 10 draws of labels, four partitions of the rows over five agents.

"ratio" is the mean error of ``solver="few-rounds"`` over that of ``solver="sums"`` with converged clusters, on the same
folds, labels and owners, with the standard error of the paired difference; "spread" the mean ratio of the objectives of
fuzzy c-means that the two end with (below 1: the clusters of few rounds are the tighter ones, because many rounds start
from one owner's rows); "rounds" the mean number of rounds of each. The aim is a ratio of at most 1.01.

    python -m benchmarks.few_rounds [--draws 10] [--seed 0]
"""

import argparse
import sys

import numpy as np
from sklearn.model_selection import train_test_split

import dsfr
from benchmarks import MISSED
from benchmarks.tables import load
from dsfr.paper.datasets import (
    hide_labels_by_agent,
    split_by_cluster,
    split_by_column,
    split_by_dirichlet,
    split_evenly,
)

NAMES = ("airfoil", "wmsl", "ccpp", "ch", "kch")
N_AGENTS = 5
AIM = 1.01
PARTITIONS = {
    "random": lambda X, rng: split_evenly(len(X), N_AGENTS, rng),
    "by column": lambda X, rng: split_by_column(X[:, 0], N_AGENTS),
    "by cluster": lambda X, rng: split_by_cluster(X, N_AGENTS, rng),
    "Dirichlet": lambda X, rng: split_by_dirichlet(len(X), N_AGENTS, 0.5, rng),
}


def measure(name: str, partition: str, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors, objectives of the clusters, and rounds, of few and of many rounds; shape (draws, 2) each."""
    X, y, _ = load(name)
    errors, spreads, rounds = np.empty((3, draws, 2))
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        train, test = train_test_split(np.arange(len(y)), test_size=0.2, random_state=seed + draw)
        owners = PARTITIONS[partition](X[train], rng)
        known = hide_labels_by_agent(y[train], owners, 50, rng)
        for j, solver in enumerate(("few-rounds", "sums")):
            model = dsfr.SFRRegressor(solver=solver, random_state=seed + draw).fit(X[train], known, agents=owners)
            errors[draw, j], rounds[draw, j] = dsfr.nrmse(y[test], model.predict(X[test])), model.n_rounds_
            spreads[draw, j] = min(info.objective for info in model.history_ if info.stage == "clusters")
    return errors, spreads, rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(f"dsfr {dsfr.__version__}, {arguments.draws} draws, {N_AGENTS} owners, 50 labels, seed {arguments.seed}\n")
    print(f"{'data':<8} {'owners':<11} {'few':>7} {'many':>7} {'ratio':>15} {'spread':>7} {'rounds':>9}")
    ratios = []
    for name in NAMES:
        for partition in PARTITIONS:
            errors, spreads, rounds = measure(name, partition, arguments.draws, arguments.seed)
            few, many = errors.mean(axis=0)
            ratios.append(few / many)
            uncertain = np.std(errors[:, 0] - errors[:, 1], ddof=1) / np.sqrt(len(errors)) / many
            mark = "" if ratios[-1] <= AIM else "  ABOVE"
            counts = "{:.0f} / {:.0f}".format(*rounds.mean(axis=0))
            ratio, spread = f"{ratios[-1]:.3f} ± {uncertain:.3f}", np.mean(spreads[:, 0] / spreads[:, 1])
            print(
                f"{name:<8} {partition:<11} {few:>7.4f} {many:>7.4f} {ratio:>15} {spread:>7.3f} {counts:>9}{mark}",
                flush=True,
            )
    missed = sum(ratio > AIM for ratio in ratios)
    print(f"\nmean ratio {np.mean(ratios):.4f}; ratios above {AIM}: {missed} of {len(ratios)}")
    sys.exit(MISSED if missed else 0)


if __name__ == "__main__":
    main()
