"""Who is linked to whom: usual graphs by name, or one's own from networkx, a list of pairs, or a file.

Not imported with the engines, because networkx takes its time to load and most trainings need no graph.
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
        Seed of the random graphs, which are drawn so that they are connected.

    Raises
    ------
    ValueError
        If the graph has other nodes than the agents, or is not connected; naming them, or its components.
    """
    graph = _graph_of(spec, len(agents), seed)
    named = nx.relabel_nodes(graph, _names_of(graph, agents))
    named.add_nodes_from(agents)  # a lone agent may have no edge
    named.remove_edges_from(list(nx.selfloop_edges(named)))
    _check_connected(named)
    order = {name: position for position, name in enumerate(agents)}
    return {name: tuple(sorted(named[name], key=order.__getitem__)) for name in agents}


def agents_in(spec: Any, n_agents: int) -> list[str]:
    """Names of agents that only a graph tells of: its nodes if there are as many, else numbers."""
    names = sorted(map(str, _graph_of(spec, n_agents, 0).nodes))
    return names if len(names) == n_agents else [str(number) for number in range(n_agents)]


def _graph_of(spec: Any, n_agents: int, seed: int) -> Any:
    if isinstance(spec, str) and spec in TOPOLOGIES:
        return TOPOLOGIES[spec](n_agents, seed)
    if isinstance(spec, (str, Path)):
        return nx.Graph(_read_edges(Path(spec)))
    return nx.Graph(spec if hasattr(spec, "edges") else _checked_pairs(spec))


def distances(topology: Mapping[str, Sequence[str]], root: str) -> dict[str, int]:
    """Links from the root to every agent."""
    found = nx.single_source_shortest_path_length(nx.Graph({name: list(near) for name, near in topology.items()}), root)
    return {name: int(found[name]) for name in topology}


def _grid(n: int, seed: int) -> Any:
    """The first ``n`` cells of a grid as square as it goes, row by row."""
    columns = math.ceil(math.sqrt(n))
    cells = [divmod(cell, columns) for cell in range(n)]
    grid = nx.grid_2d_graph(math.ceil(n / columns), columns).subgraph(cells)
    return nx.relabel_nodes(grid, {cell: number for number, cell in enumerate(cells)})


def _geometric(n: int, seed: int) -> Any:
    """Points in the unit square linked when near; the radius grows until all are connected."""
    radius = math.sqrt(math.log(max(n, 2)) / (math.pi * n))
    while not nx.is_connected(graph := nx.random_geometric_graph(n, radius, seed=seed)):
        radius *= 1.05
    return graph


def _erdos_renyi(n: int, seed: int) -> Any:
    """Every pair linked with probability ``2 ln(n) / n``; drawn again until all are connected."""
    probability = min(1.0, 2.0 * math.log(max(n, 2)) / n)
    for draw in range(_MAX_DRAWS):
        graph = nx.gnp_random_graph(n, probability, seed=seed + draw)
        if nx.is_connected(graph):
            return graph
    raise ValueError(f"no connected random graph of {n} agents in {_MAX_DRAWS} draws: try another seed")


def _barabasi_albert(n: int, seed: int) -> Any:
    """Agents join one after another, each linked to two that are preferably well linked already."""
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
"""Usual graphs by name."""


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
        raise ValueError(f"topology {str(path)!r} is no text in UTF-8: it must have two names per line") from None


def _checked_pairs(spec: Any) -> list[tuple[Any, Any]]:
    rule = "must be the name of a graph, a file, a networkx.Graph, or pairs of agents"
    if not isinstance(spec, Iterable):
        raise ValueError(f"topology={spec!r} {rule}")
    pairs = list(spec)
    for pair in pairs:
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"topology {rule}; {pair!r} is no pair")
    return [(first, second) for first, second in pairs]


def _names_of(graph: Any, agents: Sequence[str]) -> dict[Any, str]:
    """The agent of every node: by name, else by number."""
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
