"""An agent that believes nobody: whatever is broadcast, its task gives a declared result or the one error.

``DSFR_TORTURE`` multiplies the number of mutated broadcasts (1000), ``DSFR_TEST_SEED`` is their seed.
"""

import resource
import time
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest

from dsfr.training import TASKS
from dsfr.training.duplicates.shared_rows import MOST_MATCHED, n_places
from dsfr.training.tasks.declaration import BroadcastError, TaskError
from dsfr.training.tasks.message import SHORT
from dsfr.training.tasks.registry import REGISTRY
from dsfr.training.tasks.symbols import MOST
from tests.faults.cases import SEED, n_cases, record
from tests.faults.mutation import mutated
from tests.faults.recorded import some_calls

N_CASES = n_cases(1000)
MOST_SECONDS = 10.0
"""Of the processor, for one task on 15 rows."""
MOST_KILOBYTES = 600_000
"""Growth of the process over all cases."""


def foreign_memory(rng):
    """What an agent remembers after another task, perhaps of another training."""
    calls = some_calls()
    others = calls[sorted(calls)[rng.integers(len(calls))]]
    return others[rng.integers(len(others))].kept


def one_case(case):
    """A task and what an agent might get and have: mutated, empty or foreign."""
    rng = np.random.default_rng([SEED, case])
    task = sorted(some_calls())[case % len(some_calls())]
    calls = some_calls()[task]
    call = calls[rng.integers(len(calls))]
    memory, broadcast = call.memory, call.broadcast
    kind = rng.random()
    if kind < 0.7:
        broadcast = mutated(broadcast, rng)
    elif kind < 0.8:
        memory = {}
    elif kind < 0.9:
        memory = foreign_memory(rng)
    else:
        memory = mutated(memory, rng)
    return call, memory, broadcast


def shapes(bundle):
    return {name: np.shape(array) for name, array in bundle.items()}


def outcome(case):
    """``"refused"`` or ``"accepted"``; whatever is no `TaskError` is raised."""
    call, memory, broadcast = one_case(case)
    try:
        _, contribution = TASKS[call.task](call.shard, memory, broadcast)
    except TaskError as error:
        return "refused" if f"task {call.task!r}" in str(error) else f"refused without the task: {error}"
    declared = REGISTRY[call.task]
    assert contribution.keys() <= declared.contributes.keys()
    assert all(np.isfinite(array).all() for array in contribution.values())
    asked = [name for name in ("n_rules", "n_places", "asked") if name in broadcast]
    same_sizes = all(np.array_equal(broadcast[name], call.broadcast[name]) for name in asked)
    if same_sizes and (shapes(memory), shapes(broadcast)) == (shapes(call.memory), shapes(call.broadcast)):
        assert shapes(contribution) == shapes(call.contribution) or declared.may_be_silent
    return "accepted"


def test_every_mutated_broadcast_gives_a_declared_result_or_the_one_error(record_property):
    some_calls()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcomes, slowest = Counter(), 0.0
    for case in range(N_CASES):
        start = time.process_time()
        try:
            outcomes[outcome(case)] += 1
        except Exception as error:
            call, *_ = one_case(case)
            raise AssertionError(f"case {case} of task {call.task!r}: {type(error).__name__}: {error}") from error
        slowest = max(slowest, time.process_time() - start)
        assert slowest < MOST_SECONDS, f"case {case} took {slowest:.1f} s"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    record(record_property, outcomes)
    assert grown < MOST_KILOBYTES
    assert set(outcomes) == {"refused", "accepted"}
    assert outcomes["refused"] > N_CASES / 3


@pytest.mark.parametrize("task", sorted(TASKS))
def test_what_training_sends_is_accepted_and_gives_the_same_again(task):
    for call in some_calls()[task]:
        _, contribution = TASKS[task](call.shard, call.memory, call.broadcast)
        assert shapes(contribution) == shapes(call.contribution)


