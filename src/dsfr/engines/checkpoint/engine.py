"""Training that can be killed at any round and go on from there, on any engine whose agents' memories can be kept.

The coordinator's part of a training is a function of the reductions it gets. So what is written down is these, and what
agents remember; going on means to run the training again, answering from the journal as far as it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dsfr.engines.checkpoint.identity import FORMAT, as_json, difference
from dsfr.engines.checkpoint.journal import Journal, Record
from dsfr.engines.contract import Engine
from dsfr.engines.flattening import layout_of, pack_bundles, unpack_bundles
from dsfr.engines.ledger import Ledger
from dsfr.storage.bundles import Bundle

AHEAD = 1
"""Rounds that a process may be ahead of another when all are killed, if every round waits for all."""
IDENTIFY = "identify"
"""The task whose sum tells whether the rows are those of before."""


class CheckpointError(ValueError):
    """A checkpoint that is in the way, or does not belong to this training."""


class Resumable(Engine, Protocol):
    """An engine whose agents' memories can be kept and given back."""

    @property
    def repeatable(self) -> bool:
        """Whether a round that is run again gives the same."""

    def save_memories(self, path_of: Callable[[str], Path]) -> None:
        """Write the memory of every own agent to its path, as `dsfr.engines.checkpoint.memory.write_memory` does."""

    def load_memories(self, path_of: Callable[[str], Path]) -> None:
        """Let every own agent go on with the memory at its path."""

    def agree_lowest(self, number: int) -> int:
        """The lowest number of all processes that run this training."""


def with_checkpoint(
    engine: Any, folder: str | Path, about: Mapping[str, Any], *, resume: bool = False, every: int = 1
) -> Checkpointed:
    """The engine, with every round written down in a folder.

    Parameters
    ----------
    engine : Engine
        Any engine of this package, without faults.
    folder : path
        Where processes keep their journals and agents their memories, each in a folder of its own: on a shared file
        system, or under the same name on every machine. With dask it must be one that all workers see.
    about : mapping
        What the training depends on besides rows and agents: its settings. Going on with others is an error.
    resume : bool, default=False
        Go on from the last round that all processes have written down, or start if there is none. Without it, a folder
        with a journal is an error.
    every : int, default=1
        Rounds between two snapshots of memories. Rounds since the last one are run again.

    Raises
    ------
    CheckpointError
        If there is a journal and ``resume`` is not given, or it belongs to other settings, agents or rows.
    """
    if not engine.repeatable:
        raise CheckpointError("a training with faults cannot be checkpointed: what happens by chance cannot go on")
    return Checkpointed(engine, Path(folder), about, resume=resume, every=every)


