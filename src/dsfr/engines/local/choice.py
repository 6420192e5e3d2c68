"""The engine for agents of this process: direct messages, or messages along the edges of a graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dsfr.engines.base import BaseEngine
from dsfr.engines.contract import Tasks
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
) -> BaseEngine:
    """An in-process engine if no topology is given, else one over that graph, along a tree or by gossip."""
    if topology is None:
        return InProcessEngine(shards, tasks, faults=faults, min_agents=min_agents)
    # networkx is slow to load, and most trainings have no graph.
    from dsfr.engines.local.gossip import GossipEngine
    from dsfr.engines.local.network import NetworkEngine
    from dsfr.engines.topology import make_topology

    links = make_topology(topology, list(shards), seed=seed)
    kind = GossipEngine if gossip else NetworkEngine
    return kind(shards, tasks, links, faults=faults, min_agents=min_agents)
