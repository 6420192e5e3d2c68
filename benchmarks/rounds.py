"""Rounds and kilobytes until the agreed weights are within 1e-2, 1e-4 and 1e-6 of the exact pooled solution.

Fifty labels divided between agents, 5 rules, consistency 0.1, as many pairs as unlabelled rows; the same rules and
pairs for every variant. The weights after a round of ADMM are the consensus it began with, else those that would be
returned if it were the last. "stop" is the round in which a solve with tol 1e-4 says that it is done, "error" the
relative error of the weights there, "kB" what was sent until then. A dash means not within 3000 rounds. All but the
paper's iteration are preconditioned. Three tables: the variants with five agents; the default and
Anderson's acceleration with 5 to 100 agents; and whole fits over graphs, along a spanning tree and without a
coordinator, by hops (a message over one link, all links at the same time), kilobytes and processor seconds of all
agents in one process. Also written: rounds.csv with every row, and rounds.png. With ``--only``, the rows of the other
tables stay as stored.

    python -m benchmarks.rounds [--seed 0] [--quick] [--only variants|agents|graphs]
"""

import argparse
import csv
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import dsfr
from benchmarks.tables import load
from dsfr.core.consensus.conjugate_residuals import ConjugateResiduals
from dsfr.core.consensus.preconditioner import Preconditioner
from dsfr.engines import InProcessEngine
from dsfr.engines.local.gossip import GossipEngine
from dsfr.engines.local.network import NetworkEngine
from dsfr.engines.topology import distances, make_topology
from dsfr.paper.datasets import hide_labels_by_agent, split_evenly
from dsfr.training import ADMM, TASKS, Conjugate, Settings, Shard, Sums, make_shards, train
from dsfr.training.clustering.clusters import agree_rules
from dsfr.training.scaling.survey import survey
from dsfr.training.weights.conjugate_residuals import preconditioner_of
from dsfr.training.weights.weights import agree_weights

NAMES = ("airfoil", "wmsl", "ccpp", "ch", "kch")
VARIANTS = {
    "paper (plain, 0.1)": ADMM(acceleration=None, penalty=0.1),
    "plain": ADMM(acceleration=None),
    "balanced, relaxed 1.6": ADMM(acceleration=None, penalty="balanced", relaxation=1.6),
    "Anderson, balanced": ADMM(penalty="balanced"),
    "Anderson": ADMM(),
    "conjugate (default)": Conjugate(),
}
AMONG_MANY = {name: VARIANTS[name] for name in ("Anderson", "conjugate (default)")}
N_AGENTS = (5, 10, 20, 50, 100)
ON_GRAPHS = ("airfoil", "ccpp")
GRAPHS = ("complete", "star", "ring", "line", "grid", "geometric", "erdos-renyi")
OVER_GRAPHS = {
    "tree, sums": (NetworkEngine, {"solver": "sums"}),
    "tree, conjugate": (NetworkEngine, {}),
    "no coordinator": (GossipEngine, {"solver": "decentralized"}),
}
MAX_ROUNDS = 3000
FIELDS = (
    "table",
    "data",
    "ridge",
    "agents",
    "graph",
    "variant",
    "1e-2",
    "1e-4",
    "1e-6",
    "stop",
    "error",
    "kB",
    "hops",
    "seconds",
    "version",
)
DEEP = {"max_rounds": MAX_ROUNDS, "tol": 1e-7}
RESULTS = Path(__file__).parent / "results"


class Recorder:
    """Keeps every point that is broadcast, its pooled gradient without the ridge, and the bytes sent until then."""

    seen: list

    def sum(self, task, broadcast):
        """Sum as ever, and take note."""
        result = super().sum(task, broadcast)
        if task in ("first_gradient", "weight_gradient"):
            point = broadcast.get("weights", np.zeros_like(result["gradient"]))
            self.seen.append((point, result["gradient"], self.ledger.bytes))
        elif task == "weight_consensus":
            preconditioner = Preconditioner(next(iter(self._agents.values()))._memory["root"])
            self.seen.append((preconditioner.weights(broadcast["consensus"]), result["gradient"], self.ledger.bytes))
        return result


class DirectRecorder(Recorder, InProcessEngine):
    """Agents that a coordinator reaches directly."""


def situation(name: str, n_agents: int, seed: int) -> dict[str, Shard]:
    """Rows divided evenly between agents, with fifty labels in total."""
    X, y, _ = load(name)
    rng = np.random.default_rng(seed)
    owners = split_evenly(len(y), n_agents, rng)
    return make_shards(X, hide_labels_by_agent(y, owners, 50, rng), owners)


def first(reached: np.ndarray) -> int | None:
    return int(np.argmax(reached)) + 1 if reached.any() else None


def summary(errors: np.ndarray, bounds: np.ndarray, sent: list[int]) -> dict[str, object]:
    """Rounds to each accuracy, and what the solve's own stop at 1e-4 gives."""
    within = bounds <= 1e-4
    stop = int(np.argmax(within)) if within.any() else len(within) - 1
    reached = {f"1e-{digits}": first(errors <= 10.0**-digits) for digits in (2, 4, 6)}
    return reached | {"stop": first(within), "error": float(errors[stop]), "kB": sent[stop] / 1e3}


