"""Where the agents of an estimator are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from dsfr.disclosure import Policy, protect, protected_tasks
from dsfr.engines import Engine, Faults, Tasks, choose_engine
from dsfr.training.component import TRUE_OR_FALSE, Component, Rule, count, parameter

_FAULTS = Rule(lambda value: value is None or isinstance(value, Faults), "dsfr.Faults(...), or None for none")
_POLICY = Rule(lambda value: value is None or isinstance(value, Policy), "dsfr.Policy(...), or None for none")


@dataclass(frozen=True, kw_only=True, repr=False)
class EngineChoice(Component):
    """Says where agents are, and nothing of what they compute."""

    argument: ClassVar[str] = "engine"
    takes_dask_frames: ClassVar[bool] = False
    """Whether `fit` takes dask data frames, whose partitions are the agents."""

    policy: Policy | None = parameter(None, _POLICY)

    def storable(self) -> EngineChoice:
        """The same choice with arguments that a file can hold."""
        return self


@dataclass(frozen=True, kw_only=True, repr=False)
class InProcess(EngineChoice):
    """Agents in this process: reached directly, or along the links of a graph.

    Parameters
    ----------
    topology : str, path, networkx.Graph or list of pairs, default=None
        Who is linked to whom, if messages can only go along links: "complete", "star", "ring", "line", "grid",
        "geometric", "erdos-renyi", "barabasi-albert", a file with two names per line, a graph, or its edges.
        Nodes are names of agents, or numbers in the order of ``agents_``. None: a coordinator reaches every agent.
    faults : Faults, default=None
        Agents that are away and messages that are lost, to try out what happens then; see `dsfr.Faults`.
    min_agents : int, default=1
        A round with fewer agents in reach waits for more, and after long waiting is an error; so is one in which the
        messages of too many fail.
    policy : Policy, default=None
        Disclosure control at every agent, see `Policy`. It needs declared ranges, see `RangeScaling`.
    masks : bool, default=False
        Add random masks to contributions that cancel in sums alone. It needs declared ranges and the extra
        ``federation``.
    """

    shorthand: ClassVar[str] = "in-process"

    topology: Any = None
    faults: Faults | None = parameter(None, _FAULTS)
    min_agents: int = parameter(1, count(1, "a whole number >= 1, at most the number of agents"))

    masks: bool = parameter(False, TRUE_OR_FALSE)

    def engine(self, shards: Mapping[str, Any], tasks: Tasks, seed: int, *, gossip: bool = False) -> Engine:
        """The engine over these agents; random graphs are drawn with ``seed``, sums go along a tree or by gossip."""
        faults, least, has_policy = self.faults, self.min_agents, self.policy is not None
        if has_policy or self.masks:
            tasks = protected_tasks(tasks, policy=self.policy, masked=self.masks)
        engine = choose_engine(
            shards, tasks, topology=self.topology, seed=seed, faults=faults, min_agents=least, gossip=gossip
        )
        return protect(engine, policy=has_policy, masked=self.masks)

    def storable(self) -> InProcess:
        """A graph becomes the list of its edges, a path its text."""
        topology = str(self.topology) if isinstance(self.topology, Path) else self.topology
        if topology is None or isinstance(topology, str):
            return replace(self, topology=topology)
        pairs = topology.edges if hasattr(topology, "edges") else topology
        return replace(self, topology=tuple(tuple(_node(node) for node in pair) for pair in pairs))


@dataclass(frozen=True, kw_only=True, repr=False)
class Dask(EngineChoice):
    """Agents on a dask cluster: ``fit`` takes a dask data frame and series, and every partition is an agent.

    With ``n_agents`` > 1 partitions are grouped into so many agents.

    Parameters
    ----------
    client : distributed.Client, default=None
        Client of the cluster. None: the present client, else a cluster on this machine for the time of the fit.
    policy : Policy, default=None
        Disclosure control at every agent, see `Policy`. It needs declared ranges, see `RangeScaling`.
    masks : bool, default=False
        As in `InProcess`.
    """

    shorthand: ClassVar[str] = "dask"
    takes_dask_frames: ClassVar[bool] = True

    client: Any = None
    masks: bool = parameter(False, TRUE_OR_FALSE)

    def storable(self) -> Dask:
        """A client is not kept."""
        return replace(self, client=None)


def _node(node: Any) -> Any:
    return node if isinstance(node, (int, str)) else str(node)
