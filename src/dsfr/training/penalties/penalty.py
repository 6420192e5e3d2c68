"""What a penalty on unlabelled rows is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Self, cast

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.features.basis import Basis
from dsfr.storage.bundles import Bundle
from dsfr.training.component import Component, number, parameter
from dsfr.training.shard import Shard
from dsfr.training.tasks.declaration import Fields
from dsfr.training.tasks.fields import PENALTY


@dataclass(frozen=True, kw_only=True, repr=False)
class UnlabeledPenalty(Component):
    """A penalty ``weight/2 w'Pw`` on the weights, with a matrix ``P`` that is a sum over agents' rows.

    The coordinator packs it into a broadcast (`message`), an agent unpacks it (`from_message`) and computes its part of
    ``P`` (`gram`). Statistics carry ``P`` apart from the weight, so that tuning can choose the weight.
    """

    argument: ClassVar[str] = "unlabeled"
    key: ClassVar[str] = ""
    """Name of an array of the message that no other penalty uses; its presence announces this penalty."""
    fields: ClassVar[Fields] = {}
    """Arrays of the message with their shapes and ranges, optional all: agents check broadcasts against them."""
    default_weight: ClassVar[float] = 0.0
    is_drawn: ClassVar[bool] = False
    """Whether ``P`` is random, so that it can be drawn again."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        PENALTY.update(cls.fields)

    weight: float | None = parameter(
        None,
        number(0, "a number >= 0 (0 switches the penalty off), or None for the usual one", strict=False, or_none=True),
    )

    @property
    def strength(self) -> float:
        """The weight, or the usual one where none is given."""
        return self.default_weight if self.weight is None else float(self.weight)

    @property
    def concentration(self) -> float:
        """Concentration of the mixing shares of `expected_pairs`; 1 where there are no pairs."""
        return 1.0

    @property
    def has_near_pairs(self) -> bool:
        """Whether pairs of near rows are compared."""
        return False

    def message(self) -> Bundle:
        """What agents must know; it contains `key`."""
        return {}

    @classmethod
    def from_message(cls, broadcast: Bundle) -> Self:
        """The penalty of a broadcast that contains `message`; its weight is the usual one."""
        return cls()

    def gram(self, shard: Shard, memory: Bundle, broadcast: Bundle, basis: Basis, repeat: int = 0) -> Array:
        """``P`` of an agent's rows; ``repeat`` numbers the draws of a random one; shape (p, p)."""
        return np.zeros((basis.n_outputs, basis.n_outputs))

    def expected_pairs(self, n_unlabeled: float, n_agents: int) -> float:
        """Interpolated pairs of all agents that ``P`` stands for, from which a preconditioner is made; 0 if none."""
        return 0.0

    def drawn_pairs(self, n_unlabeled: int) -> int:
        """Pairs that an agent with so many unlabelled rows computes."""
        return 0

    def alternative(self) -> Self:
        """The variant that every second rule base of an average takes."""
        return self


NO_PENALTY = UnlabeledPenalty()
"""What ``unlabeled=None`` stands for."""


def penalty_in(broadcast: Bundle) -> UnlabeledPenalty:
    """The penalty that a broadcast announces, `NO_PENALTY` if none."""
    kinds = cast("Iterable[type[UnlabeledPenalty]]", UnlabeledPenalty.choices.values())
    return next((kind.from_message(broadcast) for kind in kinds if kind.key in broadcast), NO_PENALTY)
