"""The rows of one agent: the only place where data are, and where they stay."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt

from dsfr.core.arrays import Array
from dsfr.core.scaling import Ranges, scale_features


class Purpose(IntEnum):
    """What a random stream is for; streams of different purposes are independent."""

    SPLIT = 0
    START = 1
    PAIRS = 2
    NODES = 3
    METRIC = 4


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows of one agent, unscaled, with NaN in ``y`` where unlabelled."""

    X: Array
    y: Array
    key: int
    """Number of the agent's random streams, from its name alone: position and order of agents do not matter."""

    @property
    def labeled(self) -> npt.NDArray[np.bool_]:
        """Which rows have a target."""
        return ~np.isnan(self.y)

    def scaled(self, ranges: Ranges) -> Array:
        """All rows, scaled."""
        return scale_features(self.X, ranges)

    def rng(self, seed: int, purpose: Purpose, repeat: int = 0) -> np.random.Generator:
        """This agent's random stream for a purpose."""
        return np.random.default_rng([seed, self.key, purpose, repeat])


def agent_key(name: object) -> int:
    """A 64-bit number for an agent's name; the same on every machine.

    >>> agent_key("north") == agent_key("north"), agent_key("north") == agent_key("south")
    (True, False)
    """
    return int.from_bytes(blake2b(str(name).encode(), digest_size=8).digest(), "little")


def make_shards(X: Array, y: Array, agents: npt.NDArray[Any]) -> dict[str, Shard]:
    """One shard per distinct name in ``agents``, in the order of the names."""
    names = agents.astype(str)
    return {str(name): Shard(X[names == name], y[names == name], agent_key(name)) for name in np.unique(names)}
