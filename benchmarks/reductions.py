"""Reductions of a fit without a coordinator, the rounds of each, and the fewest rounds that the same fit can take.

Fifty labels, 50 agents in a line, the fit of `benchmarks.rounds`. Agents at both ends add to every sum of a step at
centers that follow from the sum before, so such a sum takes as many rounds as the line is long, whatever the rule. The
agent that proposes the start must hear the ranges of all, and all must hear its start. All other reductions can go
beside these. A step that the line search has shortened follows from the sum before, too, unless its length is at a
bound of the search: then it could be asked for beside the longer one.

    python -m benchmarks.reductions [--seed 0]
"""

import argparse
from typing import ClassVar
from unittest import mock

import numpy as np

from benchmarks.rounds import ON_GRAPHS, situation
from dsfr.core.solve.lbfgs import LBFGS
from dsfr.engines.local.gossip import GossipEngine
from dsfr.engines.topology import diameter, distances, make_topology
from dsfr.training import TASKS, Settings, train
from dsfr.training.clustering import clusters
from dsfr.training.scaling.survey import has_ticket

N_AGENTS, GRAPH = 50, "line"
BOUNDS = (0.1, 0.5)
"""Factors by which a backtracking step is shortened at most and at least, see `LBFGS`."""
DEPENDENT = ("cluster_sums", "cluster_variances", "statistics")
"""Sums at what follows from the sum before."""


class NotedLBFGS(LBFGS):
    """Notes by which factors steps were shortened."""

    factors: ClassVar[list[float]] = []

    def _backtrack(self, seen):
        before = self._length
        super()._backtrack(seen)
        self.factors.append(self._length / before)


def measure(name: str, seed: int) -> None:
    shards = situation(name, N_AGENTS, seed)
    engine = GossipEngine(shards, TASKS, make_topology(GRAPH, list(shards), seed=seed))
    NotedLBFGS.factors.clear()
    with mock.patch.object(clusters, "LBFGS", NotedLBFGS):
        trained = train(engine, Settings(seed=seed, ridge=0.1, solver="decentralized"))
    entries, width = list(engine.ledger.entries.values()), diameter(engine.links)
    print(f"\n{name}, {GRAPH} of {N_AGENTS}: {engine.ledger.rounds} rounds, {trained.termination}")
    print(f"{'task':<18} {'verb':<7} {'reductions':>10} {'rounds':>7}")
    for entry in entries:
        print(f"{entry.task:<18} {entry.verb:<7} {entry.rounds // width:>10} {entry.rounds:>7}")
    ticket = float(engine.max("draw_ticket", {})["ticket"])
    proposer = next(agent for agent, shard in shards.items() if has_ticket(shard, {"seed": np.asarray(seed)}, ticket))
    away = max(distances(engine.links, proposer).values())
    sums = sum(entry.rounds // width for entry in entries if entry.task in DEPENDENT)
    at_bound = sum(any(np.isclose(factor, bound) for bound in BOUNDS) for factor in NotedLBFGS.factors)
    print(
        f"fewest for the same steps: 2 x {away} (to the proposer of the start and back) + {sums} x {width} (sums one "
        f"after the other) = {2 * away + sums * width}\n"
        f"{len(NotedLBFGS.factors)} steps were shortened, {at_bound} of them to a bound: with these asked for in "
        f"advance, {2 * away + (sums - at_bound) * width}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    print(f"50 labels, seed {seed}")
    for name in ON_GRAPHS:
        measure(name, seed)


if __name__ == "__main__":
    main()