class Checkpointed:
    """An engine that answers from a journal as far as it goes, and then asks agents and writes down what they said."""

    def __init__(
        self, engine: Any, folder: Path, about: Mapping[str, Any], *, resume: bool = False, every: int = 1
    ) -> None:
        self._engine, self._folder, self._every = engine, folder, every
        self._journal = Journal(self._home(engine.own_agents[0]) / "journal")
        self._round, self._replayed = 0, list[Record]()
        self._stale = False
        self._open(self._head(about), resume=resume)

    @property
    def n_agents(self) -> int:
        """Number of agents."""
        return int(self._engine.n_agents)

    @property
    def present(self) -> tuple[str, ...]:
        """Names of all agents."""
        return tuple(self._engine.agents)

    @property
    def agents(self) -> tuple[str, ...]:
        """Names of all agents."""
        return tuple(self._engine.agents)

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of the agents of this process."""
        return tuple(self._engine.own_agents)

    @property
    def has_coordinator(self) -> bool:
        """Whether one process knows the reductions and tells agents what to do."""
        return bool(self._engine.has_coordinator)

    @property
    def ledger(self) -> Ledger:
        """What has been sent since the training started, or went on."""
        ledger: Ledger = self._engine.ledger
        return ledger

    @property
    def n_replayed(self) -> int:
        """Rounds that are answered from the journal."""
        return len(self._replayed)

    def sum(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise sum of the contributions of all agents."""
        return self._answer(task, "sum", broadcast, lambda: [self._engine.sum(task, broadcast)])[0]

    def max(self, task: str, broadcast: Bundle) -> Bundle:
        """Elementwise maximum of the contributions of all agents."""
        return self._answer(task, "max", broadcast, lambda: [self._engine.max(task, broadcast)])[0]

    def gather(self, task: str, broadcast: Bundle) -> list[Bundle]:
        """Every non-empty contribution by itself."""
        return self._answer(task, "gather", broadcast, lambda: list(self._engine.gather(task, broadcast)))

    def _answer(self, task: str, verb: str, broadcast: Bundle, ask: Callable[[], list[Bundle]]) -> list[Bundle]:
        about = {"task": task, "verb": verb, "told": repr(layout_of(broadcast))}
        self._round += 1
        if self._round <= len(self._replayed):
            return self._recalled(self._replayed[self._round - 1], about)
        self._wake()
        answers = ask()
        self._journal.add(Record({"answers": np.frombuffer(pack_bundles(answers), dtype=np.uint8)}, about))
        if self._round % self._every == 0:
            self._snapshot()
        return answers

    def _recalled(self, record: Record, about: Mapping[str, str]) -> list[Bundle]:
        if any(record.about.get(name) != value for name, value in about.items()):
            raise CheckpointError(
                f"round {self._round} in {self._journal.path} was {record.about.get('task')!r}, and now "
                f"{about['task']!r} is asked: the journal is of another version. Train anew, in an empty folder."
            )
        return unpack_bundles(record.arrays["answers"].tobytes())

    def _wake(self) -> None:
        """Give agents the memories they had when the journal ends."""
        if self._stale:
            self._engine.load_memories(lambda agent: self._memory(agent, len(self._replayed)))
            self._stale = False

    def _snapshot(self) -> None:
        self._engine.save_memories(lambda agent: self._memory(agent, self._round))
        for agent in self._engine.own_agents:
            for number in self._remembered(agent)[: -1 - AHEAD]:
                self._memory(agent, number).unlink(missing_ok=True)

    def _head(self, about: Mapping[str, Any]) -> Record:
        links = {name: sorted(near) for name, near in getattr(self._engine, "links", {}).items()}
        told = {"settings": as_json(about), "agents": as_json(sorted(self._engine.agents)), "links": as_json(links)}
        told["format"] = FORMAT
        return Record(self._engine.sum(IDENTIFY, {}), told)

    def _open(self, head: Record, *, resume: bool) -> None:
        """Find out, with all other processes, from which round to go on."""
        records = self._find(head)
        problem = difference(records[0], head) if records else ""
        if records and not resume:
            problem = f"{self._folder} has the journal of an earlier training: resume it, or give another folder"
        rounds = self._engine.agree_lowest(-1 if problem else self._last_round(len(records) - 1))
        lacking = rounds > 0 and not all(self._memory(agent, rounds).is_file() for agent in self._engine.own_agents)
        if self._engine.agree_lowest(-1 if lacking else 0) or rounds < 0:
            raise CheckpointError(problem or f"{self._folder} does not fit this training on all processes")
        self._replayed, self._stale = records[1 : rounds + 1], rounds > 0
        self._rewrite([head, *self._replayed])

    def _find(self, head: Record) -> list[Record]:
        """Records of the own journal, or of the longest there is: all processes know the same reductions."""
        own = self._journal.read()
        needed = self._last_round(1 << 62)
        if own and len(own) > needed:
            return own
        others = (Journal(path).read() for path in sorted(self._folder.glob("*/journal")))
        return max([own, *others], key=len)

    def _last_round(self, n_rounds: int) -> int:
        """The last round of a journal at which all own agents' memories are known; 0 is the start."""
        known = [{n for n in self._remembered(agent) if n <= n_rounds} for agent in self._engine.own_agents]
        return max(set.intersection(*known), default=0)

    def _rewrite(self, records: list[Record]) -> None:
        self._journal.path.parent.mkdir(parents=True, exist_ok=True)
        self._journal.replace(records)

    def _home(self, agent: str) -> Path:
        """The folder of an agent: letters of its name that are safe in a path, and a number for all of it."""
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in agent)[:60]
        return self._folder / f"{safe}-{blake2b(agent.encode(), digest_size=4).hexdigest()}"

    def _memory(self, agent: str, number: int) -> Path:
        return self._home(agent) / f"memory-{number:08d}"

    def _remembered(self, agent: str) -> list[int]:
        return sorted(int(path.name.partition("-")[2]) for path in self._home(agent).glob("memory-" + "[0-9]" * 8))
