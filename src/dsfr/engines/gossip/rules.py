"""How all agents come to the sum of what each has, by exchanges between neighbors: along a tree, or by a polynomial.

*Along a tree.* All agents know all links and so the same spanning tree. Every agent sends to each neighbor in the tree,
once, the sum of what it has and of what it was sent by the others: the sum over the agents on its side of the link. A
sum takes as many exchanges as the tree is wide, and one message each way over every link of it. No agent is a root.

*By the polynomial of the Laplacian*, see `minimal_polynomial`. It is faster on rings, where a tree is as wide as the
ring is long, and on complete graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dsfr.engines.gossip.minimal_polynomial import SumPolynomial, sum_polynomial
from dsfr.engines.gossip.residues import MODULI, Residues, from_message, to_message

Message = npt.NDArray[np.uint8]
Link: TypeAlias = tuple[str, str]
"""Sender and receiver of a message."""
Neighbors: TypeAlias = Mapping[str, Sequence[str]]


class Part(Protocol):
    """One agent's part in a sum."""

    @property
    def value(self) -> Residues:
        """What the agent has so far; after the last exchange, the sum."""

    def message(self, receiver: str) -> Message:
        """What a neighbor is sent in the next exchange."""

    def receive(self, k: int, messages: Mapping[str, Message]) -> None:
        """Take up what neighbors have sent in exchange ``k``, by sender."""


class SumRule(Protocol):
    """Who sends what to whom until all have the sum."""

    @property
    def exchanges(self) -> Sequence[Sequence[Link]]:
        """Links that carry a message in each exchange; all of them at the same time."""

    def begin(self, own: Residues) -> Part:
        """The part of an agent, before the first exchange."""


def sum_rule(links: Neighbors) -> SumRule:
    """The rule with the fewest exchanges for a connected graph, and the fewest messages among equals.

    All agents find the same.
    """
    rules: tuple[SumRule, ...] = (PolynomialRule.of(links), TreeRule.of(links))
    return min(rules, key=lambda rule: (len(rule.exchanges), n_messages(rule)))


def n_messages(rule: SumRule) -> int:
    """Messages of one sum."""
    return sum(map(len, rule.exchanges))


@dataclass(slots=True)
class TreePart:
    """What an agent has, and what its neighbors in the tree have sent."""

    own: Residues
    heard: dict[str, Residues] = field(default_factory=dict)

    @property
    def value(self) -> Residues:
        """Sum over all agents heard of so far."""
        return self._sum_without("")

    def message(self, receiver: str) -> Message:
        """Sum over the agents on this side of a link; what came over the link itself is not sent back."""
        return to_message(self._sum_without(receiver))

    def receive(self, k: int, messages: Mapping[str, Message]) -> None:
        """Take up sums over the agents behind some links."""
        self.heard |= {sender: from_message(message) for sender, message in messages.items()}

    def _sum_without(self, left_out: str) -> Residues:
        parts = (residues for sender, residues in self.heard.items() if sender != left_out)
        found: Residues = sum(parts, self.own) % MODULI
        return found


@dataclass(frozen=True, slots=True)
class TreeRule:
    """Sums over the two sides of every link of a tree."""

    exchanges: tuple[tuple[Link, ...], ...]

    @classmethod
    def of(cls, links: Neighbors) -> TreeRule:
        """Along the narrowest breadth-first spanning tree; a message goes as soon as what it needs is there."""
        from dsfr.engines.topology import narrowest_tree  # networkx is slow to load

        tree = narrowest_tree(links)
        waiting = [(sender, receiver) for sender, near in tree.items() for receiver in near]
        exchanges, arrived = list[tuple[Link, ...]](), set[Link]()
        while waiting:
            ready = tuple(
                (sender, receiver)
                for sender, receiver in waiting
                if all((other, sender) in arrived for other in tree[sender] if other != receiver)
            )
            exchanges.append(ready)
            arrived.update(ready)
            waiting = [link for link in waiting if link not in arrived]
        return cls(tuple(exchanges))

    def begin(self, own: Residues) -> Part:
        """The part of an agent, before the first exchange."""
        return TreePart(own)


@dataclass(slots=True)
class HornerPart:
    """The state of an agent in Horner's rule."""

    polynomial: SumPolynomial
    own: Residues
    value: Residues

    def message(self, receiver: str) -> Message:
        """What all neighbors are sent."""
        return to_message(self.value)

    def receive(self, k: int, messages: Mapping[str, Message]) -> None:
        """Take up what all neighbors have sent."""
        laplacian = len(messages) * self.value
        for message in messages.values():
            laplacian -= from_message(message)
        self.value = self.polynomial.horner(k, self.own, laplacian)


@dataclass(frozen=True, slots=True)
class PolynomialRule:
    """All neighbors send to each other, as often as the polynomial has degrees."""

    polynomial: SumPolynomial
    links: tuple[Link, ...]

    @classmethod
    def of(cls, links: Neighbors) -> PolynomialRule:
        """With the polynomial of least degree."""
        return cls(sum_polynomial(links), tuple((name, near) for name, nearby in links.items() for near in nearby))

    @property
    def exchanges(self) -> tuple[tuple[Link, ...], ...]:
        """All links, every time."""
        return (self.links,) * self.polynomial.degree

    def begin(self, own: Residues) -> Part:
        """The part of an agent, before the first exchange."""
        return HornerPart(self.polynomial, own, self.polynomial.horner(0, own, 0))
