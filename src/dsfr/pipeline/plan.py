"""Rounds, bytes and time of a training, estimated before anything runs: the work behind ``dsfr plan``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dsfr.core.clustering.fuzzy_c_means import ClusterSums
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.penalties.interpolation_consistency import consistency_gram
from dsfr.engines.gossip.rules import SumRule, n_messages, sum_rule
from dsfr.engines.gossip.summation import KEY_BYTES, message_bytes
from dsfr.training import Settings
from dsfr.training.legs import Leg
from dsfr.training.plan import legs
from dsfr.training.scaling.checks import check_size
from dsfr.training.tasks.declaration import NUMBER

SAMPLE_ROWS = 20_000
"""Rows that computing is timed on."""


@dataclass(frozen=True, slots=True)
class Building:
    """What must be known of a graph before the first task, and what that takes."""

    name: str
    rounds: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Links:
    """How messages travel: directly to a coordinator, or along a spanning tree."""

    n_agents: int
    latency: float
    """Seconds a message takes on one link."""
    bandwidth: float
    """Bytes a link carries in a second."""
    depths: tuple[int, ...] = ()
    """Links from the root to every agent but the root; empty without a topology."""
    offers: int = 0
    """Offers that build the tree."""

    @property
    def building(self) -> Building | None:
        """What building the tree takes: offers with a depth, and answers that accept."""
        if not self.depths:
            return None
        return Building("building the tree", 0, self.offers + len(self.depths), 8 * self.offers)

    def rounds(self, leg: Leg) -> int:
        """Rounds of the ledger that one round takes."""
        return 1

    def is_certain(self, leg: Leg) -> bool:
        """Whether the bytes of a round do not depend on which agent answers."""
        return leg.everybody_answers or not self.depths

    def bytes(self, leg: Leg) -> float:
        """Bytes of one round; a gather's single answer is assumed to come from an agent of mean depth."""
        n_links = len(self.depths) if self.depths else self.n_agents
        if leg.verb != "gather" or not self.depths:
            answers = n_links if leg.everybody_answers else 1
            return n_links * leg.bytes_down + answers * leg.bytes_up
        hops = sum(self.depths) if leg.everybody_answers else sum(self.depths) / self.n_agents
        return n_links * leg.bytes_down + hops * leg.bytes_up

    def messages(self, leg: Leg) -> int:
        """Messages of one round."""
        if self.depths:
            return 2 * len(self.depths)
        return self.n_agents + (self.n_agents if leg.everybody_answers else 1)

    def seconds(self, leg: Leg) -> float:
        """Time of one round: to the agent farthest from the root and back."""
        hops = max(self.depths, default=1)
        return hops * (2.0 * self.latency + (leg.bytes_down + leg.bytes_up) / self.bandwidth)


