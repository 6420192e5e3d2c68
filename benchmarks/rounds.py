"""Rounds and kilobytes until the agreed weights are within 1e-2, 1e-4 and 1e-6 of the exact pooled solution.

Fifty labels spread over the agents, 5 rules, consistency 0.1, as many pairs as unlabelled rows; the same rules and
pairs for every variant. "stop" is the round in which the solve itself would say that it is done at tol 1e-4, "error"
the relative error of the weights there, "kB" what was sent until then. A dash means not within 3000 rounds.

    DSFR_DATA_HOME=... python -m benchmarks.rounds [--seed 0] [--agents 5]
"""

import argparse

import numpy as np

import dsfr
from benchmarks.tables import load
from dsfr.datasets import hide_labels, split_evenly
from dsfr.engines import InProcessEngine
from dsfr.protocol import TASKS, Settings, make_shards
from dsfr.protocol.clusters import agree_rules
from dsfr.protocol.survey import survey
from dsfr.protocol.weights import agree_weights

NAMES = ("airfoil", "wmsl", "ccpp", "ch", "kch")
VARIANTS = {
    "paper (plain, 0.1)": {"acceleration": None, "penalty": 0.1},
    "plain": {"acceleration": None},
    "balanced, relaxed 1.6": {"acceleration": None, "penalty": "balanced", "relaxation": 1.6},
    "accelerated, balanced": {"penalty": "balanced"},
    "accelerated (default)": {},
}
MAX_ROUNDS = 3000


class Recorder(InProcessEngine):
    """Keeps every consensus that is broadcast, and the bytes sent until then."""

    def sum(self, task, broadcast):
        """Sum as ever, and take note."""
        if task == "weight_consensus":
            self.seen.append((broadcast["consensus"], self.ledger.bytes))
        return super().sum(task, broadcast)


def situation(name: str, n_agents: int, seed: int) -> Recorder:
    """Rows spread evenly over the agents, fifty labels in all."""
    X, y = load(name)
    rng = np.random.default_rng(seed)
    owners, few = split_evenly(len(y), n_agents, rng), hide_labels(y, 50, rng)
    if n_agents <= 50:
        few = np.empty_like(y)
        for agent in range(n_agents):
            few[owners == agent] = hide_labels(y[owners == agent], 50 // n_agents, rng)
    return Recorder(list(make_shards(X, few, owners).values()), TASKS)


def first(reached: np.ndarray) -> str:
    return str(int(np.argmax(reached)) + 1) if reached.any() else "-"


def measure(name: str, n_agents: int, ridge: float, seed: int) -> None:
    engine = situation(name, n_agents, seed)
    told = {"seed": seed, "ridge": ridge, "max_rounds": MAX_ROUNDS, "tol": 1e-7}
    population = survey(engine, Settings(**told))
    rules, _, _ = agree_rules(engine, Settings(solver="exact", **told), population, lambda _: None)
    exact, _ = agree_weights(engine, Settings(solver="exact", **told), rules, population.target, lambda _: None)
    sent = engine.ledger.entries["statistics", "sum"]
    kilobytes = (sent.bytes_up + sent.bytes_down) / 1e3
    print(f"{name:<8} {ridge:>6.0e}  {'exact':<24} {'1':>6} {'1':>6} {'1':>6} {'1':>6} {'':>9} {kilobytes:>9.0f}")
    for label, variant in VARIANTS.items():
        engine.seen, history, before = [], [], engine.ledger.bytes
        agree_weights(engine, Settings(**told, **variant), rules, population.target, history.append)
        errors = np.array([np.linalg.norm(z - exact) for z, _ in engine.seen]) / np.linalg.norm(exact)
        within = np.array([info.error_bound <= 1e-4 for info in history])
        stop = int(np.argmax(within)) if within.any() else len(within) - 1
        rounds = [first(errors <= limit) for limit in (1e-2, 1e-4, 1e-6)]
        cells = " ".join(f"{cell:>6}" for cell in (*rounds, first(within)))
        kilobytes = (engine.seen[stop][1] - before) / 1e3
        print(f"{'':<8} {'':>6}  {label:<24} {cells} {errors[stop]:>9.1e} {kilobytes:>9.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", type=int, default=5)
    arguments = parser.parse_args()
    print(f"dsfr {dsfr.__version__}, {arguments.agents} agents, 50 labels, seed {arguments.seed}\n")
    header = " ".join(f"{cell:>6}" for cell in ("1e-2", "1e-4", "1e-6", "stop"))
    print(f"{'data':<8} {'ridge':>6}  {'variant':<24} {header} {'error':>9} {'kB':>9}")
    for name in NAMES:
        for ridge in (0.1, 1e-3):
            measure(name, arguments.agents, ridge, arguments.seed)


if __name__ == "__main__":
    main()
