"""What agents remember, in files: each whole or not there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from dsfr.engines.agent import Agent
from dsfr.storage.atomic import replacing
from dsfr.storage.bundles import Bundle, BundleError, from_bytes, to_bytes


def write_memory(path: Path, memory: Bundle) -> None:
    """Write what an agent remembers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(to_bytes(memory))


def read_memory(path: Path) -> Bundle:
    """What an agent remembered.

    Raises
    ------
    BundleError
        If the file is damaged.
    """
    try:
        return from_bytes(path.read_bytes())
    except BundleError as error:
        raise BundleError(f"{path} is damaged ({error}): remove the checkpoint and train anew") from None


class Hosted:
    """What engines share that hold their agents as objects of this process, as far as checkpoints go."""

    _hosted: Mapping[str, Agent]

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of the agents of this process."""
        return tuple(self._hosted)

    @property
    def repeatable(self) -> bool:
        """Whether a round that is run again gives the same."""
        return True

    def save_memories(self, path_of: Callable[[str], Path]) -> None:
        """Write the memory of every own agent to its path."""
        for name, agent in self._hosted.items():
            write_memory(path_of(name), agent.memory)

    def load_memories(self, path_of: Callable[[str], Path]) -> None:
        """Let every own agent go on with the memory at its path."""
        for name, agent in self._hosted.items():
            agent.restore(read_memory(path_of(name)))
