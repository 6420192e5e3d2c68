"""Checkpoints: a training that is killed at any round resumes and ends in the same model, on any engine.

The coordinator's side of a training is a function of the results of rounds. So a checkpoint holds these results, in a
journal, and the memories of the agents. To resume is to run the training again and to answer from the journal first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from dsfr.engines.base import BaseEngine
from dsfr.engines.checkpoint.identity import FORMAT, as_json, first_difference
from dsfr.engines.checkpoint.journal import Journal, Record
from dsfr.engines.contract import RefusedError
from dsfr.engines.flattening import layout_of, pack_bundles, unpack_bundles
from dsfr.storage.bundles import Bundle
from dsfr.storage.lock import FileLock

MAX_LEAD = 1
"""Largest number of rounds that one process can be ahead of another, if every round waits for all."""
REFUSED = "refused"
"""Name of the reason in the record of a round that an agent refused."""
IDENTIFY = "identify"
"""The task whose sum identifies the rows."""


class CheckpointError(ValueError):
    """A checkpoint exists already, or belongs to another training."""


def with_checkpoint(
    engine: BaseEngine, folder: str | Path, settings: Mapping[str, Any], *, resume: bool = False, every: int = 1
) -> Checkpointed:
    """The engine, with a journal of its rounds in a folder.

    Parameters
    ----------
    engine : Engine
        Any engine of this package, without faults.
    folder : path
        Folder of the journals of processes and the memories of agents: on a shared file system, or under the same name
        on every machine. With dask all workers must see it.
    settings : mapping
        Settings of the training. Resuming with other settings is an error.
    resume : bool, default=False
        Continue after the last round in the journals of all processes, or start if there is none. Without it, a folder
        with a journal is an error.
    every : int, default=1
        Rounds between two snapshots of memories. Rounds after the last snapshot run again.

    Raises
    ------
    CheckpointError
        If there is a journal and ``resume`` is not given, or it belongs to other settings, agents or rows.
    """
    if not engine.deterministic:
        raise CheckpointError("a training with simulated faults cannot be checkpointed: faults are random")
    return Checkpointed(engine, Path(folder), settings, resume=resume, every=every)


class Checkpointed(BaseEngine):
    """An engine that answers from its journal while it can; then it runs rounds and appends their results to it."""

    def __init__(
        self, engine: BaseEngine, folder: Path, settings: Mapping[str, Any], *, resume: bool = False, every: int = 1
    ) -> None:
        super().__init__(engine.agents, {}, engine.ledger)
        self._engine, self._folder, self._every = engine, folder, every
        self._journal = Journal(self._agent_folder(engine.own_agents[0]) / "journal")
        self._round, self._replayed = 0, list[Record]()
        self._memories_outdated = False
        self._lock = FileLock(self._journal.path.with_name("lock"))
        self._open(self._header(settings), resume=resume)

    @property
    def own_agents(self) -> tuple[str, ...]:
        """Names of the agents of this process."""
        return self._engine.own_agents

    @property
    def has_coordinator(self) -> bool:
        """Whether one process receives the reductions and sends broadcasts."""
        return self._engine.has_coordinator

    @property
    def only_sums(self) -> bool:
        """Whether sums alone leave the agents."""
        return self._engine.only_sums

    @property
    def stated_labels(self) -> int | None:
        """Labels that agents have stated to each other; None if they have not."""
        return self._engine.stated_labels

    @property
    def n_replayed(self) -> int:
        """Number of rounds that the journal answers."""
        return len(self._replayed)

    def _run_round(self, task: str, verb: str, broadcast: Bundle) -> list[Bundle]:
        def run() -> list[Bundle]:
            result = getattr(self._engine, verb)(task, broadcast)
            return result if verb == "gather" else [result]

        return self._replay_or_run(task, verb, broadcast, run)

    def _replay_or_run(self, task: str, verb: str, broadcast: Bundle, run: Callable[[], list[Bundle]]) -> list[Bundle]:
        request = {"task": task, "verb": verb, "broadcast": repr(layout_of(broadcast))}
        if self._round < len(self._replayed):
            self._round += 1
            return self._replay(self._replayed[self._round - 1], request)
        self._restore_memories()
        try:
            result = run()
        except RefusedError as error:  # an answer as well: the training asks for less, and does so when it is resumed
            self._append(Record({}, request | {REFUSED: str(error)}))
            raise
        self._append(Record({"result": np.frombuffer(pack_bundles(result), dtype=np.uint8)}, request))
        return result

    def _append(self, record: Record) -> None:
        """Add the result of a round; a round that fails has no record."""
        self._round += 1
        self._journal.append(record)
        if self._round % self._every == 0:
            self._snapshot()

    def _replay(self, record: Record, request: Mapping[str, str]) -> list[Bundle]:
        if any(record.metadata.get(name) != value for name, value in request.items()):
            raise CheckpointError(
                f"round {self._round} in {self._journal.path} is {record.metadata.get('task')!r}, but the training "
                f"runs {request['task']!r}: another version wrote the journal. Train anew in an empty folder."
            )
        if REFUSED in record.metadata:
            raise RefusedError(record.metadata[REFUSED])
        return unpack_bundles(record.arrays["result"].tobytes())

    def _restore_memories(self) -> None:
        """Before the first round that is not replayed, restore the memories of the last replayed round."""
        if self._memories_outdated:
            self._engine.load_memories(lambda agent: self._memory_path(agent, len(self._replayed)))
            self._memories_outdated = False

    def _snapshot(self) -> None:
        """Save the memories of this round and delete those that no process can need any more."""
        self._engine.save_memories(lambda agent: self._memory_path(agent, self._round))
        for agent in self._engine.own_agents:
            for number in self._snapshots(agent)[: -1 - MAX_LEAD]:
                self._memory_path(agent, number).unlink(missing_ok=True)

    def _header(self, settings: Mapping[str, Any]) -> Record:
        """First record of the journal: identifies settings, agents, graph and rows."""
        links = {name: sorted(near) for name, near in getattr(self._engine, "links", {}).items()}
        values = {"settings": settings, "agents": sorted(self._engine.agents), "links": links}
        metadata = {name: as_json(value) for name, value in values.items()} | {"format": FORMAT}
        return Record(self._engine.sum(IDENTIFY, {}), metadata)

    def _open(self, header: Record, *, resume: bool) -> None:
        """Agree with all processes on the last round that every one of them can replay."""
        records = self._read_journal()
        problem = first_difference(records[0], header) if records else ""
        if records and not resume:
            problem = f"{self._folder} has the journal of an earlier training: resume it, or give another folder"
        if not self._lock.acquired:
            problem = (
                f"another process trains with the checkpoint {self._folder}: wait for its end, or give another folder"
            )
        rounds = self._engine.min_over_processes(-1 if problem else self._last_round(len(records) - 1))
        paths = [self._memory_path(agent, rounds) for agent in self._engine.own_agents]
        lacking = rounds > 0 and not all(path.is_file() for path in paths)
        if self._engine.min_over_processes(-1 if lacking else 0) or rounds < 0:
            raise CheckpointError(problem or f"{self._folder} does not fit this training on all processes")
        self._replayed, self._memories_outdated = records[1 : rounds + 1], rounds > 0
        self._journal.path.parent.mkdir(parents=True, exist_ok=True)
        self._delete_snapshots_after(rounds)
        self._journal.replace([header, *self._replayed])

    def _delete_snapshots_after(self, rounds: int) -> None:
        """Where a journal was lost, they may be of another training, and be taken for those of the rounds to come."""
        for agent in self._engine.own_agents:
            for number in self._snapshots(agent):
                if number > rounds:
                    self._memory_path(agent, number).unlink(missing_ok=True)

    def _read_journal(self) -> list[Record]:
        """Records of the own journal, or of the longest one: all processes get the same results."""
        own = self._journal.read()
        if own and len(own) > self._last_round(1 << 62):
            return own
        others = (Journal(path).read() for path in sorted(self._folder.glob("*/journal")))
        return max([own, *others], key=len)

    def _last_round(self, n_rounds: int) -> int:
        """Last of the first ``n_rounds`` rounds with a snapshot of all own agents; 0 is the start."""
        saved = [{n for n in self._snapshots(agent) if n <= n_rounds} for agent in self._engine.own_agents]
        return max(set.intersection(*saved), default=0)

    def _agent_folder(self, agent: str) -> Path:
        """Folder of an agent: the characters of its name that are safe in a path, and a hash of the whole name."""
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in agent)[:60]
        return self._folder / f"{safe}-{blake2b(agent.encode(), digest_size=4).hexdigest()}"

    def _memory_path(self, agent: str, number: int) -> Path:
        return self._agent_folder(agent) / f"memory-{number:08d}"

    def _snapshots(self, agent: str) -> list[int]:
        """Rounds after which the agent's memory was saved."""
        paths = self._agent_folder(agent).glob("memory-" + "[0-9]" * 8)
        return sorted(int(path.name.partition("-")[2]) for path in paths)
