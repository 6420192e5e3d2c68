"""The engine for agents of this process: asked directly, or along the edges of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsfr.engines.contract import Engine, Tasks
from dsfr.engines.local.faults import Faults
from dsfr.engines.local.in_process import InProcessEngine


def choose_engine(
    shards: Mapping[str, Any],
    tasks: Tasks,
    *,
    topology: Any,
    seed: int,
    faults: Faults | None,
    min_agents: int,
    gossip: bool,
) -> Engine:
    """An in-process engine if no topology is given, else one over that graph, along a tree or by gossip."""
    if topology is None:
        return InProcessEngine(shards, tasks, faults=faults, min_agents=min_agents)
    # Loading networkx takes a while, and most trainings have no graph.
    from dsfr.engines.local.gossip import GossipEngine
    from dsfr.engines.local.network import NetworkEngine
    from dsfr.engines.topology import make_topology

    links = make_topology(topology, list(shards), seed=seed)
    kind = GossipEngine if gossip else NetworkEngine
    return kind(shards, tasks, links, faults=faults, min_agents=min_agents)
