"""Graphs of agents: by name, or from networkx, a list of pairs, or a file; distances and spanning trees in them.

Not imported with `dsfr.engines`, because networkx is slow to load and most trainings need no graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import networkx as nx

Topology: TypeAlias = dict[str, tuple[str, ...]]
"""The neighbors of every agent, in the order of the agents."""

_MAX_DRAWS = 1000


def make_topology(spec: Any, agents: Sequence[str], *, seed: int = 0) -> Topology:
    """Neighbors of every agent.

    Parameters
    ----------
    spec : str, path, networkx.Graph or iterable of pairs
        A name of `TOPOLOGIES`; a file with two names per line; a graph; or edges. Nodes are names of agents, or numbers
        from 0 in the order of the agents.
    agents : sequence of str
        Names of the agents.
    seed : int, default=0
        Seed of random graphs; they are drawn until they are connected.

    Raises
    ------
    ValueError
        If the graph has other nodes than the agents, or is not connected; naming them, or its components.
    """
    graph = _graph_of(spec, len(agents), seed)
    named = nx.relabel_nodes(graph, _names_of(graph, agents))
    named.add_nodes_from(agents)  # a single agent has no edge
    named.remove_edges_from(list(nx.selfloop_edges(named)))
    _check_connected(named)
    order = {name: position for position, name in enumerate(agents)}
    return {name: tuple(sorted(named[name], key=order.__getitem__)) for name in agents}


def agents_in(spec: Any, n_agents: int) -> list[str]:
    """Names of agents from a graph: its nodes if their number is ``n_agents``, else numbers."""
    names = sorted(map(str, _graph_of(spec, n_agents, 0).nodes))
    return names if len(names) == n_agents else [str(number) for number in range(n_agents)]


def _graph_of(spec: Any, n_agents: int, seed: int) -> Any:
    if isinstance(spec, str) and spec in TOPOLOGIES:
        return TOPOLOGIES[spec](n_agents, seed)
    if isinstance(spec, (str, Path)):
        return nx.Graph(_read_edges(Path(spec)))
    return nx.Graph(spec if hasattr(spec, "edges") else _checked_pairs(spec))


def graph_of(topology: Mapping[Any, Sequence[Any]]) -> Any:
    """A topology as a `networkx.Graph`."""
    return nx.Graph({node: list(neighbors) for node, neighbors in topology.items()})


def distances(topology: Mapping[str, Sequence[str]], root: str) -> dict[str, int]:
    """Number of links from the root to every agent."""
    found = nx.single_source_shortest_path_length(graph_of(topology), root)
    return {name: int(found[name]) for name in topology}


def diameter(topology: Mapping[str, Sequence[str]]) -> int:
    """Largest number of links between two agents."""
    return int(nx.diameter(graph_of(topology)))


def reachable(topology: Mapping[str, Sequence[str]], root: str, absent: frozenset[str]) -> set[str]:
    """Agents that are connected to the root by a path without absent agents; the root itself must be present."""
    graph = graph_of(topology)
    graph.remove_nodes_from(absent)
    return set(nx.node_connected_component(graph, root))


def spanning_tree(topology: Mapping[Any, Sequence[Any]], root: Any) -> list[dict[Any, Any]]:
    """Breadth-first spanning tree: for every depth from 1, the nodes of that depth with their parents.

    >>> spanning_tree({"a": ["b"], "b": ["a", "c"], "c": ["b"]}, "a")
    [{'b': 'a'}, {'c': 'b'}]
    """
    graph = graph_of(topology)
    depths = nx.single_source_shortest_path_length(graph, root)
    layers: list[dict[Any, Any]] = [{} for _ in range(max(depths.values()))]
    for parent, node in nx.bfs_edges(graph, root):
        layers[depths[node] - 1][node] = parent
    return layers


def narrowest_tree(topology: Mapping[str, Sequence[str]]) -> Topology:
    """The breadth-first spanning tree about an agent in the middle whose farthest leaves are the nearest."""
    trees = []
    for middle in nx.center(graph_of(topology)):
        tree = nx.Graph(link for layer in spanning_tree(topology, middle) for link in layer.items())
        tree.add_node(middle)
        trees.append((nx.diameter(tree), tree))
    narrowest = min(trees, key=lambda found: found[0])[1]
    return {name: tuple(near for near in topology[name] if narrowest.has_edge(name, near)) for name in topology}


def check_topology(topology: Mapping[str, Sequence[str]], agents: Sequence[str]) -> Topology:
    """The topology in the order of the agents.

    Raises
    ------
    ValueError
        If it has other nodes than the agents, or is not connected.
    """
    if set(topology) != set(agents):
        raise ValueError(f"topology is over {sorted(topology)}, but the agents are {sorted(agents)}")
    if len(reachable(topology, agents[0], frozenset())) < len(agents):
        raise ValueError("the topology is not connected: add links between its components")
    return {name: tuple(topology[name]) for name in agents}


def _grid(n: int, seed: int) -> Any:
    """The first ``n`` cells, row by row, of a grid that is as square as possible."""
    columns = math.ceil(math.sqrt(n))
    cells = [divmod(cell, columns) for cell in range(n)]
    grid = nx.grid_2d_graph(math.ceil(n / columns), columns).subgraph(cells)
    return nx.relabel_nodes(grid, {cell: number for number, cell in enumerate(cells)})


def _geometric(n: int, seed: int) -> Any:
    """Points in the unit square, linked within a radius that grows until the graph is connected."""
    radius = math.sqrt(math.log(max(n, 2)) / (math.pi * n))
    while not nx.is_connected(graph := nx.random_geometric_graph(n, radius, seed=seed)):
        radius *= 1.05
    return graph


def _erdos_renyi(n: int, seed: int) -> Any:
    """Every pair linked with probability ``2 ln(n) / n``; drawn again until the graph is connected."""
    probability = min(1.0, 2.0 * math.log(max(n, 2)) / n)
    for draw in range(_MAX_DRAWS):
        graph = nx.gnp_random_graph(n, probability, seed=seed + draw)
        if nx.is_connected(graph):
            return graph
    raise ValueError(f"no connected random graph of {n} agents in {_MAX_DRAWS} draws: try another seed")


def _barabasi_albert(n: int, seed: int) -> Any:
    """Preferential attachment: each new agent is linked to two earlier ones, in proportion to their degrees."""
    return nx.barabasi_albert_graph(n, 2, seed=seed) if n > 2 else nx.complete_graph(n)


TOPOLOGIES: dict[str, Callable[[int, int], Any]] = {
    "complete": lambda n, seed: nx.complete_graph(n),
    "star": lambda n, seed: nx.star_graph(n - 1),
    "line": lambda n, seed: nx.path_graph(n),
    "ring": lambda n, seed: nx.cycle_graph(n),
    "grid": _grid,
    "geometric": _geometric,
    "erdos-renyi": _erdos_renyi,
    "barabasi-albert": _barabasi_albert,
}
"""Common graphs by name."""


def _read_edges(path: Path) -> list[tuple[str, str]]:
    if not path.is_file():
        raise ValueError(f"topology {str(path)!r} is neither a file nor one of {', '.join(TOPOLOGIES)}")
    edges = []
    for number, line in enumerate(_text_of(path).splitlines(), start=1):
        text = line.partition("#")[0].strip()
        names = [name.strip() for name in (text.split(",") if "," in text else text.split())]
        if text and (len(names) != 2 or not all(names)):
            raise ValueError(f"{path}, line {number}: {line!r} must be two names, with a comma or space between them")
        if text:
            edges.append((names[0], names[1]))
    return edges


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"topology {str(path)!r} is not UTF-8 text: it must have two names per line") from None


def _checked_pairs(spec: Any) -> list[tuple[Any, Any]]:
    rule = "must be the name of a graph, a file, a networkx.Graph, or pairs of agents"
    if not isinstance(spec, Iterable):
        raise ValueError(f"topology={spec!r} {rule}")
    pairs = list(spec)
    for pair in pairs:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"topology {rule}; {pair!r} is not a pair")
    return [(first, second) for first, second in pairs]


def _names_of(graph: Any, agents: Sequence[str]) -> dict[Any, str]:
    """Agent of every node: by name, else by number."""
    nodes = {node: str(node) for node in graph.nodes}
    numbers = {str(number): name for number, name in enumerate(agents)}
    if not set(nodes.values()) <= set(agents) and set(nodes.values()) <= set(numbers):
        nodes = {node: numbers[name] for node, name in nodes.items()}
    unknown, unlinked = set(nodes.values()) - set(agents), set(agents) - set(nodes.values())
    if unknown:
        raise ValueError(f"the topology names {_listed(unknown)}, but the agents are {_listed(agents)}")
    if unlinked and len(agents) > 1:
        raise ValueError(f"the topology is not connected: {_listed(unlinked)} has no link to any other agent")
    return nodes


def _check_connected(graph: Any) -> None:
    components = sorted((sorted(part) for part in nx.connected_components(graph)), key=len, reverse=True)
    if len(components) > 1:
        parts = "; ".join(f"[{_listed(part)}]" for part in components)
        raise ValueError(f"the topology is not connected; its components are {parts}. Add a link between them.")


def _listed(names: Iterable[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:20]) + (f", and {len(shown) - 20} more" if len(shown) > 20 else "")
