"""A fixed-point iteration over agents: each holds its part of the state, the coordinator knows sums and products.

In every round agents combine the images they remember by the weights of the broadcast, apply the map to the result, and
send the image (to be summed) and the products of its gap with those they remember. Weight 1 on the newest image is the
plain iteration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from dsfr.core.arrays import Array
from dsfr.core.consensus.anderson import Mixing
from dsfr.storage.bundles import Bundle
from dsfr.training.tasks.declaration import Field, Fields, array
from dsfr.training.tasks.fields import ITERATION
from dsfr.training.tasks.registry import remember

KEPT = remember(
    __name__,
    {
        "images": Field(None),
        "gaps": Field(None, beside="images"),
        "round": replace(ITERATION["round"], beside="images"),
    },
    transient=True,
)
"""What an agent remembers of an iteration: the last images and gaps, one in a row, and the round they are of."""


def kept_fields(state: str) -> Fields:
    """What is remembered of an iteration whose state has so many numbers."""
    shapes = {"images": array("s", state), "gaps": replace(array("s", state), beside="images")}
    return shapes | {"round": replace(ITERATION["round"], beside="images")}


def recall(memory: Bundle, broadcast: Bundle) -> Array | None:
    """An agent's state for this round, None if it has none yet; after missed rounds it goes on from its last image."""
    if "images" not in memory:
        return None
    mix = broadcast["mix"]
    if _was_present(memory, broadcast) and len(mix) <= len(memory["images"]):
        combined: Array = mix @ memory["images"][-len(mix) :]
        return combined
    last: Array = memory["images"][-1]
    return last


def keep_image(memory: Bundle, broadcast: Bundle, state: Array, image: Array) -> tuple[Bundle, Array]:
    """Memory with the new image and gap, and the products of the gap with as many remembered ones as were combined."""
    gap = image - state
    n_kept = len(broadcast["mix"])
    images, gaps = np.empty((0, len(state))), np.empty((0, len(state)))
    if "images" in memory and _was_present(memory, broadcast):
        images, gaps = memory["images"][-n_kept:], memory["gaps"][-n_kept:]
    gaps = np.vstack([gaps, gap])
    products = np.zeros(n_kept + 1)
    products[-len(gaps) :] = gaps @ gap
    kept = {"images": np.vstack([images, image]), "gaps": gaps, "round": broadcast["round"]}
    return {**memory, **kept}, products


@dataclass(slots=True)
class Iteration:
    """The coordinator's side: what to tell agents next, and the sum of their states."""

    memory: int
    mixing: Mixing = field(init=False)
    mix: Array = field(init=False)
    image_sums: list[Array] = field(init=False)
    present: frozenset[str] = frozenset()
    round: int = 1

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Go on from the newest images, without acceleration from older ones."""
        self.mixing = Mixing.start(self.memory)
        self.mix = np.ones(1)
        self.image_sums = []

    def message(self) -> Bundle:
        """What every agent must know of the iteration."""
        return {"mix": self.mix, "round": np.asarray(self.round, dtype=np.int64)}

    @property
    def n_present(self) -> int:
        """Number of agents in the sums last received."""
        return len(self.present)

    def receive(self, sums: Bundle, present: Iterable[str], merit: float | None = None) -> Array:
        """Sum of the states that agents will go on from. Combining starts anew when an agent has left or come back."""
        if frozenset(present) != self.present:
            self.restart()
            self.present = frozenset(present)
        self.round += 1
        self.mixing, self.mix = self.mixing.advance(sums["products"], merit)
        self.image_sums = [*self.image_sums, sums["image"]][-max(len(self.mix), self.memory + 1) :]
        total: Array = self.mix @ np.array(self.image_sums[-len(self.mix) :])
        return total


def _was_present(memory: Bundle, broadcast: Bundle) -> bool:
    return int(memory["round"]) == int(broadcast["round"]) - 1
