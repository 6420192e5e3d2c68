"""The engine contract: reductions, errors, ledger."""

import numpy as np
import pytest

from dsfr.engines import EngineError, InProcessEngine
from dsfr.storage.bundles import BundleError
from dsfr.training import TASKS, make_shards, train
from tests.tables import make_settings, make_table, owners_of


def task_double(shard, memory, broadcast):
    count = memory.get("count", np.asarray(0.0)) + 1.0
    return {"count": np.asarray(count)}, {"value": shard * broadcast["factor"], "count": np.asarray(count)}


TWO_SHARDS = (np.array([1.0, 5.0]), np.array([4.0, 2.0]))


def make_engine(tasks=None, shards=TWO_SHARDS, **options):
    return InProcessEngine(shards, tasks or {"double": task_double}, **options)


FACTOR = {"factor": np.asarray(2.0)}


@pytest.mark.parametrize("serialize", [False, True])
def test_sum_max_and_gather(serialize):
    engine = make_engine(serialize=serialize)
    np.testing.assert_array_equal(engine.sum("double", FACTOR)["value"], [10.0, 14.0])
    np.testing.assert_array_equal(engine.max("double", FACTOR)["value"], [8.0, 10.0])
    gathered = engine.gather("double", FACTOR)
    np.testing.assert_array_equal(gathered[1]["value"], [8.0, 4.0])
    assert gathered[0]["count"] == 3.0  # memory lasts from task to task


class Tagged(np.ndarray):
    """An array with something to it that bytes do not carry."""


@pytest.mark.parametrize("serialize", [False, True])
def test_broadcast_memory_and_contribution_go_through_bytes_if_asked(serialize):
    sent = np.arange(6.0).reshape(2, 3).T.view(Tagged)
    received = {"broadcast": [], "memory": []}

    def task(shard, memory, broadcast):
        received["broadcast"].append(broadcast["x"])
        received["memory"].append(memory.get("kept"))
        return {"kept": sent}, {"given": sent}

    engine = make_engine({"task": task}, shards=(None,), serialize=serialize)
    contributions = [engine.gather("task", {"x": sent})[0]["given"] for _ in range(2)]
    for array in (*received["broadcast"], received["memory"][1], *contributions):
        assert (type(array) is np.ndarray and array is not sent) if serialize else array is sent
        np.testing.assert_array_equal(np.asarray(array), np.asarray(sent))
    assert type(engine._agents["0"]._memory["kept"]) is (np.ndarray if serialize else Tagged)


def test_gather_leaves_out_agents_that_send_nothing():
    engine = make_engine({"big": lambda shard, memory, broadcast: (memory, {"x": shard} if shard[0] > 2 else {})})
    assert len(engine.gather("big", {})) == 1
    entry = engine.ledger.entries["big", "gather"]
    assert entry.reveals_single_contributions
    assert (entry.messages, entry.bytes_up) == (3, 16)


def test_the_ledger_counts_rounds_messages_and_bytes():
    engine = make_engine()
    for _ in range(3):
        engine.sum("double", FACTOR)
    entry = engine.ledger.entries["double", "sum"]
    assert (entry.rounds, entry.messages, entry.bytes_down, entry.bytes_up) == (3, 12, 3 * 2 * 8, 3 * 2 * 24)
    assert (engine.ledger.rounds, engine.ledger.messages, engine.ledger.bytes) == (3, 12, 192)
    assert not entry.reveals_single_contributions
    assert "double" in str(engine.ledger)


def test_a_lone_agent_sends_nothing():
    engine = make_engine(shards=(np.array([1.0]),))
    engine.sum("double", FACTOR)
    assert (engine.ledger.rounds, engine.ledger.messages, engine.ledger.bytes) == (1, 0, 0)


def test_an_unknown_task_is_named():
    with pytest.raises(EngineError, match=r"'halve'.*double"):
        make_engine().sum("halve", {})


def test_contributions_that_do_not_fit_together_are_an_error():
    engine = make_engine(shards=(np.ones(2), np.ones(3)))
    with pytest.raises(EngineError, match="disagree in task 'double'"):
        engine.sum("double", FACTOR)


@pytest.mark.parametrize("bad", [{"x": [1.0]}, {"x": np.array([np.nan])}, {"x": np.array(["a"])}, {"X y": np.ones(1)}])
def test_only_checked_arrays_can_be_contributed(bad):
    engine = make_engine({"bad": lambda shard, memory, broadcast: (memory, bad)})
    with pytest.raises(BundleError):
        engine.sum("bad", {})


def test_start_centers_that_nobody_proposes_are_an_error():
    X, _, y = make_table(0)
    silent = {**TASKS, "start_centers": lambda shard, memory, broadcast: (memory, {})}
    engine = make_engine(silent, list(make_shards(X, y, owners_of(0, len(y), 3)).values()))
    with pytest.raises(EngineError, match="no agent proposed start centers in 10 rounds"):
        train(engine, make_settings())


def test_no_agents_are_an_error():
    with pytest.raises(ValueError, match="at least one agent"):
        make_engine(shards=())
