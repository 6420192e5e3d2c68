"""The engine in one process: serialisation, counts of the ledger, checks. The contract is in engine_contract.py."""

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


class Tagged(np.ndarray):
    """A subclass of arrays, which serialisation does not keep."""


@pytest.mark.parametrize("serialize", [False, True])
def test_broadcast_memory_and_contribution_are_serialised_on_request(serialize):
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


def test_the_ledger_counts_rounds_messages_and_bytes():
    engine = make_engine()
    for _ in range(3):
        engine.sum("double", FACTOR)
    entry = engine.ledger.entries["double", "sum"]
    assert (entry.rounds, entry.messages, entry.bytes_down, entry.bytes_up) == (3, 12, 3 * 2 * 8, 3 * 2 * 24)
    assert (engine.ledger.rounds, engine.ledger.messages, engine.ledger.bytes) == (3, 12, 192)
    assert not entry.reveals_single_contributions
    assert "double" in str(engine.ledger)


@pytest.mark.parametrize("bad", [{"x": [1.0]}, {"x": np.array([np.nan])}, {"x": np.array(["a"])}, {"X y": np.ones(1)}])
def test_only_checked_arrays_can_be_contributed(bad):
    engine = make_engine({"bad": lambda shard, memory, broadcast: (memory, bad)})
    with pytest.raises(BundleError):
        engine.sum("bad", {})


def test_start_centers_without_a_proposal_are_an_error():
    X, _, y = make_table(0)
    silent = {**TASKS, "start_centers": lambda shard, memory, broadcast: (memory, {})}
    engine = make_engine(silent, list(make_shards(X, y, owners_of(0, len(y), 3)).values()))
    with pytest.raises(EngineError, match="no agent proposed start centers in 10 rounds"):
        train(engine, make_settings())
