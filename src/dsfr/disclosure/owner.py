"""The owner's side: a task runs if the policy allows it, and what leaves is masked if the owner says so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dsfr.core.scaling.affine import Ranges
from dsfr.disclosure.budget import SPENT, Budget
from dsfr.disclosure.function_rules import NO_RANGES
from dsfr.disclosure.history import answered, differences, with_question
from dsfr.disclosure.masks import KEY_BYTES, mask, new_key, pair_secrets, public_key, question
from dsfr.disclosure.policy import Policy
from dsfr.disclosure.refusal import KEPT, OWN, PolicyError
from dsfr.disclosure.ring import LARGEST, PARTS, add, encode, to_parts
from dsfr.disclosure.rules import DisclosureRule, Request
from dsfr.disclosure.statements import Identity, Statement, run_of, unpack_statements
from dsfr.disclosure.table import EVERY_TASK, NOT_LISTED, TABLE, TaskRules
from dsfr.disclosure.tails import DECLARED, find_tails, within_tails
from dsfr.engines import RefusedError, Task, Tasks
from dsfr.engines.agent import COUNTED, lasting
from dsfr.storage.bundles import Bundle, check_bundle
from dsfr.training.tasks.registry import REGISTRY

STATE, ADMIT = "state_labels_and_key", "admit_owners"
"""The two tasks that open a fit."""
DECLARE = ("row_moments", "clipped_moments")
"""Tasks that declare the ranges of a fit; they stay the same until its end."""
ROUND = "mask_round"
"""Number of a masked round in its broadcast."""
CHECK = "mask_check"
"""A number 1 in every masked contribution: the sum is the number of owners if and only if all masks cancel."""
ROUNDS = COUNTED + "rounds"
"""Rounds of a fit that were answered; owners that admit each other again go on counting."""
PREFIXES = {"float64": "f_", "int64": "i_", "uint64": "u_", "uint8": "b_"}
"""Of names of masked arrays, by the type of the numbers."""


class RuleError(PolicyError, RefusedError):
    """A question breaks a rule that depends on the owner's rows: another question may be answered."""


