"""An owner that answers: every question is checked against run, round, consent and policy, and written to a journal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dsfr.disclosure import Policy, PolicyError, protected_tasks
from dsfr.disclosure.owner import DECLARE, STATE
from dsfr.disclosure.refusal import OWN
from dsfr.disclosure.table import rule_names
from dsfr.engines import EngineError
from dsfr.engines.agent import Agent, lasting
from dsfr.engines.checkpoint.journal import Journal, Record
from dsfr.engines.checkpoint.memory import read_memory, write_memory
from dsfr.federation.check import Expected, check_table
from dsfr.federation.journal import AuditJournal, JournalError
from dsfr.federation.messages import CHECK, LOAD, SAVE, Message, sealed
from dsfr.federation.roster import Roster, SiteIdentity
from dsfr.io.agent_files import read_shard
from dsfr.io.columns import TableError
from dsfr.storage.atomic import replacing
from dsfr.storage.bundles import Bundle, payload_bytes, to_bytes
from dsfr.training import TASKS

CONFIGURATION = "dsfr.json"
"""File in the folder ``local`` of a kit."""
KEPT_MEMORIES = 3
"""Memories of a fit that an owner keeps."""
NOTES = "answered"
"""File beside them with what the owner never forgets in a fit: what it has answered, above all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteConfiguration:
    """What an owner has decided; it is in its own kit and in no message."""

    name: str
    data: str
    target: str
    roster: str
    policy: str | None = None
    standing_consent: bool = False
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of the table by column."""

    @classmethod
    def read(cls, kit: Path) -> SiteConfiguration:
        """The configuration in a kit."""
        path = kit / "local" / CONFIGURATION
        if not path.is_file():
            raise ValueError(f"{path} is missing: start this site by `dsfr federation agent`")
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def write(self, kit: Path) -> None:
        """Write the configuration into a kit."""
        with replacing(kit / "local" / CONFIGURATION) as file:
            file.write(json.dumps(asdict(self), indent=2).encode())


class OwnerSite:
    """Answers the questions of a coordinator, as long as its own rules allow it."""

    def __init__(self, kit: Path) -> None:
        self._kit, self._configuration = kit, SiteConfiguration.read(kit)
        self._policy = Policy() if self._configuration.policy is None else Policy.read(self._configuration.policy)
        startup = kit / "startup"
        roster = Roster.read(self._configuration.roster)
        self._identity = SiteIdentity(self.name, startup / "client.crt", startup / "client.key", roster)
        self._partners = sorted(set(roster.fingerprints) - {self.name})
        self.journal = AuditJournal(kit / "local" / "journal.jsonl")
        self._agent: Agent | None = None
        self._run, self._fit, self._answered = "", "", (b"", b"")
        self._number = self._refused = 0
        self._has_noted = False
        self._ranges: Mapping[str, Any] = {}

    @property
    def name(self) -> str:
        """Name of the owner."""
        return self._configuration.name

    def answer(self, data: bytes) -> bytes:
        """The answer to a message.

        Raises
        ------
        EngineError
            If the owner refuses; the journal has the reason.
        """
        try:
            message = Message.of(data)
            if data == self._answered[0] and data:
                return self._answered[1]  # the answer was lost on its way
            answer = sealed(to_bytes(self._checked_answer(message)))
        except (EngineError, ValueError, OSError) as error:
            self._refused += 1
            self.journal.append("refused", run=self._run, reason=str(error)[:500])
            raise self._told(error) from None
        self._answered = data, answer
        return answer

    def _told(self, error: Exception) -> EngineError:
        """What the coordinator hears of an error: of the table and files neither names nor values."""
        if isinstance(error, EngineError):
            return error
        if isinstance(error, JournalError):
            return EngineError(
                f"agent {self.name!r}: its journal was changed; `dsfr federation audit` there says where"
            )
        if isinstance(error, TableError | OSError):
            return EngineError(
                f"agent {self.name!r}: its table does not fit the plan, or cannot be read. Its journal says why, and "
                "`dsfr federation check` with the kit of a lead what does not fit"
            )
        return EngineError(f"agent {self.name!r}: {error}")

    def _checked_answer(self, message: Message) -> Bundle:
        if message.task == CHECK:
            return self._check(message.about)
        if message.task == STATE and message.run != self._run:
            self._begin(message)
        if message.run != self._run or self._agent is None:
            raise PolicyError(f"run {message.run!r} is not the one that was begun here")
        if self._refused >= self._policy.max_refusals:
            raise EngineError(
                f"policy rule 'refusals': {self._refused} questions of this fit were refused, and max_refusals is "
                f"{self._policy.max_refusals}: it has ended here"
            )
        if message.number != self._number + 1:
            raise PolicyError(f"question {message.number} does not follow question {self._number} of this run")
        self._number = message.number
        self._check_ranges(message)
        if message.task in (SAVE, LOAD):
            return self._remember(message)
        before = self._agent.memory
        contribution = self._agent.run(message.task, message.broadcast)
        self._note(before)
        about = {name: list(array.shape) for name, array in contribution.items()}
        size, digest = payload_bytes(contribution), sha256(to_bytes(contribution)).hexdigest()
        self.journal.append(
            "sent",
            run=self._run,
            number=message.number,
            task=message.task,
            rules=rule_names(message.task),
            arrays=about,
            bytes=size,
            digest=digest,
        )
        return contribution

    def _check_ranges(self, message: Message) -> None:
        """Refuse other ranges than those of the plan: rules are about the grid of declared ranges."""
        if message.task not in DECLARE:
            return
        for name, planned in (("low", "lower"), ("high", "upper")):
            asked = message.broadcast.get(name)
            if asked is None or asked.tolist() != list(self._ranges[planned]):
                raise PolicyError(f"{name!r} has other ranges than the plan of the fit, which declares {planned!r}")

    def _check(self, plan: Mapping[str, Any]) -> Bundle:
        """Yes and no about the own table; plans that differ in their table are counted, because ranges can bisect."""
        expected, path = Expected.of(plan), Path(self._configuration.data)
        self._check_target(expected)
        about = _digest({name: plan[name] for name in ("columns", "ranges")})[:16]
        checked = [entry for entry in self.journal.entries() if entry["event"] == "checked"]
        seen = {entry["table"] for entry in checked if entry["data"] == str(path)}
        if about not in seen and len(seen) >= self._policy.max_checks:
            raise PolicyError(
                f"policy rule 'checks': {len(seen)} checks of {path.name} with other columns or ranges, and max_checks "
                f"is {self._policy.max_checks}: agree on ranges out of band"
            )
        answers = check_table(path, expected, self._policy, self._configuration.units)
        self.journal.append("checked", table=about, data=str(path), answers=answers)
        return {"answers": np.asarray(answers, dtype=np.int64)}

    def _check_target(self, expected: Expected) -> None:
        """Refuse another target than this owner has agreed to."""
        target = expected.columns.target
        if target != self._configuration.target:
            raise PolicyError(f"the target {target!r} is not {self._configuration.target!r}, as agreed here")

    def _begin(self, message: Message) -> None:
        """Admit a fit: its columns, the consent to it, and the number of fits before it."""
        about = message.about
        expected = Expected.of(about)
        self._check_target(expected)
        expected.check_units(self._configuration.units)
        self._policy.check_columns(expected.columns.features)
        self._fit = plan_digest(about)
        self._check_consent(about)
        path = Path(self._configuration.data)
        fits = self.journal.count("fit", data=str(path))
        if fits >= self._policy.max_fits:
            raise PolicyError(
                f"policy rule 'fits': {fits} fits on {path.name}, and max_fits is {self._policy.max_fits}"
            )
        shard = read_shard(self.name, path, expected.columns)
        to = {"coordinator": _coordinator_of(self._kit), "partners": self._partners}
        policy = _digest(asdict(self._policy))
        self.journal.append("fit", run=message.run, plan=self._fit, data=str(path), policy=policy, **to)
        tasks = protected_tasks(TASKS, policy=self._policy, masked=True, identity=self._identity)
        self._agent = Agent(self.name, shard, tasks, serialize=True)
        self._run, self._number, self._refused, self._has_noted = message.run, 0, 0, False
        self._ranges = about["ranges"]

    def _check_consent(self, about: Mapping[str, Any]) -> None:
        """Refuse a fit that the owner has not agreed to; the journal then shows the plan."""
        if self._configuration.standing_consent or self.journal.count("consent", plan=self._fit):
            return
        self.journal.append("asked", plan=self._fit, about=json.dumps(dict(about), sort_keys=True))
        raise PolicyError(
            f"{self.name} has not agreed to this fit: look at it with `dsfr federation audit`, and agree with "
            f"`dsfr federation consent --kit KIT {self._fit}`"
        )

    def _remember(self, message: Message) -> Bundle:
        """Save or load the own memory, which stays in the kit."""
        assert self._agent is not None
        number, folder = int(message.about["number"]), self._folder()
        if message.task == LOAD:
            self._load(folder / f"{number:08d}")
            return {}
        write_memory(folder / f"{number:08d}", self._agent.memory)
        # Others are notes, and what a process that was killed had not written to its end.
        saved = sorted(path for path in folder.iterdir() if path.name.isdecimal())
        later = [path for path in saved if int(path.name) > number]  # of an earlier attempt
        for path in (*later, *[path for path in saved if path not in later][:-KEPT_MEMORIES]):
            path.unlink()
        return {}

    def _folder(self) -> Path:
        folder = self._kit / "local" / "memories" / self._fit
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def _load(self, path: Path) -> None:
        """Restore a memory, and all noted since. Keys are agreed anew: old ones would mask two answers alike."""
        assert self._agent is not None
        notes = Journal(path.with_name(NOTES))
        saved = {name: array for name, array in read_memory(path).items() if not name.startswith(OWN)}
        for record in notes.read():
            saved |= record.arrays
        self._agent.restore(saved)
        notes.replace([Record(lasting(self._agent.memory))])
        self._has_noted = True

    def _note(self, before: Bundle) -> None:
        """Write what an answer adds to the lasting memory into the kit, before it leaves; a new fit begins anew."""
        assert self._agent is not None
        kept = lasting(self._agent.memory)
        new = {name: kept[name] for name in kept if name not in before or not np.array_equal(kept[name], before[name])}
        if not new:
            return
        notes = Journal(self._folder() / NOTES)
        if self._has_noted:
            notes.append(Record(new))
        else:
            notes.replace([Record(kept)])
        self._has_noted = True


def plan_digest(about: Mapping[str, Any]) -> str:
    """Identifies what a fit asks for: settings, columns and ranges."""
    return _digest(dict(about))[:16]


def _coordinator_of(kit: Path) -> str:
    """Where the answers of a kit go: host and port of its coordinator, or nothing outside of NVFlare."""
    path = kit / "startup" / "fed_client.json"
    servers = json.loads(path.read_text(encoding="utf-8")).get("servers", []) if path.is_file() else []
    return ", ".join(str(server.get("service", {}).get("target")) for server in servers)


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
