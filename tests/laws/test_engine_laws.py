"""Messages between agents contain arrays only, and serialisation does not change the model."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.engines import InProcessEngine
from dsfr.training import ADMM, TASKS, RangeScaling, make_shards, train
from dsfr.training.distillation.distill import distill
from dsfr.training.distillation.settings import StudentSettings
from dsfr.training.shard import Purpose
from dsfr.training.tasks.fields import BASIS_OR_EFFECTS
from dsfr.training.weights.dicr import MEMORY
from tests.tables import make_settings, make_table, owners_of, train_on

seeds = st.integers(0, 10_000)
everything = st.fixed_dictionaries(
    {
        "basis": st.sampled_from(["rules", "wavelets"]),
        "unlabeled": st.sampled_from(["icr", "graph", None]),
        "solver": st.sampled_from(["conjugate", "sums", "admm"]),
        "width_pooling": st.sampled_from(["exact", "paper"]),
        "kernel": st.sampled_from(["neighbors", "full"]),
        "refresh_pairs": st.booleans(),
        "n_rules": st.integers(1, 5),
        "n_nodes": st.integers(1, 20),
        "seed": seeds,
        "max_rounds": st.just(20),
    }
).map(lambda told: told | {"refresh_pairs": told["refresh_pairs"] and told["unlabeled"] == "icr"})


@given(seeds, st.integers(1, 5), everything)
def test_serialised_messages_give_the_same_bits(seed, n_agents, told):
    X, _, y = make_table(seed, n_rows=60)
    owners = owners_of(seed, len(y), n_agents)
    plain, plain_engine = train_on(X, y, owners, serialize=False, **told)
    sent, sent_engine = train_on(X, y, owners, serialize=True, **told)
    np.testing.assert_array_equal(plain.predictor.predict(X), sent.predictor.predict(X))
    assert plain.history == sent.history
    assert plain_engine.ledger == sent_engine.ledger


@settings(max_examples=10)  # the law before trains twice with the same seed, too
@given(seeds, st.integers(1, 5), everything)
def test_the_same_seed_gives_the_same_bits(seed, n_agents, told):
    X, _, y = make_table(seed, n_rows=60)
    owners = owners_of(seed, len(y), n_agents)
    first, _ = train_on(X, y, owners, serialize=False, **told)
    second, _ = train_on(X, y, owners, serialize=False, **told)
    np.testing.assert_array_equal(first.predictor.predict(X), second.predictor.predict(X))


@pytest.mark.slow
@settings(max_examples=20)
@given(seeds, everything, everything)
def test_an_earlier_training_on_the_same_engine_does_not_matter(seed, before, told):
    X, _, y = make_table(seed, n_rows=60)
    owners = owners_of(seed, len(y), 3)
    fixed = {"penalty": 0.7, "cluster_penalty": 5.0}  # the same number must not bring back an old factor
    _, engine = train_on(X, y, owners, **before | fixed)
    again = train(engine, make_settings(**told | fixed))
    fresh, _ = train_on(X, y, owners, **told | fixed)
    np.testing.assert_array_equal(again.predictor.predict(X), fresh.predictor.predict(X))


@pytest.mark.parametrize("basis", ["rules", "wavelets"])
def test_local_centers_of_an_earlier_training_do_not_come_back(basis):
    X, _, y = make_table(0, n_rows=60)
    owners = owners_of(0, len(y), 3)
    told = {"solver": "sums", "width_pooling": "paper", "unlabeled": None}
    _, engine = train_on(X, y, owners, solver="admm", max_rounds=5, basis=basis)
    again, (fresh, _) = train(engine, make_settings(**told)), train_on(X, y, owners, **told)
    np.testing.assert_array_equal(again.predictor.basis.widths, fresh.predictor.basis.widths)


def test_measuring_clears_the_memory():
    X, _, y = make_table(0, n_rows=60)
    _, engine = train_on(X, y, owners_of(0, len(y), 3), solver="admm", max_rounds=5)
    assert all(len(memory) > 5 for memory in (agent._memory for agent in engine._agents.values()))
    engine.max("measure", {"seed": np.asarray(9)})
    assert [dict(memory) for memory in (agent._memory for agent in engine._agents.values())] == [{"seed": 9}] * 3


class Vault:
    """A shard that only the tasks of its own agent can read."""

    def __init__(self, shard):
        self.__shard = shard

    def opened(self):
        return self.__shard


def unlocking(task):
    return lambda vault, memory, broadcast: task(vault.opened(), memory, broadcast)


@pytest.mark.parametrize("solver", ["conjugate", "sums"])
def test_the_coordinator_never_reads_a_shard(solver):
    X, _, y = make_table(0)
    shards = list(make_shards(X, y, owners_of(0, len(y), 3)).values())
    engine = InProcessEngine([Vault(shard) for shard in shards], {name: unlocking(t) for name, t in TASKS.items()})
    trained = train(engine, make_settings(solver=solver))
    reference = train(InProcessEngine(shards, TASKS), make_settings(solver=solver))
    np.testing.assert_array_equal(trained.predictor.weights, reference.predictor.weights)


class Scales(InProcessEngine):
    """Records the size of every array in a message."""

    def _contributions(self, task, verb, broadcast):
        contributions = super()._contributions(task, verb, broadcast)
        for way, bundle in (("down", broadcast), *(("up", contribution) for contribution in contributions)):
            for name, array in bundle.items():
                self.sizes.setdefault((task, way, name), set()).add(array.size)
        return contributions


class ScalesOfSums(Scales):
    """The same where sums alone leave the agents."""

    only_sums = True


def weigh(n_rows, *, n_repeated=0, n_features=3, student=None, only_sums=False, gaps=0.0, **told):
    X, _, y = make_table(1, n_rows=n_rows, n_features=n_features)
    rows = np.append(np.arange(n_rows), np.flatnonzero(np.isnan(y))[:n_repeated])
    owners = owners_of(1, n_rows, 2)
    y = np.exp(y / np.nanstd(y)) if told.get("target") == "log" else y
    kind = ScalesOfSums if only_sums else Scales
    if told.pop("declared", False):
        limits = {"lower": tuple(X.min(axis=0)), "upper": tuple(X.max(axis=0))}
        told["scaling"] = RangeScaling(**limits, target_range=(np.nanmin(y), np.nanmax(y)))
    X[np.random.default_rng(1).random(X.shape) < gaps] = np.nan
    engine = kind(list(make_shards(X[rows], y[rows], owners[rows]).values()), TASKS)
    engine.sizes = {}
    training = train(engine, make_settings(seed=3, max_rounds=30, **told))
    if student is not None:
        distill(engine, training, StudentSettings(**student))
    return engine.sizes


ALL_KINDS = [
    {"solver": "conjugate"},
    {"solver": "conjugate", "basis": "wavelets", "unlabeled": "graph", "kernel": "full"},
    {"solver": "admm", "width_pooling": "paper"},
    {"solver": "admm", "refresh_pairs": True},
    {"solver": "admm", "unlabeled": "graph", "penalty": "balanced"},
    {"solver": "admm", "basis": "wavelets", "unlabeled": "graph", "kernel": "full"},
    {"solver": "sums"},
    {"solver": "sums", "unlabeled": "graph", "n_neighbors": 3},
    {"solver": "few-rounds"},
    {"solver": "few-rounds", "unlabeled": None, "width_pooling": "paper"},
    {"tune": "evidence", "uncertainty": True, "scaling": "robust", "relevance": "evidence", "n_models": 3},
    {"tune": "loo", "n_models": 3},
    {"tune": "evidence", "n_repeated": 9},
    {"solver": ADMM(acceleration=None, penalty=1.0, cluster_penalty=1.0, stopping="paper")},
    {"solver": "sums", "declared": True, "only_sums": True},
    {"solver": "private-sums", "unlabeled": None, "declared": True, "only_sums": True},
    {"solver": "sums", "gaps": 0.2},
    {"tune": "evidence", "uncertainty": True, "target": "log", "n_models": 2},
]
SUMMED = {"tune": "evidence", "declared": True, "only_sums": True}
CHOSEN_SIZES = [
    {"tune": "evidence", "uncertainty": True, "n_models": 2, "effects": "pairs", "scaling": "robust"},
    {"tune": "evidence", "uncertainty": True, "student": {"max_rules": 3, "tolerance": 1e-6}},
    {
        "tune": "evidence",
        "uncertainty": True,
        "scaling": "robust",
        "student": {"max_rules": 3, "tolerance": 1e-6},
        "n_features": 6,
    },
    {"tune": "evidence", "student": {"max_rules": 4, "max_terms": 1}, "n_features": 14},
    {**SUMMED, "effects": "pairs", "max_weights_per_label": 0.35, "student": {"max_rules": 2}},
]
"""Kinds whose labels choose how large the model is: effects, and the conditions of short rules."""
BY_ROUNDS = {"mix", "products"}
"""Arrays that grow with the rounds that acceleration remembers."""


@pytest.mark.parametrize("told", ALL_KINDS, ids=lambda told: "-".join(map(str, told.values())))
def test_no_message_is_as_long_as_the_table(told):
    """Messages have the size of the model, not of the data: doubling the rows doubles nothing."""
    small, large = weigh(200, **told), weigh(400, **told)
    assert small.keys() == large.keys()
    for key, sizes in large.items():
        assert sizes == small[key] or (key[-1] in BY_ROUNDS and max(sizes) <= MEMORY + 2), key


@pytest.mark.parametrize("told", CHOSEN_SIZES, ids=lambda told: "-".join(map(str, told.values())))
def test_no_message_grows_with_the_table_where_labels_choose_the_size(told):
    """Sixteen times the rows, with as many labels, make another model but none of another order of size."""
    small, large = widest(weigh(200, **told)), widest(weigh(3200, **told))
    assert {task for task, *_ in small} == {task for task, *_ in large}
    # Labels choose the kinds of members that have a share too: only arrays of members may be in one of both alone.
    assert {name for *_, name in small.keys() ^ large.keys()} <= {*BASIS_OR_EFFECTS, "weights", "factor", "noise"}
    for key in small.keys() & large.keys():
        assert large[key] <= 2 * small[key] + 4, key


def widest(weighed):
    """The largest size of every array, whatever member of an average it belongs to: labels choose their number too."""
    found = {}
    for (task, direction, name), sizes in weighed.items():
        key = task, direction, re.sub(r"_\d+$", "", name)
        found[key] = max(found.get(key, 0), *sizes)
    return found


def test_every_task_is_weighed():
    weighed = {task for told in (*ALL_KINDS, *CHOSEN_SIZES) for task, _, _ in weigh(60, **told)}
    assert weighed | {"draw_ticket", "identify"} == set(TASKS)


@given(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8), seeds)
def test_random_streams_follow_the_name_of_the_agent(name, other, seed):
    shard = make_shards(np.zeros((2, 1)), np.zeros(2), np.array([f"a{name}", f"a{name}"]))
    alone = next(iter(shard.values())).rng(seed, Purpose.PAIRS).random(3)
    both = make_shards(np.zeros((3, 1)), np.zeros(3), np.array([f"b{other}", f"a{name}", f"a{name}"]))
    streams = {key: s.rng(seed, Purpose.PAIRS).random(3) for key, s in both.items()}
    match = [stream for stream in streams.values() if (stream == alone).all()]
    assert len(match) == 1
