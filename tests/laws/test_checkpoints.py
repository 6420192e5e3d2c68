"""A training that is killed at any round resumes to the same model; a checkpoint of another training is refused."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.engines import Faults, InProcessEngine
from dsfr.engines.checkpoint.engine import CheckpointError, with_checkpoint
from dsfr.engines.checkpoint.memory import read_memory, write_memory
from dsfr.engines.local.gossip import GossipEngine
from dsfr.engines.topology import make_topology
from dsfr.storage.bundles import BundleError
from dsfr.training import TASKS, make_shards, train
from tests.engine_contract import Killed, mortal
from tests.tables import make_settings, make_table, owners_of

KINDS = [
    {"solver": "conjugate"},
    {"solver": "admm"},
    {"solver": "admm", "refresh_pairs": True, "width_pooling": "paper"},
    {"solver": "sums"},
    {"solver": "few-rounds"},
    {"basis": "wavelets", "unlabeled": "graph", "n_nodes": 8},
    {"solver": "decentralized"},
]


def make_engine(told, seed=1, n_agents=3, n_rows=60):
    X, _, y = make_table(seed, n_rows=n_rows)
    shards = make_shards(X, y, owners_of(seed, len(y), n_agents))
    if told.get("solver") == "decentralized":
        return GossipEngine(shards, TASKS, make_topology("ring", list(shards)))
    return InProcessEngine(shards, TASKS)


def run(folder, told, *, rounds=None, resume=True, about=None, every=1, **table):
    engine = make_engine(told, **table)
    if rounds is not None:
        engine = mortal(engine, rounds)
    about = told if about is None else about
    return train(with_checkpoint(engine, folder, about, resume=resume, every=every), settings_of(told))


def settings_of(told):
    return make_settings(seed=2, max_rounds=25, **told)


@pytest.mark.slow
@settings(max_examples=30)
@given(st.sampled_from(KINDS), st.integers(0, 70), st.integers(1, 70), st.integers(1, 7))
def test_a_training_killed_at_any_rounds_ends_in_the_same_bits(tmp_path_factory, told, first, second, every):
    folder = tmp_path_factory.mktemp("checkpoint")
    reference = train(make_engine(told), settings_of(told))
    for rounds in (first, second):
        with suppress(Killed):
            run(folder, told, rounds=rounds, every=every)
    resumed = run(folder, told, every=every)
    np.testing.assert_array_equal(resumed.predictor.weights, reference.predictor.weights)
    assert [info.round for info in resumed.history] == [info.round for info in reference.history]
    for name, copy in resumed.copies.items():
        np.testing.assert_array_equal(copy.weights, reference.copies[name].weights)


def test_rounds_in_the_journal_do_not_run_again(tmp_path):
    run(tmp_path, KINDS[0])
    engine = make_engine(KINDS[0])
    resumed = with_checkpoint(engine, tmp_path, KINDS[0], resume=True)
    train(resumed, settings_of(KINDS[0]))
    assert [entry.task for entry in engine.ledger.entries.values()] == ["identify"]
    assert resumed.n_replayed > 10


def test_rounds_after_the_last_snapshot_run_again(tmp_path):
    with pytest.raises(Killed):
        run(tmp_path, KINDS[0], rounds=19, every=8)
    assert with_checkpoint(make_engine(KINDS[0]), tmp_path, KINDS[0], resume=True).n_replayed == 16


def test_two_snapshots_of_every_agent_are_kept(tmp_path):
    run(tmp_path, KINDS[2])
    assert sorted(len(list(home.glob("memory-*"))) for home in tmp_path.iterdir()) == [2, 2, 2]


@pytest.mark.parametrize("n_lost", [1, 5, 13, 200])
def test_a_journal_with_an_incomplete_record_resumes(tmp_path, n_lost):
    with pytest.raises(Killed):
        run(tmp_path, KINDS[0], rounds=20)
    (journal,) = tmp_path.glob("*/journal")
    journal.write_bytes(journal.read_bytes()[:-n_lost])
    resumed = run(tmp_path, KINDS[0])
    reference = train(make_engine(KINDS[0]), settings_of(KINDS[0]))
    np.testing.assert_array_equal(resumed.predictor.weights, reference.predictor.weights)


def stopped(folder):
    with pytest.raises(Killed):
        run(folder, KINDS[0], rounds=12)


def test_an_existing_journal_is_not_overwritten(tmp_path):
    stopped(tmp_path)
    with pytest.raises(CheckpointError, match="has the journal of an earlier training: resume it"):
        run(tmp_path, KINDS[0], resume=False)
    assert with_checkpoint(make_engine(KINDS[0]), tmp_path, KINDS[0], resume=True).n_replayed == 11


def test_resuming_without_a_journal_starts(tmp_path):
    assert with_checkpoint(make_engine(KINDS[0]), tmp_path / "new", KINDS[0], resume=True).n_replayed == 0


@pytest.mark.parametrize(
    ("other", "complaint"),
    [
        ({"about": {"solver": "admm", "ridge": 2.0}}, "other settings .ridge was None and is 2.0"),
        ({"n_agents": 4}, "has 3 agents .*, this run has 4"),
        ({"n_rows": 61}, "has other rows"),
        ({"seed": 5}, "has other"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(tmp_path, other, complaint):
    stopped(tmp_path)
    with pytest.raises(CheckpointError, match=complaint):
        run(tmp_path, KINDS[0], **other)


def test_one_changed_value_is_another_training(tmp_path):
    stopped(tmp_path)
    X, _, y = make_table(1, n_rows=60)
    X[7, 1] += 1e-9
    engine = InProcessEngine(make_shards(X, y, owners_of(1, len(y), 3)), TASKS)
    with pytest.raises(CheckpointError, match="has other rows"):
        with_checkpoint(engine, tmp_path, KINDS[0], resume=True)


def test_another_graph_of_the_same_agents_is_another_training(tmp_path):
    """Also under the same name: a file of links may have changed."""
    told, graphs = KINDS[-1], ([("0", "1"), ("1", "2")], [("0", "2"), ("2", "1")])
    X, _, y = make_table(1, n_rows=60)
    shards = make_shards(X, y, np.arange(60) % 3)
    first, other = (GossipEngine(shards, TASKS, make_topology(graph, list(shards))) for graph in graphs)
    with pytest.raises(Killed):
        train(with_checkpoint(mortal(first, 9), tmp_path, told), settings_of(told))
    with pytest.raises(CheckpointError, match="has another graph of the same agents"):
        with_checkpoint(other, tmp_path, told, resume=True)


def test_a_journal_of_another_version_is_an_error(tmp_path):
    stopped(tmp_path)
    resumed = with_checkpoint(make_engine(KINDS[0]), tmp_path, KINDS[0], resume=True)
    with pytest.raises(CheckpointError, match=r"round 1 in .* is 'measure', but the training runs 'agree'"):
        resumed.sum("agree", {})


def test_a_damaged_memory_is_named(tmp_path):
    stopped(tmp_path)
    for path in tmp_path.glob("*/memory-*"):
        path.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="memory-00000011 is damaged"):
        run(tmp_path, KINDS[0])


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_one_changed_byte_of_a_memory_is_noticed(tmp_path_factory, place, change):
    path = tmp_path_factory.mktemp("memory") / "memory-00000001"
    write_memory(path, {"weights": np.linspace(0.0, 1.0, 50), "n": np.asarray(3)})
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= change
    path.write_bytes(data)
    with pytest.raises(BundleError, match="memory-00000001 is damaged: remove the checkpoint"):
        read_memory(path)


def test_memories_of_a_training_whose_journal_was_lost_are_not_taken_for_those_of_another(tmp_path):
    stopped(tmp_path)
    (journal,) = tmp_path.glob("*/journal")
    journal.unlink()
    with_checkpoint(make_engine(KINDS[0]), tmp_path, {"solver": "another"}, resume=True)
    assert not list(tmp_path.glob("*/memory-*"))


def test_faults_cannot_be_checkpointed(tmp_path):
    X, _, y = make_table(1)
    engine = InProcessEngine(make_shards(X, y, owners_of(1, len(y), 3)), TASKS, faults=Faults(loss=0.1))
    with pytest.raises(CheckpointError, match="faults are random"):
        with_checkpoint(engine, tmp_path, {})