def with_coordinator(engine, told: dict, variants: dict) -> Iterator[tuple[str, dict[str, object]]]:
    """The exact solution, then every variant on the same rules and pairs."""
    summed = Settings(solver=Sums(**DEEP), **told)
    population = survey(engine, summed)
    rules, shares, _ = agree_rules(engine, summed, population, lambda _: None)
    before = engine.ledger.bytes
    exact = agree_weights(engine, summed, rules, population, lambda _: None).weights
    yield "exact", dict.fromkeys(("1e-2", "1e-4", "1e-6", "stop"), 1) | {"kB": (engine.ledger.bytes - before) / 1e3}
    for label, variant in variants.items():
        settings = Settings(solver=replace(variant, **DEEP), **told)
        engine.seen, history, before = [], [], engine.ledger.bytes
        agree_weights(engine, settings, rules, population, history.append, shares=shares)
        preconditioner = preconditioner_of(rules, shares, settings, population, engine.n_agents)
        found = weights_by_round(engine.seen, settings, ConjugateResiduals(preconditioner))
        errors = np.array([np.linalg.norm(weights - exact) for weights in found]) / np.linalg.norm(exact)
        bounds = np.array([info.error_bound for info in history])
        row = summary(errors, bounds, [n_bytes - before for _, _, n_bytes in engine.seen])
        yield (
            label,
            row if isinstance(variant, ADMM) else row | stop(engine, settings, rules, shares, population, exact),
        )


def weights_by_round(seen: list, settings: Settings, method: ConjugateResiduals) -> list[np.ndarray]:
    """What would be returned after each round."""
    if isinstance(settings.solver, ADMM):
        return [point for point, _, _ in seen]
    found = []
    for point, gradient, _ in seen:
        method.add(point, gradient + settings.ridge_value * point)
        found.append(method.iterate()[0])
    return found


def stop(engine, settings: Settings, rules, shares, population, exact: np.ndarray) -> dict[str, object]:
    """Where a solve to 1e-4 stops: a point is measured as soon as its expected gradient meets the stopping rule."""
    engine.seen, before = [], engine.ledger.bytes
    told = replace(settings, solver=replace(settings.solver, tol=1e-4))
    solution = agree_weights(engine, told, rules, population, lambda _: None, shares=shares)
    error = np.linalg.norm(solution.weights - exact) / np.linalg.norm(exact)
    rounds = len(engine.seen) if solution.converged else None
    return {"stop": rounds, "error": float(error), "kB": (engine.ledger.bytes - before) / 1e3}


def variants_table(names, seed: int) -> Iterator[dict[str, object]]:
    for name in names:
        for ridge in (0.1, 1e-3):
            engine = DirectRecorder(situation(name, 5, seed), TASKS)
            told = {"seed": seed, "ridge": ridge}
            for label, row in with_coordinator(engine, told, VARIANTS):
                yield {"data": name, "ridge": ridge, "agents": 5, "graph": "-", "variant": label} | row


def agents_table(names, counts, seed: int) -> Iterator[dict[str, object]]:
    told = {"seed": seed, "ridge": 0.1}
    for name in names:
        for n_agents in counts:
            engine = DirectRecorder(situation(name, n_agents, seed), TASKS)
            for label, row in with_coordinator(engine, told, AMONG_MANY):
                yield {"data": name, "ridge": 0.1, "agents": n_agents, "graph": "-", "variant": label} | row


def graphs_table(names, counts, seed: int) -> Iterator[dict[str, object]]:
    """Whole fits over graphs, like with like: a round over a tree is as many hops as it is deep, twice."""
    for name in names:
        for n_agents in counts:
            shards = situation(name, n_agents, seed)
            for graph in GRAPHS:
                topology = make_topology(graph, list(shards), seed=seed)
                depth = max(distances(topology, next(iter(topology))).values())
                about = {"data": name, "ridge": 0.1, "agents": n_agents, "graph": f"{graph} ({depth})"}
                for variant, (kind, told) in OVER_GRAPHS.items():
                    engine = kind(shards, TASKS, topology)
                    start = time.process_time()
                    trained = train(engine, Settings(seed=seed, ridge=0.1, **told))
                    assert trained.termination == "converged", (name, n_agents, graph, variant)
                    hops = engine.ledger.rounds * (2 * depth if kind is NetworkEngine else 1)
                    cost = {"hops": hops, "kB": engine.ledger.bytes / 1e3, "seconds": time.process_time() - start}
                    yield about | {"variant": variant} | cost