@pytest.mark.parametrize("task", sorted(TASKS))
def test_every_array_of_a_broadcast_is_needed_or_declared_optional(task):
    declared = REGISTRY[task]
    for call in some_calls()[task][:3]:
        for name in call.broadcast:
            without = {other: array for other, array in call.broadcast.items() if other != name}
            base = name.rpartition("_")[0] if name not in declared.broadcast else name
            field = declared.broadcast[base]
            if field.is_needed(without):
                with pytest.raises(BroadcastError, match=f"'{name}' is missing|'{name}_?.*missing|only"):
                    TASKS[task](call.shard, call.memory, without)


@pytest.mark.parametrize("task", sorted(name for name, declared in REGISTRY.items() if declared.needs))
def test_a_replay_on_empty_memory_is_refused(task):
    for call in some_calls()[task]:
        needed = [name for name in REGISTRY[task].needs if name in call.memory and name not in call.broadcast]
        if not REGISTRY[task].needs.keys() - call.broadcast.keys():
            continue
        with pytest.raises(BroadcastError, match=rf"task '{task}' refuses its memory: .* is missing"):
            TASKS[task](call.shard, {}, call.broadcast)
        assert needed


@pytest.mark.parametrize("task", sorted(TASKS))
def test_a_memory_that_lacks_one_array_gives_a_declared_result_or_the_one_error(task):
    """What a task remembers of two arrays together, it asks for together."""
    declared = REGISTRY[task]
    for call in some_calls()[task]:
        for name in call.memory.keys() & (declared.needs.keys() | declared.recalls.keys()):
            memory = {other: array for other, array in call.memory.items() if other != name}
            with suppress(TaskError):
                _, contribution = TASKS[task](call.shard, memory, call.broadcast)
                assert contribution.keys() <= declared.contributes.keys()


@pytest.mark.parametrize("task", sorted(TASKS))
def test_memory_that_was_accepted_is_looked_at_again_once_an_array_of_it_is_another(task):
    for call in some_calls()[task][:3]:
        arrays = {name: call.memory[name] for name in REGISTRY[task].reads if name in call.memory}
        for name, array in arrays.items():
            if array.dtype != np.float64 or not 0 < array.size <= SHORT:
                continue
            TASKS[task](call.shard, call.memory, call.broadcast)
            with pytest.raises(BroadcastError, match=rf"refuses its memory: '{name}' .* must be finite"):
                TASKS[task](call.shard, {**call.memory, name: np.full_like(array, np.nan)}, call.broadcast)


@pytest.mark.parametrize(
    ("task", "name", "value"),
    [
        ("statistics", "n_pairs", np.asarray(2**31)),
        ("statistics", "most_pairs", np.asarray(2**31)),
        ("start_centers", "n_rules", np.asarray(10**6)),
        ("start_centers", "max_steps", np.asarray(10**9)),
        ("start_centers", "fuzzifier", np.asarray(1.0)),
        ("cluster_sums", "centers", np.broadcast_to(0.5, (10**8, 2))),
        ("count_below", "thresholds", np.broadcast_to(0.5, (2, 2, 10**8))),
        ("count_errors", "thresholds", np.broadcast_to(0.5, (10**9,))),
        ("left_out_errors", "candidates", np.broadcast_to(0.5, (10**7, 2))),
        ("mark_labels", "n_places", np.asarray(2**40)),
        ("drop_matched", "tables", np.broadcast_to(0.5, (4, 10**9))),
        ("weigh_duplicates", "asked", np.ones(10**6)),
        ("weight_consensus", "mix", np.broadcast_to(0.5, (10**8,))),
        ("score", "shares", np.full(10**4, 1e-4)),
    ],
)
def test_costs_are_bounded_before_anything_is_allocated(task, name, value):
    pairs = {"n_pairs": np.asarray(1), "most_pairs": np.asarray(1), "mix_concentration": np.asarray(0.75)}
    calls = [call for call in some_calls()[task] if name in call.broadcast or name in pairs]
    told = calls[0].broadcast | (pairs if name in pairs else {}) | {name: value}
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(BroadcastError, match=rf"task '{task}' refuses its broadcast: '{name}' (is|has) .* must"):
        TASKS[task](calls[0].shard, calls[0].memory, told)
    assert time.process_time() - start < 1.0
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


def test_tables_of_hashes_are_as_long_as_the_most_labels_need():
    assert n_places(MOST_MATCHED) == MOST["l"]