@dataclass(frozen=True, slots=True)
class GossipLinks:
    """How messages travel without a coordinator: between neighbors, all of a round at the same time."""

    graph: Mapping[str, Sequence[str]]
    latency: float
    bandwidth: float
    rule: SumRule
    """How a sum is found."""
    diameter: int
    """Rounds that a maximum takes, or what one agent tells to all."""

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return len(self.graph)

    @property
    def building(self) -> Building:
        """What it takes until all agents know all links, and the two ends of each a key."""
        rounds, n_messages = self.diameter + 1, self._n_messages
        n_bytes = self.n_agents * sum(map(self._relays, self.graph)) + KEY_BYTES * n_messages
        return Building("learning the links", rounds, rounds * n_messages, n_bytes)

    def rounds(self, leg: Leg) -> int:
        """Rounds of the ledger that a reduction takes."""
        return len(self.rule.exchanges) if leg.verb == "sum" else self.diameter

    def bytes(self, leg: Leg) -> float:
        """Bytes of one reduction; the one answer of a gather may come from any agent."""
        if leg.verb == "sum":
            return n_messages(self.rule) * message_bytes(leg.bytes_up // NUMBER)
        if leg.verb == "max":
            return self.diameter * self._n_messages * leg.bytes_up
        relays = sum(map(self._relays, self.graph))
        return leg.bytes_up * (relays if leg.everybody_answers else relays / self.n_agents)

    def messages(self, leg: Leg) -> int:
        """Messages of one reduction."""
        return n_messages(self.rule) if leg.verb == "sum" else self.diameter * self._n_messages

    def seconds(self, leg: Leg) -> float:
        """Time of one reduction: messages of a round travel at the same time."""
        n_bytes = message_bytes(leg.bytes_up // NUMBER) if leg.verb == "sum" else leg.bytes_up
        return self.rounds(leg) * (self.latency + n_bytes / self.bandwidth)

    def is_certain(self, leg: Leg) -> bool:
        """Whether the bytes of a reduction do not depend on which agent answers."""
        return leg.everybody_answers

    @property
    def _n_messages(self) -> int:
        return sum(map(len, self.graph.values()))

    def _relays(self, source: str) -> int:
        """Messages in which something that one agent tells is passed on to all."""
        from dsfr.engines.topology import distances

        depths = distances(self.graph, source)
        return sum(len(near) for name, near in self.graph.items() if depths[name] < self.diameter)


@dataclass(frozen=True, slots=True)
class Plan:
    """Expected rounds, bytes and time of a training."""

    legs: list[Leg]
    links: Links | GossipLinks
    computing: float
    """Seconds that agents compute, all at the same time, measured on this machine."""

    @property
    def rounds(self) -> int:
        """Rounds of all tasks, building included."""
        rounds = sum(leg.rounds * self.links.rounds(leg) for leg in self.legs)
        return rounds + (self.links.building.rounds if self.links.building else 0)

    @property
    def bytes(self) -> float:
        """Bytes of all tasks, building included."""
        n_bytes = sum(leg.rounds * self.links.bytes(leg) for leg in self.legs)
        return n_bytes + (self.links.building.bytes if self.links.building else 0)

    @property
    def exact(self) -> bool:
        """Whether bytes are certain, given the rounds."""
        return all(leg.exact and self.links.is_certain(leg) for leg in self.legs)

    @property
    def travelling(self) -> float:
        """Seconds that messages travel."""
        return sum(leg.rounds * self.links.seconds(leg) for leg in self.legs)


def make_plan(
    n_rows: int,
    n_features: int,
    links: Links | GossipLinks,
    settings: Settings,
    *,
    cluster_rounds: int | None = None,
    weight_rounds: int | None = None,
) -> Plan:
    """Plan of a training of ``n_rows`` rows, divided evenly among the agents.

    Raises
    ------
    ValueError
        If there would be too many weights, a decentralised training has no graph, or the number of rounds depends on
        the data, see `legs`.
    """
    if settings.solver.gossips and links.n_agents > 1 and isinstance(links, Links):
        raise ValueError(f"solver={settings.solver!r} needs to know who is linked to whom: give a topology")
    assumed = settings.solver.usual_rounds
    if assumed is None:
        raise ValueError(f"solver={settings.solver!r} cannot be planned: its rounds depend on the data")
    check_size(settings, n_features)
    clustering = assumed[0] if cluster_rounds is None else cluster_rounds
    solving = assumed[1] if weight_rounds is None else weight_rounds
    found = legs(n_features, settings, clustering, solving)
    n_passes = sum(leg.rounds for leg in found if "cluster" in leg.task or leg.task == "count_and_sum")
    rows = max(1, -(-n_rows // links.n_agents))
    return Plan(found, links, _computing(rows, n_features, settings, n_passes))


def plan_links(
    n_agents: int, topology: Any, *, latency: float, bandwidth: float, seed: int, gossip: bool = False
) -> Links | GossipLinks:
    """Links of a graph, with a tree or by gossip, or of direct messages if ``topology`` is None."""
    if topology is None or n_agents == 1:
        return Links(n_agents, latency, bandwidth)
    # Loading networkx takes a while, and most plans have no graph.
    from dsfr.engines.topology import agents_in, diameter, distances, make_topology

    agents = agents_in(topology, n_agents)
    graph = make_topology(topology, agents, seed=seed)
    if gossip:
        return GossipLinks(graph, latency, bandwidth, sum_rule(graph), diameter(graph))
    depths = tuple(distances(graph, agents[0]).values())[1:]
    n_offers = sum(map(len, graph.values())) - (n_agents - 1)
    return Links(n_agents, latency, bandwidth, depths, n_offers)


def _computing(n_rows: int, n_features: int, settings: Settings, n_passes: int) -> float:
    """Seconds of an agent: passes over its rows, and its pairs; timed on some rows and scaled."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (min(n_rows, SAMPLE_ROWS), n_features))
    centers = rng.uniform(-1.0, 1.0, (settings.n_rules, n_features))
    step = _seconds(lambda: ClusterSums.of(X, centers, settings.rules.fuzzifier))
    total = n_passes * step * n_rows / len(X)
    n_pairs = settings.penalty.drawn_pairs(n_rows)
    if n_pairs == 0:
        return total
    sample = min(n_pairs, SAMPLE_ROWS)
    rules = Rules(centers, np.full_like(centers, 0.5))
    pairs = _seconds(lambda: consistency_gram(X, rules, n_pairs=sample, concentration=0.75, rng=rng))
    return total + pairs * n_pairs / sample


def _seconds(work: Callable[[], object]) -> float:
    """The shorter of two runs, because the first may include loading."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