@dataclass(frozen=True, slots=True)
class ProtectedTask:
    """A task behind a policy, masks or both. Pickled with the policy, so workers of a cluster need no file."""

    name: str
    task: Task
    policy: Policy | None = None
    masked: bool = False
    identity: Identity | None = None

    def __call__(self, shard: Any, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
        """Memory and contribution of an owner."""
        kept = {name: value for name, value in memory.items() if name.startswith(KEPT)}
        rest = {name: value for name, value in memory.items() if not name.startswith(KEPT)}
        if self.name == STATE:
            found, contribution = self._state(shard)
            return {**rest, **lasting(kept), **found}, contribution
        if self.name == ADMIT:
            found, contribution = self._admit(kept, broadcast)
            return {**rest, **lasting(kept), **found}, contribution
        if OWN + "owners" not in kept:
            raise PolicyError(f"task {self.name!r} is refused: owners have not admitted each other to this fit")
        kept = self._count_round(kept, broadcast)
        asked = {name: value for name, value in broadcast.items() if name != ROUND}
        kept |= self._declare(shard, rest, asked, kept)
        rest, contribution, found = self._run(shard, rest, asked, kept)
        kept |= found | self._spent(kept)
        return {**rest, **kept}, self._mask(kept, asked, contribution) if self.masked else contribution

    def _run(self, shard: Any, memory: Bundle, broadcast: Bundle, kept: Bundle) -> tuple[Bundle, Bundle, Bundle]:
        """Memory of the task, its contribution, and what is kept of the question."""
        if self.masked and self.name in REGISTRY and REGISTRY[self.name].verb != "sum":
            raise PolicyError(f"task {self.name!r} is refused: it is no sum, and sums alone leave this owner")
        if self.policy is None:
            return *self.task(shard, memory, broadcast), {}
        rules = TABLE.get(self.name, NOT_LISTED)
        if rules.refused:
            raise PolicyError(f"task {self.name!r} is refused: {rules.refused}")
        budget = Budget(self.name, self.policy, rules.noise, kept)
        budget.check(masked=self.masked)
        REGISTRY[self.name].check_broadcast(broadcast, {"d": shard.n_features}, memory)
        broadcast = broadcast if rules.tightened is None else rules.tightened(self.policy, broadcast)
        declared = Ranges(*(kept[name] for name in DECLARED)) if DECLARED[0] in kept else None
        shard = shard if rules.is_exact else within_tails(shard, kept)
        rows = shard.completed(memory) if REGISTRY[self.name].is_completed else shard
        labels, before = int(kept[OWN + "labels"]), answered(kept)
        request = Request(self.policy, rows, memory, broadcast, labels, {}, declared, self.name, before)
        self._enforce((*EVERY_TASK, *rules.before), request)
        if declared is None and not rules.is_exact:  # sums over rows as they are, and later over moved ones
            raise PolicyError(f"task {self.name!r} is refused: {NO_RANGES}")
        after, contribution = self.task(shard, memory, broadcast)
        self._enforce(rules.after, replace(request, memory=after, contribution=contribution))
        answer = budget.with_noise(contribution, shard.n_features)
        return after, answer, with_question(request) if _is_compared(rules) else {}

    def _declare(self, shard: Any, memory: Bundle, asked: Bundle, kept: Bundle) -> Bundle:
        """Ranges that hold until the end of the fit, and the limits that the own rows have on their grid."""
        if self.name not in DECLARE or DECLARED[0] in kept:
            return {}
        REGISTRY[self.name].check_broadcast(asked, {"d": shard.n_features}, memory)
        found = {DECLARED[0]: asked["low"], DECLARED[1]: asked["high"]}
        if self.policy is None or self.policy.epsilon is not None:
            return found
        return found | find_tails(self.policy, shard, Ranges(asked["low"], asked["high"]))

    def _spent(self, kept: Bundle) -> Bundle:
        """Share of the fit's privacy that is spent with this task; an owner without a budget counts too."""
        noise = TABLE.get(self.name, NOT_LISTED).noise
        before = float(kept.get(SPENT, np.asarray(0.0)))
        return {} if noise is None else {SPENT: np.asarray(before + noise.budget)}

    def _enforce(self, rules: tuple[DisclosureRule, ...], request: Request) -> None:
        for rule in rules:
            problem = rule(request)
            if problem is not None:
                raise RuleError(f"task {self.name!r} is refused by policy rule {rule.__name__!r}: {problem}")

    def _count_round(self, kept: Bundle, broadcast: Bundle) -> Bundle:
        """Count the round; numbers of masked rounds only grow, so none is answered twice."""
        rounds = int(kept.get(ROUNDS, np.asarray(0))) + 1
        if self.policy is not None and rounds > self.policy.max_rounds:
            raise PolicyError(
                f"task {self.name!r} is refused by policy rule 'rounds': this is round {rounds} of the fit, and "
                f"max_rounds is {self.policy.max_rounds}"
            )
        kept = {**kept, ROUNDS: np.asarray(rounds)}
        if self.masked:
            number, last = int(broadcast.get(ROUND, np.asarray(0))), int(kept[OWN + "last"])
            if number <= last:
                raise PolicyError(f"task {self.name!r} is refused: round {number} is not after round {last}")
            kept[OWN + "last"] = np.asarray(number)
        return kept

    def _state(self, shard: Any) -> tuple[Bundle, Bundle]:
        """New keys, and the statement to other owners."""
        labels = 0 if self.policy is None else _stated_labels(self.policy, shard)
        private = new_key() if self.masked else b""
        statement = Statement(labels, public_key(private) if self.masked else b"")
        if self.identity is not None:
            unsigned = Statement(labels, statement.public_key, self.identity.name)
            statement = Statement(labels, unsigned.public_key, unsigned.name, self.identity.sign(unsigned.signed))
        kept = {OWN + "private": _array(private), OWN + "statement": _array(statement.signed)}
        return kept, statement.bundle()

    def _admit(self, kept: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
        """Check who takes part, and agree on keys with each."""
        if OWN + "private" not in kept:
            raise PolicyError("owners are admitted after they have stated their labels and keys, once")
        try:
            statements = unpack_statements(broadcast)
            for problem in self._problems(statements, kept[OWN + "statement"].tobytes()):
                raise PolicyError(f"owners are refused by policy rule 'partners': {problem}")
            if self.identity is not None:
                self.identity.check(statements)
        except ValueError as error:
            raise PolicyError(f"owners are refused: {error}") from None
        labels = sum(statement.labels for statement in statements)
        counters = {"owners": len(statements), "labels": labels, "last": 0}
        found: Bundle = {OWN + name: np.asarray(value, dtype=np.int64) for name, value in counters.items()}
        if self.masked:
            found |= _agreed_keys(kept[OWN + "private"].tobytes(), statements)
        return found, {"admitted": np.asarray(1.0)}

    def _problems(self, statements: list[Statement], own: bytes) -> Iterator[str]:
        if [one.signed for one in statements].count(own) != 1 and (self.masked or self.identity is not None):
            yield "the own statement is not among those of the coordinator, exactly once"
        least = 1 if self.policy is None else self.policy.min_partners
        if len(statements) - 1 < least:
            yield f"{len(statements) - 1} partners, and at least {least} are needed"
        keys = {one.public_key for one in statements}
        if self.masked and (len(keys) < len(statements) or {len(key) for key in keys} != {KEY_BYTES}):
            yield "public keys are missing, or not all different"

    def _mask(self, kept: Bundle, broadcast: Bundle, contribution: Bundle) -> Bundle:
        """The contribution with the sum of all masks of this owner added to it, modulo 2^128."""
        check_bundle(contribution)
        keys = [key.tobytes() for key in kept[OWN + "keys"]]
        secrets = [secret.tobytes() for secret in kept[OWN + "secrets"]]
        run, number = kept[OWN + "run"].tobytes(), int(kept[OWN + "last"])
        about = question(run, number, self.name, broadcast, keys)
        whole = {**contribution, CHECK: np.asarray(1, dtype=np.int64)}
        _check_sizes(self.name, whole, len(keys))
        sizes = [whole[name].size for name in sorted(whole)]
        high, low = mask(secrets, int(kept[OWN + "index"]), about, sum(sizes))
        masked, start = Bundle(), 0
        for name, size in zip(sorted(whole), sizes, strict=True):
            array, part = whole[name], slice(start, start + size)
            start += size
            parts = to_parts(*add(encode(array.ravel()), (high[part], low[part])))
            masked[PREFIXES[array.dtype.name] + name] = parts.reshape(*array.shape, PARTS)
        return masked


def protected_tasks(
    tasks: Tasks, *, policy: Policy | None = None, masked: bool = False, identity: Identity | None = None
) -> Tasks:
    """Tasks behind a policy, masks or both, and the two that open a fit."""
    opening: dict[str, Task] = dict.fromkeys((STATE, ADMIT), _no_task)
    return {name: ProtectedTask(name, task, policy, masked, identity) for name, task in {**tasks, **opening}.items()}


def _no_task(shard: Any, memory: Bundle, broadcast: Bundle) -> tuple[Bundle, Bundle]:
    """Opening tasks have no task behind them."""
    return memory, {}


def _stated_labels(policy: Policy, shard: Any) -> int:
    """Labels of an owner in whole multiples of the smallest number, if it has enough rows and labels."""
    if shard.has_weights:
        raise PolicyError(
            "the fit is refused by policy rule 'weights': labels have weights, and a sum in which one label weighs "
            "more than all others is that label. Leave out sample_weight"
        )
    if shard.n_samples < policy.min_rows:
        raise PolicyError(
            f"the fit is refused by policy rule 'rows': {shard.n_samples} own rows, and min_rows is {policy.min_rows}. "
            "Leave this owner out, or give it more rows"
        )
    if 0 < shard.n_labeled < policy.min_labels:
        raise PolicyError(
            f"the fit is refused by policy rule 'labels': {shard.n_labeled} own labels, and min_labels is "
            f"{policy.min_labels} (or none). Label more rows, or take part without labels"
        )
    return int(shard.n_labeled) // policy.min_labels * policy.min_labels


def _is_compared(rules: TaskRules) -> bool:
    """Whether later questions are compared with those of a task."""
    return differences in (*rules.before, *rules.after)


def _agreed_keys(private: bytes, statements: list[Statement]) -> Bundle:
    keys = sorted(statement.public_key for statement in statements)
    secrets = pair_secrets(private, keys)
    return {
        OWN + "keys": np.stack([_array(key) for key in keys]),
        OWN + "secrets": np.stack([_array(secret) for secret in secrets]),
        OWN + "index": np.asarray(keys.index(public_key(private)), dtype=np.int64),
        OWN + "run": _array(run_of(statements)),
    }


def _check_sizes(task: str, contribution: Bundle, n_owners: int) -> None:
    for name, array in contribution.items():
        if array.size and float(np.abs(array).max()) * n_owners >= LARGEST:
            raise PolicyError(f"task {task!r}: {name!r} has numbers that are too large for masked sums, 4.6e18 in all")


def _array(data: bytes) -> Any:
    return np.frombuffer(data, dtype=np.uint8)
