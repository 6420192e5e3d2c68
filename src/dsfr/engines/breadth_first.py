"""Ways through a graph: circles about an agent, the diameter, a tree of shortest ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def circles(
    neighbors: Mapping[str, Sequence[str]], center: str, away: frozenset[str] = frozenset()
) -> list[dict[str, str]]:
    """The agents one, two, ... links from the center past those that are away, each with its neighbor on the way back.

    >>> circles({"a": ["b"], "b": ["a", "c"], "c": ["b"]}, "a")
    [{'a': 'a'}, {'b': 'a'}, {'c': 'b'}]
    """
    found, circle = {center}, {center: center}
    all_circles = []
    while circle:
        all_circles.append(circle)
        near: dict[str, str] = {}
        for known in circle:
            for name in neighbors[known]:
                if name not in found and name not in away:
                    near.setdefault(name, known)
        found |= near.keys()
        circle = near
    return all_circles


def diameter(neighbors: Mapping[str, Sequence[str]]) -> int:
    """Links between the two agents that are farthest apart."""
    return max(len(circles(neighbors, name)) for name in neighbors) - 1