def shown(row: dict[str, object]) -> str:
    if row.get("hops") is not None:
        about = f"{row['data']:<8} {row['ridge']:>6.0e} {row['agents']:>6} {row['graph']:<16} {row['variant']:<22}"
        return about + f"{row['hops']:>6} hops {row['kB']:>9.0f} kB {row['seconds']:>7.1f} s"
    cells = [str(row[name] or "-") for name in ("1e-2", "1e-4", "1e-6", "stop")]
    about = f"{row['data']:<8} {row['ridge']:>6.0e} {row['agents']:>6} {row['graph']:<16} {row['variant']:<22}"
    error = f"{row['error']:.1e}" if row.get("error") is not None else ""
    return about + " ".join(f"{cell:>6}" for cell in cells) + f" {error:>8} {row['kB']:>9.0f}"


def draw(rows: list[dict[str, object]]) -> None:
    """Rounds against agents; hops, kilobytes and seconds by graph."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(12, 9), layout="constrained")
    draw_agents(axes[0, 0], [row for row in rows if row["table"] == "agents"])
    graphs = [row for row in rows if row["table"] == "graphs" and row["data"] == "airfoil"]
    units = {"hops": "hops", "kB": "kilobytes sent", "seconds": "processor seconds, all agents"}
    for axis, (column, unit) in zip(axes.flat[1:], units.items(), strict=True):
        draw_graphs(axis, graphs, column)
        axis.set(yscale="log", ylabel=unit, title=f"whole fits over graphs, airfoil: {unit}")
    figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=len(OVER_GRAPHS))
    figure.savefig(RESULTS / "rounds.png", dpi=100)


def draw_agents(axis, rows: list[dict[str, object]]) -> None:
    for shift, name in enumerate(dict.fromkeys(row["data"] for row in rows)):
        for variant, line in zip(AMONG_MANY, (":", "-"), strict=True):
            chosen = [row for row in rows if (row["data"], row["variant"]) == (name, variant)]
            style = {"marker": "o", "markersize": 4, "color": f"C{shift}", "label": name if line == "-" else None}
            axis.plot([row["agents"] for row in chosen], [row["1e-4"] for row in chosen], line, **style)
    axis.set(xscale="log", yscale="log", xlabel="agents", ylabel="rounds to a relative error of 1e-4")
    axis.set_title("with a coordinator: conjugate residuals (solid), Anderson's ADMM (dotted)")
    axis.legend(title="data")


def draw_graphs(axis, rows: list[dict[str, object]], column: str) -> None:
    labels = list(dict.fromkeys(row["graph"].split()[0] for row in rows))
    for shift, variant in enumerate(OVER_GRAPHS):
        for n_agents, marker in zip(sorted({row["agents"] for row in rows}), "os^", strict=False):
            chosen = [row for row in rows if row["agents"] == n_agents and row["variant"] == variant]
            x = [labels.index(row["graph"].split()[0]) + 0.2 * (shift - 1) for row in chosen]
            style = {"color": f"C{shift}", "markersize": 5, "label": f"{variant}, {n_agents} agents"}
            axis.plot(x, [row[column] for row in chosen], marker, **style)
    axis.set_xticks(range(len(labels)), labels, rotation=20)


def stored_rows(table: str) -> list[dict[str, object]]:
    """Rows of a table as they were stored; numbers as numbers."""
    with (RESULTS / "rounds.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == table]
    texts = ("table", "data", "graph", "variant", "version")
    return [{name: value if name in texts else number_of(value) for name, value in row.items()} for row in rows]


def number_of(text: str) -> float | int | None:
    return None if not text else int(text) if text.isdecimal() else float(text)


def measured(rows: Iterator[dict[str, object]], table: str) -> Iterator[dict[str, object]]:
    for row in rows:
        yield {"table": table, "version": dsfr.__version__} | row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="airfoil only, few agents, nothing stored")
    parser.add_argument("--only", choices=("variants", "agents", "graphs"), help="the table to measure; all by default")
    arguments = parser.parse_args()
    names, counts = (NAMES[:1], (5, 10)) if arguments.quick else (NAMES, N_AGENTS)
    graph_counts = (5,) if arguments.quick else (5, 20, 50)
    tables = {
        "variants": variants_table(names, arguments.seed),
        "agents": agents_table(names, counts, arguments.seed),
        "graphs": graphs_table(names[:1] if arguments.quick else ON_GRAPHS, graph_counts, arguments.seed),
    }
    print(f"50 labels, seed {arguments.seed}; graph (depth of its tree)")
    header = " ".join(f"{cell:>6}" for cell in ("1e-2", "1e-4", "1e-6", "stop"))
    kept = []
    for table, rows in tables.items():
        found = measured(rows, table) if arguments.only in (None, table) else iter(stored_rows(table))
        costs = f"{'hops':>11} {'kB':>12} {'seconds':>9}" if table == "graphs" else f"{header} {'error':>8} {'kB':>9}"
        title = f"{'data':<8} {'ridge':>6} {'agents':>6} {'graph':<16} {'variant':<22}{costs}"
        for number, row in enumerate(found):
            if number == 0:
                print(f"\ndsfr {row['version']}\n{title}")
            kept.append(row)
            print(shown(row), flush=True)
    if not arguments.quick:
        with (RESULTS / "rounds.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            writer.writeheader()
            writer.writerows(kept)
        draw(kept)


if __name__ == "__main__":
    main()
