"""The registry of tasks, each declared once beside its code, and of what agents remember.

A task declares who combines contributions, which arrays it is sent, which it contributes and which it reads from and
writes to an agent's memory. `Declared.run` holds all of them to that, on the agent's side; everything else that is
known about tasks is derived from here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TypeVar

import numpy as np

from dsfr.core.solve.cholesky import SingularSystemError
from dsfr.engines import Task
from dsfr.storage.bundles import Bundle
from dsfr.training.changed_rows import IncompleteRowsError
from dsfr.training.shard import DENSITY, KEPT, LIMITS, LOG_TARGET, Accepted, ForeignMemoryError, Shard
from dsfr.training.tasks.declaration import (
    BasisError,
    BroadcastError,
    ContributionError,
    Field,
    Fields,
    TaskError,
    at_least,
    number,
    payload,
)
from dsfr.training.tasks.message import Message
from dsfr.training.tasks.symbols import Sizes, largest_sizes

VERBS = ("sum", "max", "gather")
"""How contributions are combined."""
STAGES = ("survey", "start", "clusters", "widths", "statistics", "averaging", "weights", "distillation")
"""Stages of a training, in order."""
OTHER = "other"
"""Stage of tasks that are part of no training."""

INCOMPLETE = "incomplete"
"""Contribution of tasks that open a training: the number of agents whose rows have missing values."""
NOT_FINITE = "array must not contain infs or NaNs"
"""What scipy says of a system that has overflowed."""

T = TypeVar("T", bound=Task)


@dataclass(frozen=True, slots=True)
class Key:
    """An array that agents remember."""

    owner: str
    """Module that declares it."""
    field: Field
    is_transient: bool
    """Whether it belongs to an iteration and is forgotten when the next one is prepared."""


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A task and everything that is declared about it."""

    name: str
    function: Task
    verb: str
    stage: str
    reveals: str
    broadcast: Fields
    contributes: Fields
    needs: Fields
    """Arrays of the memory without which the task cannot run, or not with what ``beside`` names in the broadcast; the
    broadcast may hold them instead."""
    recalls: Fields
    """Arrays of the memory that are used where they are there."""
    remembers: tuple[str, ...]
    """Arrays of the memory that the task may write."""
    is_limited: bool
    """Whether rows are moved to the limits of robust scaling, once there are any."""
    is_distinct: bool
    """Whether rows that were found to be duplicates are left out, and targets are on the scale of learning."""
    may_be_silent: bool
    """Whether an agent may contribute nothing at all."""
    is_completed: bool
    """Whether missing values are replaced by what is expected of them, once the density of the rows is known."""
    is_opening: bool
    """Whether a training begins with it: an agent with missing values answers that it has some, and no more."""

    @property
    def sent(self) -> Message:
        """The check of broadcasts."""
        return _message(self.name, len(self.broadcast))

    @cached_property
    def answered(self) -> Message:
        """The check of contributions."""
        return Message(self.contributes)

    @cached_property
    def _needed(self) -> Message:
        return Message({name: _freely(declared) for name, declared in self.needs.items()})

    @cached_property
    def _recalled(self) -> Message:
        names = (*(LIMITS if self.is_limited else ()), *((LOG_TARGET, *KEPT) if self.is_distinct else ()))
        names = (*names, *(DENSITY if self.is_completed else ()))
        fields = {**{name: KEYS[name].field for name in names}, **self.recalls}
        return Message(
            {
                name: replace(declared, is_optional=declared.is_optional or not declared.beside)
                for name, declared in fields.items()
            }
        )

    @cached_property
    def _written(self) -> Message:
        return Message({name: _freely(KEYS[name].field) for name in self.remembers})

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Arrays of the memory that the task may read."""
        return (*self._needed.fields, *self._recalled.fields)

    def run(self, shard: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
        """Run the task on an agent's rows.

        Raises
        ------
        BroadcastError
            If broadcast or memory are not as declared; nothing has been computed then.
        ContributionError
            If what was computed is not as declared, for example not finite.
        """
        sizes = self.check_broadcast(broadcast, {"d": shard.n_features}, memory, shard.kept.accepted)
        try:
            rows = shard.completed(memory) if self.is_completed else shard
            rows = rows.without_duplicates(memory).on_target_scale(memory) if self.is_distinct else rows
            rows = rows.within_limits({**memory, **broadcast}) if self.is_limited else rows
            # What overflows is found in the results, which must be finite.
            with np.errstate(all="ignore"):
                run = self._open if self.is_opening else self.function
                kept, contribution = run(rows, memory, broadcast)
        except ForeignMemoryError as error:
            raise BroadcastError(f"task {self.name!r} refuses its memory: {error}") from error
        except BasisError as error:
            raise BroadcastError(f"task {self.name!r} refuses its broadcast: {error}") from error
        except ValueError as error:
            if not isinstance(error, SingularSystemError | np.linalg.LinAlgError) and str(error) != NOT_FINITE:
                raise  # invalid rows: the message is for their owner
            raise ContributionError(f"task {self.name!r} cannot be computed: {error}") from error
        self._check_kept(memory, kept, sizes)
        self.check_contribution(contribution, sizes)
        return kept, contribution

    def _open(self, rows: Shard, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
        """Run a task that opens a training; the density of an earlier one is kept until there is a new one."""
        density = {name: memory[name] for name in DENSITY if name in memory}
        incomplete = bool(density)
        try:
            kept, contribution = self.function(rows if density else rows.complete(), memory, broadcast)
        except IncompleteRowsError:
            incomplete = True
            kept, contribution = self.function(rows.without_rows(), memory, broadcast)
        return {**density, **kept}, {**contribution, INCOMPLETE: np.asarray(float(incomplete))}

    def check_broadcast(
        self, broadcast: Bundle, sizes: Sizes, memory: Bundle, accepted: dict[tuple[str, str], Accepted] | None = None
    ) -> Sizes:
        """Refuse a broadcast, or a memory, that is not as declared; the sizes that they determine.

        ``accepted`` is what was accepted of this memory before, and is brought up to date.
        """
        accepted = {} if accepted is None else accepted
        self._check_memory(self._needed, memory, sizes, accepted.setdefault((self.name, "needed"), Accepted()))
        for name, declared in self.needs.items():
            if name not in memory and self._is_asked(name, declared, memory, broadcast):
                self._refuse(BroadcastError, "memory", f"{name!r} is missing: an earlier task must have left it there")
        self._refuse(BroadcastError, "broadcast", self.sent.problem(broadcast, sizes))
        self._check_memory(self._recalled, memory, sizes, accepted.setdefault((self.name, "recalled"), Accepted()))
        return sizes

    def check_contribution(self, contribution: Bundle, sizes: Sizes) -> None:
        """Refuse a contribution, or a total of contributions, that is not as declared."""
        if contribution or not self.may_be_silent:
            self._refuse(ContributionError, "contribution", self.answered.problem(contribution, sizes))

    def most_bytes(self, n_features: int) -> tuple[int, int]:
        """Bytes of the largest broadcast and of the largest contribution for so many features."""
        sizes = largest_sizes(n_features)
        return tuple(payload(fields, sizes, set(fields)) for fields in (self.broadcast, self.contributes))  # type: ignore[return-value]

    def _is_asked(self, name: str, declared: Field, memory: Bundle, broadcast: Bundle) -> bool:
        """Whether the task needs an array of the memory, given what is in the broadcast."""
        sent = self.broadcast.get(name)
        replaced = name in broadcast and sent is not None and (sent.is_optional or sent.beside != "")
        asked = not declared.beside or declared.beside in broadcast
        return asked and not replaced and not any(name in memory for name in declared.unless)

    def _check_memory(self, message: Message, memory: Bundle, sizes: Sizes, before: Accepted) -> None:
        known = {name: memory[name] for name in message.fields if name in memory}
        self._refuse(BroadcastError, "memory", message.problem_of_memory(known, sizes, before))

    def _check_kept(self, before: Bundle, after: Bundle, sizes: Sizes) -> None:
        """Refuse to remember what the task has not declared, or what is not as its owner declares it."""
        written = {name: value for name, value in after.items() if before.get(name) is not value}
        self._refuse(ContributionError, "memory", self._written.problem(written, dict(sizes)))

    def _refuse(self, kind: type[TaskError], part: str, problem: str | None) -> None:
        if problem is not None:
            raise kind(f"task {self.name!r} refuses its {part}: {problem}")


REGISTRY: dict[str, Declared] = {}
"""All tasks by name, once `dsfr.training.tasks.catalog` is imported."""
KEYS: dict[str, Key] = {}
"""All that agents remember, by name."""


def remember(owner: str, fields: Fields, *, transient: bool = False) -> tuple[str, ...]:
    """Declare arrays of the memory, of which the module ``owner`` is the only owner; their names.

    Raises
    ------
    ValueError
        If another module has declared one of them.
    """
    for name, declared in fields.items():
        if name in KEYS and KEYS[name].owner != owner:
            raise ValueError(f"memory {name!r} of {owner} belongs to {KEYS[name].owner} already: choose another name")
        KEYS[name] = Key(owner, declared, transient)
    return tuple(fields)


def forget(memory: Bundle) -> Bundle:
    """Memory without what belongs to an iteration."""
    return {name: value for name, value in memory.items() if name not in KEYS or not KEYS[name].is_transient}


def task(
    *,
    verb: str,
    stage: str,
    reveals: str,
    broadcast: Fields,
    contributes: Fields,
    needs: tuple[str, ...] | Fields = (),
    recalls: tuple[str, ...] | Fields = (),
    remembers: tuple[str, ...] = (),
    limited: bool = True,
    distinct: bool = True,
    silent: bool = False,
    completed: bool = True,
    opening: bool = False,
) -> Callable[[T], T]:
    """Declare a task under the name of its function, which stays as it is.

    Parameters
    ----------
    verb : {"sum", "max", "gather"}
        How contributions are combined.
    stage : str
        Stage of the training, one of `STAGES`, or `OTHER`.
    reveals : str
        What the contribution says about the agent's rows, for the table in ``docs/privacy.md``.
    broadcast, contributes : mapping of str to Field
        Arrays that are sent to the agent, and that it sends back.
    needs, recalls : names, or mapping of str to Field
        Arrays of the memory that the task needs, or uses if they are there. A mapping gives them a shape of their own.
    remembers : tuple of str
        Arrays of the memory that the task may write.
    limited : bool, default=True
        Move rows to the limits of robust scaling, once there are any.
    distinct : bool, default=True
        Leave out rows that were found to be duplicates, and take targets on the scale on which they are learnt.
    silent : bool, default=False
        Agents may contribute nothing.
    completed : bool, default=True
        Replace missing values by what is expected of them, once the density of the rows is known.
    opening : bool, default=False
        A training may begin with it: agents also contribute whether their rows have missing values.

    Raises
    ------
    ValueError
        If the declaration is incomplete, or another task has the name.
    """

    def declare(function: T) -> T:
        name = function.__name__
        if verb not in VERBS or stage not in (*STAGES, OTHER) or not reveals.strip():
            raise ValueError(f"task {name!r} needs a verb of {VERBS}, a stage of {STAGES} and a text for reveals")
        known = REGISTRY.get(name)
        if known is not None and known.function.__module__ != function.__module__:
            raise ValueError(f"task {name!r} is declared in {known.function.__module__} already: choose another name")
        unowned = [key for key in (*needs, *recalls, *remembers) if key not in KEYS]
        if unowned:
            raise ValueError(f"task {name!r} uses memory that no module owns: {', '.join(unowned)}")
        REGISTRY[name] = Declared(
            name=name,
            function=function,
            verb=verb,
            stage=stage,
            reveals=reveals,
            broadcast=broadcast,
            contributes={**contributes, INCOMPLETE: number(at_least(0.0))} if opening else contributes,
            needs=_fields(needs),
            recalls=_fields(recalls),
            remembers=remembers,
            is_limited=limited,
            is_distinct=distinct,
            may_be_silent=silent,
            is_completed=completed,
            is_opening=opening,
        )
        return function

    return declare


@cache
def _message(name: str, n_fields: int) -> Message:
    """The check of the broadcasts of a task; fields are added to it when a penalty is added."""
    return Message(REGISTRY[name].broadcast)


def _freely(declared: Field) -> Field:
    """A field whatever else there is."""
    return replace(declared, is_optional=True, beside="", unless=())


def _fields(names: tuple[str, ...] | Fields) -> Fields:
    return names if isinstance(names, Mapping) else {name: KEYS[name].field for name in names}
