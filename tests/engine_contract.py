"""The contract of an engine, as laws that hold for every engine; `tests/test_engine_contract.py` runs them.

A law is a function of an engine's kind and a seed. Ranks of an MPI job run the same laws (`tests/mpi_program.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dsfr.engines import BaseEngine, EngineError, InProcessEngine
from dsfr.engines.checkpoint.engine import with_checkpoint
from dsfr.engines.gossip.residues import BYTES
from dsfr.training import TASKS, RangeScaling, make_shards, train
from tests.tables import SumsAlone, make_settings, make_table, owners_of

N_AGENTS = 3
NAMES = [f"site-{number}" for number in range(N_AGENTS)]


@dataclass(frozen=True)
class SumTraffic:
    """What the ledger counts for one sum."""

    rounds: int = 1
    messages_up: int = N_AGENTS
    """To the coordinator, or to neighbors."""
    messages_down: int = N_AGENTS
    number_bytes: int = 8
    between_agents: bool = False
    """Whether both ends of a message are agents."""
    opening_rounds: int = 0
    """Rounds before the first task."""


TO_COORDINATOR = SumTraffic()
MASKED = SumTraffic(number_bytes=32, opening_rounds=2)
ALONG_TREE = SumTraffic(messages_up=N_AGENTS - 1, messages_down=N_AGENTS - 1, between_agents=True)
BY_GOSSIP = SumTraffic(rounds=2, messages_up=4, messages_down=0, number_bytes=BYTES, between_agents=True)
"""On a path of three agents: two exchanges, and a message each way over both links."""


@dataclass(frozen=True)
class Kind:
    """A kind of engine: how it is made from shards and tasks, and which messages it counts."""

    make: Callable[[dict, dict], BaseEngine]
    folder: Path
    """For checkpoints."""
    traffic: SumTraffic = TO_COORDINATOR
    checkpointed: bool = False
    only_sums: bool = False
    """Whether maxima and gathered contributions are refused."""
    numbers: Any = field(default_factory=count)

    def __call__(self, shards: dict, tasks: dict) -> Any:
        engine = self.make(shards, tasks)
        return with_checkpoint(engine, self.new_folder(), {}) if self.checkpointed else engine

    def new_folder(self) -> Path:
        return self.folder / str(next(self.numbers))

    def with_checkpoints(self) -> Kind:
        return replace(self, checkpointed=True)


def shards_of(seed: int, n_agents: int = N_AGENTS) -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return {
        f"site-{number}": {"number": number, "table": rng.normal(size=(2, 3)), "counts": rng.integers(0, 100, 4)}
        for number in range(n_agents)
    }


def contribution_of(shard, broadcast):
    """Floats, integers, a scalar and an array without elements."""
    return {
        "table": shard["table"] * broadcast["factor"],
        "counts": shard["counts"],
        "number": np.asarray(float(shard["number"])),
        "nothing": np.empty(0),
    }


def mixed(shard, memory, broadcast):
    return memory, contribution_of(shard, broadcast)


def remember(shard, memory, broadcast):
    """Keeps the number of calls, the last broadcast, and for one call only its parity."""
    calls = memory.get("calls", np.asarray(0.0)) + 1.0
    parity = {"odd": np.asarray(1.0)} if calls % 2 else {}
    found = {"calls": calls, "last": memory.get("last", np.zeros(2)), "odd": memory.get("odd", np.asarray(0.0))}
    owner = memory.get("owner", np.asarray(float(shard["number"])))
    return {"calls": np.asarray(calls), "last": broadcast["x"], "owner": owner, **parity}, {
        **{name: np.asarray(value) for name, value in found.items()},
        "foreign": np.asarray(float(owner != shard["number"])),
    }


def some(shard, memory, broadcast):
    return memory, {"number": np.asarray(float(shard["number"]))} if shard["number"] != 1 else {}


def long(shard, memory, broadcast):
    return memory, {"x": np.ones(int(broadcast["n"]))}


def fail(shard, memory, broadcast):
    if shard["number"] == 1:
        raise ZeroDivisionError("nothing to divide by")
    return memory, {"x": np.ones(1)}


def uneven(shard, memory, broadcast):
    return memory, {"x": np.ones(1 + shard["number"])}


def not_finite(shard, memory, broadcast):
    return memory, {"x": np.array([np.nan if shard["number"] == 1 else 1.0])}


def not_an_array(shard, memory, broadcast):
    return memory, {"x": 1.0}


def identify(shard, memory, broadcast):
    return memory, {"rows": np.asarray(shard["number"] + 1)}


TOYS = {
    function.__name__: function
    for function in (mixed, remember, some, long, fail, uneven, not_finite, not_an_array, identify)
}
FACTOR = {"factor": np.asarray(2.0)}


def reductions_are_those_of_all_contributions(kind: Kind, seed: int) -> None:
    shards = shards_of(seed)
    engine, parts = kind(shards, TOYS), [contribution_of(shard, FACTOR) for shard in shards.values()]
    for _ in range(2):  # a second round may use a faster exchange
        total = engine.sum("mixed", FACTOR)
        for name in parts[0]:
            stacked = np.stack([part[name] for part in parts])
            np.testing.assert_allclose(total[name], stacked.sum(axis=0), rtol=1e-12, atol=1e-12)
            assert total[name].dtype == parts[0][name].dtype
        if kind.only_sums:
            continue
        highest, gathered = engine.max("mixed", FACTOR), engine.gather("mixed", FACTOR)
        for name in parts[0]:
            np.testing.assert_array_equal(highest[name], np.stack([part[name] for part in parts]).max(axis=0))
            assert total[name].dtype == highest[name].dtype == parts[0][name].dtype
            for found, part in zip(gathered, parts, strict=True):
                np.testing.assert_array_equal(found[name], part[name])


def gather_omits_empty_contributions(kind: Kind, seed: int) -> None:
    engine = kind(shards_of(seed), TOYS)
    if kind.only_sums:
        for verb in (engine.max, engine.gather):
            with pytest.raises(EngineError, match="'some' is refused: sums alone leave the owners"):
                verb("some", {})
        return
    assert [float(part["number"]) for part in engine.gather("some", {})] == [0.0, 2.0]
    assert engine.ledger.entries["some", "gather"].reveals_single_contributions


def names_are_those_of_the_shards(kind: Kind, seed: int) -> None:
    engine = kind(shards_of(seed), TOYS)
    engine.sum("mixed", FACTOR)
    assert engine.n_agents == N_AGENTS
    assert sorted(engine.agents) == sorted(engine.present) == NAMES
    assert engine.own_agents
    assert set(engine.own_agents) <= set(NAMES)


def memory_is_private_and_replaced_in_every_round(kind: Kind, seed: int) -> None:
    engine = kind(shards_of(seed), TOYS)
    broadcasts = np.random.default_rng(seed).normal(size=(4, 2))
    for number, x in enumerate(broadcasts):
        is_max = number % 2 == 1 and not kind.only_sums
        total = (engine.max if is_max else engine.sum)("remember", {"x": x})
        times = 1 if is_max else N_AGENTS
        assert total["calls"] == (number + 1) * times
        assert total["foreign"] == 0.0
        assert total["odd"] == (number % 2) * times  # kept for one call, then dropped
        np.testing.assert_allclose(total["last"], times * (broadcasts[number - 1] if number else np.zeros(2)))


def the_ledger_counts_rounds_messages_and_bytes(kind: Kind, seed: int) -> None:
    engine = kind(shards_of(seed), TOYS)
    totals = []
    for n in (5, 5, 15, 15):  # two rounds each: a new layout takes MPI an agreement, a new tree takes messages
        engine.sum("long", {"n": np.asarray(n)})
        totals.append(_totals(engine))
    short, traffic = totals[1] - totals[0], totals[3] - totals[2]
    rounds, messages, up, down, agent_rounds, sent, received = traffic
    wanted = kind.traffic
    assert (rounds, messages) == (wanted.rounds, wanted.messages_up + wanted.messages_down)
    assert up - short[2] == 10 * wanted.number_bytes * wanted.messages_up
    assert agent_rounds == N_AGENTS * wanted.rounds
    assert (sent, received) == ((up + down, up + down) if wanted.between_agents else (up, down))
    entry = engine.ledger.entries["long", "sum"]
    assert not entry.reveals_single_contributions
    assert set(entry.agents) == set(NAMES)
    if engine.has_coordinator:  # else learning the graph and agreement between ranks take rounds too
        assert entry.rounds == 4
        # The checkpoint identifies the rows in its own round.
        assert engine.ledger.rounds == 4 + kind.checkpointed + wanted.opening_rounds
    assert "long" in str(engine.ledger)


def _totals(engine):
    entry = engine.ledger.entries["long", "sum"]
    agents = [(one.rounds, one.bytes_sent, one.bytes_received) for one in entry.agents.values()]
    return np.array([entry.rounds, entry.messages, entry.bytes_up, entry.bytes_down, *np.sum(agents, axis=0)])


def errors_name_the_task_or_the_cause_and_later_rounds_work(kind: Kind, seed: int) -> None:
    engine = kind(shards_of(seed), TOYS)
    for task, match in {
        "halve": r"unknown task 'halve'.*mixed",
        "fail": r"(?s)nothing to divide by.*agent 'site-1'|agent 'site-1': ZeroDivisionError: nothing to divide by",
        "uneven": "disagree.*'uneven'",
        "not_finite": "NaN",
        "not_an_array": "only numpy arrays",
    }.items():
        for verb in ("sum",) if kind.only_sums else ("sum", "max"):
            with pytest.raises((EngineError, ValueError, ZeroDivisionError), match=match):
                getattr(engine, verb)(task, {})
    assert engine.sum("long", {"n": np.asarray(1)})["x"] == N_AGENTS
    assert engine.sum("remember", {"x": np.zeros(2)})["calls"] == N_AGENTS


def no_shards_are_an_error(kind: Kind, seed: int) -> None:
    with pytest.raises((ValueError, EngineError), match="at least one agent"):
        kind({}, TOYS)


TRAININGS = [{"solver": "admm", "max_rounds": 6, "n_rules": 2}, {"solver": "few-rounds", "n_rules": 2}]


def trainings_give_the_model_of_one_process(kind: Kind, seed: int) -> None:
    X, shards = real_shards(seed)
    for settings in trainings(X, shards, seed, only_sums=kind.only_sums):
        reference = SumsAlone if kind.only_sums else InProcessEngine
        expected, found = (train(make(shards, TASKS), settings) for make in (reference, kind))
        np.testing.assert_allclose(found.predictor.predict(X), expected.predictor.predict(X), rtol=0, atol=1e-8)
        assert len(found.history) == len(expected.history)


def missing_values_and_levels_are_completed_as_in_one_process(kind: Kind, seed: int) -> None:
    """Rows have gaps, and the indicators of a category of three levels."""
    X, _, y = make_table(seed, n_rows=60)
    rng = np.random.default_rng(seed)
    level = np.where(rng.random(len(y)) < 0.1, np.nan, rng.integers(3, size=len(y)))
    indicators = np.where(np.isnan(level)[:, None], np.nan, level[:, None] == np.arange(3.0))
    rows = np.column_stack([np.where(rng.random(X.shape) < 0.2, np.nan, X), indicators])
    shards = make_shards(rows, y, owners_of(seed, len(y), N_AGENTS))
    full = np.column_stack([X, np.nan_to_num(indicators)])
    chosen = {"solver": "sums", "n_rules": 2}
    if kind.only_sums:
        low, high = np.append(X.min(axis=0), np.zeros(3)), np.append(X.max(axis=0), np.ones(3))
        chosen |= {"scaling": RangeScaling(lower=low, upper=high, target_range=(0.0, 100.0))}
    settings = make_settings(seed=seed, **chosen)
    reference = SumsAlone if kind.only_sums else InProcessEngine
    expected, found = (train(make(shards, TASKS), settings).mixture for make in (reference, kind))
    for name, array in expected.density.arrays().items():
        np.testing.assert_allclose(found.density.arrays()[name], array, rtol=1e-8, atol=1e-8)
    for given in (full, rows):
        for groups in ((), ((3, 4, 5),)):
            one, other = (replace(mixture, categories=groups).predict(given) for mixture in (expected, found))
            np.testing.assert_allclose(other, one, rtol=0, atol=1e-7)


def trainings(X, shards, seed, *, only_sums):
    """Settings of trainings; where sums alone leave the agents, with declared ranges."""
    if not only_sums:
        return [make_settings(seed=seed, **chosen) for chosen in TRAININGS]
    scaling = RangeScaling(lower=X.min(axis=0), upper=X.max(axis=0), target_range=(0.0, 100.0))
    return [make_settings(seed=seed, n_rules=2, scaling=scaling, **chosen) for chosen in SUMS_ALONE]


SUMS_ALONE = [{"solver": "admm", "max_rounds": 6}, {"solver": "sums", "tune": "evidence"}, {"solver": "conjugate"}]


def real_shards(seed):
    X, _, y = make_table(seed, n_rows=60)
    return X, make_shards(X, y, owners_of(seed, len(y), N_AGENTS))


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def mortal(engine, n_rounds):
    """The engine, which is killed after so many rounds: before the result is known, as a kill does."""
    left = iter(range(n_rounds))

    def dying(verb):
        def run(*arguments, **options):
            result = verb(*arguments, **options)
            if next(left, None) is None:
                raise Killed
            return result

        return run

    for name in ("sum", "max", "gather"):
        setattr(engine, name, dying(getattr(engine, name)))
    return engine


def watched(engine):
    """The names of the tasks that the engine runs from now on."""
    ran, run = [], engine._run_round

    def watch(task, verb, broadcast):
        ran.append(task)
        return run(task, verb, broadcast)

    engine._run_round = watch
    return ran


def killed_rounds_resume_where_they_were(kind: Kind, seed: int) -> None:
    """Every round gives a result that depends on its number and on the memory of the round before."""
    rng, folder = np.random.default_rng(seed), kind.new_folder()
    broadcasts, every, n_killed = rng.normal(size=(7, 2)), int(rng.integers(1, 4)), int(rng.integers(1, 6))

    def rounds(engine):
        return [engine.sum("remember", {"x": x}) for x in broadcasts]

    expected = rounds(kind.make(shards_of(seed), TOYS))
    with suppress(Killed):  # the first round of the engine identifies the rows
        engine = mortal(kind.make(shards_of(seed), TOYS), 1 + n_killed)
        rounds(with_checkpoint(engine, folder, {}, every=every))
    engine = kind.make(shards_of(seed), TOYS)
    ran = watched(engine)
    resumed = with_checkpoint(engine, folder, {}, resume=True, every=every)
    assert resumed.n_replayed == n_killed - n_killed % every
    for found, wanted in zip(rounds(resumed), expected, strict=True):
        for name in wanted:
            np.testing.assert_array_equal(found[name], wanted[name])
    assert ran.count("remember") == len(broadcasts) - resumed.n_replayed


def a_killed_training_resumes_to_the_same_model(kind: Kind, seed: int) -> None:
    X, shards = real_shards(seed)
    settings, folder = trainings(X, shards, seed, only_sums=kind.only_sums)[0], kind.new_folder()
    expected = train(kind.make(shards, TASKS), settings)
    with suppress(Killed):
        train(with_checkpoint(mortal(kind.make(shards, TASKS), 9), folder, {}), settings)
    resumed = with_checkpoint(kind.make(shards, TASKS), folder, {}, resume=True)
    assert resumed.n_replayed == 8
    np.testing.assert_array_equal(train(resumed, settings).predictor.predict(X), expected.predictor.predict(X))
    assert resumed.only_sums == kind.only_sums


def every_agent_ends_with_the_model_of_the_coordinator(kind: Kind, seed: int) -> None:
    X, shards = real_shards(seed)
    expected = train(InProcessEngine(shards, TASKS), make_settings(seed=seed, solver="sums", n_rules=2)).predictor
    engine = kind(shards, TASKS)
    copies = train(engine, make_settings(seed=seed, solver="decentralized", n_rules=2)).copies
    assert not engine.has_coordinator
    assert set(copies) == set(engine.own_agents)
    for copy in copies.values():
        np.testing.assert_allclose(copy.predict(X), expected.predict(X), rtol=0, atol=1e-8)


PATH = {"site-0": ("site-1",), "site-1": ("site-0", "site-2"), "site-2": ("site-1",)}
"""Links of the graphs here: a path, whose middle agent has two neighbors."""

LAWS = (
    reductions_are_those_of_all_contributions,
    gather_omits_empty_contributions,
    names_are_those_of_the_shards,
    memory_is_private_and_replaced_in_every_round,
    the_ledger_counts_rounds_messages_and_bytes,
    errors_name_the_task_or_the_cause_and_later_rounds_work,
    no_shards_are_an_error,
    trainings_give_the_model_of_one_process,
    missing_values_and_levels_are_completed_as_in_one_process,
)
RESUMING = (killed_rounds_resume_where_they_were, a_killed_training_resumes_to_the_same_model)
"""Laws of engines that are not checkpointed already."""


def laws_of(*, gossip: bool, checkpointed: bool) -> tuple[Callable[[Kind, int], None], ...]:
    """The laws that an engine must keep."""
    decentralized = (every_agent_ends_with_the_model_of_the_coordinator,) if gossip else ()
    return LAWS + (() if checkpointed else RESUMING) + decentralized
