"""Graphs: how they are specified, that messages use their edges only, and that any graph gives the same model."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.engines import EngineError, Entry, InProcessEngine
from dsfr.engines.local.gossip import GossipEngine
from dsfr.engines.local.network import NetworkEngine
from dsfr.engines.local.node import Message
from dsfr.engines.topology import TOPOLOGIES, make_topology
from dsfr.training import TASKS, make_shards, train
from tests.tables import make_settings, make_table, owners_of

seeds = st.integers(0, 10_000)
names = st.sampled_from(sorted(TOPOLOGIES))


def diameter(topology):
    """Computed by networkx."""
    return nx.diameter(nx.Graph({name: list(neighbors) for name, neighbors in topology.items()}))


def agents_of(n):
    return [f"site-{number}" for number in range(n)]


@given(names, st.integers(1, 40), seeds)
def test_every_named_graph_is_connected_and_symmetric(name, n, seed):
    topology = make_topology(name, agents_of(n), seed=seed)
    assert list(topology) == agents_of(n)
    assert all(agent in topology[neighbor] for agent in topology for neighbor in topology[agent])
    assert all(agent not in topology[agent] for agent in topology)
    assert diameter(topology) <= max(n - 1, 0)
    assert make_topology(name, agents_of(n), seed=seed) == topology


def n_links(topology):
    return sum(map(len, topology.values())) // 2


@pytest.mark.parametrize(
    ("name", "n", "links", "across"),
    [
        ("complete", 7, 21, 1),
        ("star", 7, 6, 2),
        ("ring", 7, 7, 3),
        ("ring", 2, 1, 1),
        ("line", 5, 4, 4),
        ("line", 1, 0, 0),
        ("grid", 9, 12, 4),
        ("grid", 7, 8, 4),
        ("barabasi-albert", 7, 10, None),
    ],
)
def test_named_graphs_are_what_they_are_called(name, n, links, across):
    topology = make_topology(name, agents_of(n))
    assert n_links(topology) == links
    assert across in (None, diameter(topology))


@pytest.mark.parametrize("name", ["geometric", "erdos-renyi", "barabasi-albert"])
def test_random_graphs_depend_on_their_seed(name):
    assert make_topology(name, agents_of(30), seed=1) != make_topology(name, agents_of(30), seed=2)


def test_a_graph_from_a_file_pairs_or_networkx(tmp_path):
    path = tmp_path / "links.txt"
    path.write_text("# who talks to whom\nnorth, east\neast,south side  # by radio\n\n")
    agents = ["north", "east", "south side"]
    expected = {"north": ("east",), "east": ("north", "south side"), "south side": ("east",)}
    assert make_topology(path, agents) == expected
    assert make_topology(str(path), agents) == expected
    assert make_topology([("north", "east"), ("south side", "east")], agents) == expected
    assert make_topology(nx.path_graph(3), agents) == expected
    assert make_topology([(0, 1), (1, 2), (1, 1), (2, 1)], agents) == expected


def test_words_without_a_comma_are_two_names(tmp_path):
    path = tmp_path / "links.txt"
    path.write_text("a b\nb\tc\n")
    assert make_topology(path, ["a", "b", "c"]) == {"a": ("b",), "b": ("a", "c"), "c": ("b",)}


def test_files_from_other_systems_are_read(tmp_path):
    path = tmp_path / "links.txt"
    path.write_bytes("\ufeffa,b\r\nb,c\r\nc,b\r\n".encode())
    assert make_topology(path, ["a", "b", "c"]) == {"a": ("b",), "b": ("a", "c"), "c": ("b",)}


def test_a_single_agent_needs_no_link(tmp_path):
    path = tmp_path / "links.txt"
    path.write_text("")
    assert make_topology(path, ["a"]) == make_topology([], ["a"]) == {"a": ()}


def test_a_file_that_is_not_text_is_named(tmp_path):
    path = tmp_path / "links.bin"
    path.write_bytes(bytes(range(128, 256)))
    with pytest.raises(ValueError, match=r"links\.bin' is not UTF-8 text"):
        make_topology(path, ["a", "b"])


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ([("a", "b"), ("c", "d")], r"not connected; its components are \[a, b\]; \[c, d\]"),
        ([("a", "b"), ("b", "c")], "not connected: d has no link"),
        ([("a", "b"), ("b", "e")], "names e, but the agents are a, b, c, d"),
        ([("a", "b", "c")], "is not a pair"),
        (["ab", "cd"], "is not a pair"),
        (7, "topology=7 must be"),
        ("hexagon", "'hexagon' is neither a file nor one of complete, star, line, ring"),
    ],
)
def test_graphs_that_cannot_be_used_are_refused(spec, match):
    with pytest.raises(ValueError, match=match):
        make_topology(spec, ["a", "b", "c", "d"])


def test_a_broken_file_is_named_with_its_line(tmp_path):
    path = tmp_path / "links.txt"
    path.write_text("a b\nb c d\n")
    with pytest.raises(ValueError, match=r"links.txt, line 2: 'b c d' must be two names"):
        make_topology(path, ["a", "b", "c", "d"])


def network(name, shards, **options):
    return NetworkEngine(shards, TASKS, make_topology(name, list(shards), seed=1), **options)


@settings(max_examples=40)
@given(
    names,
    seeds,
    st.integers(1, 12),
    st.sampled_from(["rules", "wavelets"]),
    st.sampled_from(["conjugate", "sums", "few-rounds"]),
    st.sampled_from(["icr", "graph", None]),
    st.integers(0, 11),
)
def test_any_graph_gives_the_model_of_direct_messages(name, seed, n_agents, basis, solver, unlabeled, root):
    X, _, y = make_table(seed, n_rows=80)
    shards = make_shards(X, y, owners_of(seed, len(y), n_agents))
    told = make_settings(basis=basis, solver=solver, unlabeled=unlabeled, n_rules=3, n_nodes=8, seed=seed)
    engine = network(name, shards, root=list(shards)[root % n_agents])
    direct = InProcessEngine(shards, TASKS)
    found, expected = train(engine, told), train(direct, told)
    scale = np.nanstd(y)
    np.testing.assert_allclose(found.predictor.predict(X), expected.predictor.predict(X), atol=1e-4 * scale)
    if solver != "conjugate":
        np.testing.assert_allclose(found.predictor.predict(X), expected.predictor.predict(X), atol=1e-8 * scale)
        assert engine.ledger.rounds == direct.ledger.rounds


def counting_task(shard, memory, broadcast):
    return {"seen": broadcast["x"]}, {"value": shard + broadcast["x"]}


def bare(topology, shards=None, **options):
    named = {name: np.array([float(number)]) for number, name in enumerate(topology)} if shards is None else shards
    return NetworkEngine(named, {"count": counting_task}, topology, **options)


X1 = {"x": np.array([1.0])}


@given(names, st.integers(1, 30), seeds)
def test_sums_and_maxima_are_those_of_all_agents(name, n, seed):
    engine = bare(make_topology(name, agents_of(n), seed=seed))
    assert engine.sum("count", X1)["value"] == n * (n - 1) / 2 + n
    assert engine.max("count", X1)["value"] == n
    assert sorted(float(part["value"][0]) for part in engine.gather("count", X1)) == list(range(1, n + 1))
    assert set(engine.present) == set(agents_of(n))


def test_a_tree_costs_two_messages_per_agent_and_round():
    engine = bare(make_topology("ring", agents_of(10)))
    engine.sum("count", X1)
    building = engine.ledger.messages - 18
    engine.sum("count", X1)
    entry = engine.ledger.entries["count", "sum"]
    # Every agent makes an offer to each neighbor but the one whose offer it takes, and accepts that.
    assert building == 2 * 10 - 9 + 9
    assert entry.messages == building + 2 * 18
    assert entry.bytes_up == 2 * 9 * 8
    # In a ring the tree has two branches; the root gets one sum from each and sends to both.
    assert engine.ledger.agents["site-0"].bytes_received == 2 * 2 * 8


class Loudmouth(NetworkEngine):
    """The second agent answers past its parent, to somebody it has no link to."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        node = self._nodes["site-1"]
        start = node.start

        def shout(task, verb, broadcast):
            start(task, verb, broadcast)
            return [Message("site-1", "site-3", "up", (X1,))]

        self._nodes = self._nodes | {"site-1": _Wrapped(node, shout)}


class _Wrapped:
    def __init__(self, node, start):
        self._node, self.start = node, start

    def __getattr__(self, name):
        return getattr(self._node, name)

    def receive(self, message):
        if message.kind == "down":
            return self.start(message.task, message.verb, message.bundles[0])
        return self._node.receive(message)


def test_a_message_that_is_not_along_an_edge_is_refused():
    topology = make_topology([(0, 1), (1, 2), (2, 3)], agents_of(4))
    shards = {name: np.zeros(1) for name in topology}
    engine = Loudmouth(shards, {"count": counting_task}, topology)
    with pytest.raises(EngineError, match="'site-1' tried to send to 'site-3', but there is no link"):
        engine.sum("count", X1)


def test_agents_share_nothing():
    """Arrays that one agent receives or keeps do not share memory with those of another."""
    seen = []

    def remember_arrays(shard, memory, broadcast):
        seen.append((broadcast["x"], shard))
        return {"kept": broadcast["x"]}, {"value": broadcast["x"]}

    topology = make_topology("complete", agents_of(5))
    engine = NetworkEngine({name: np.zeros(1) for name in topology}, {"look": remember_arrays}, topology)
    engine.sum("look", X1)
    arrays = [array for array, _ in seen]
    for first in range(5):
        for second in range(first):
            assert not np.shares_memory(arrays[first], arrays[second])
        assert not np.shares_memory(arrays[first], X1["x"])


@pytest.mark.parametrize("kind", [NetworkEngine, GossipEngine])
def test_every_message_of_a_training_is_along_an_edge(kind, monkeypatch):
    sent, count_message = [], Entry.count_message

    def watch(self, sender, receiver, n_bytes, *, up):
        sent.append((sender, receiver))
        count_message(self, sender, receiver, n_bytes, up=up)

    monkeypatch.setattr(Entry, "count_message", watch)
    X, _, y = make_table(0, n_rows=80)
    shards = make_shards(X, y, owners_of(0, len(y), 6))
    topology = make_topology("ring", list(shards))
    engine = kind(shards, TASKS, topology)
    train(engine, make_settings(n_rules=3, solver="conjugate" if engine.has_coordinator else "decentralized"))
    assert all(receiver in topology[sender] for sender, receiver in sent)
    assert len(sent) == engine.ledger.messages > 0


def test_a_graph_over_other_agents_is_refused():
    with pytest.raises(ValueError, match="topology is over"):
        NetworkEngine([1, 2], TASKS, {"0": ["2"], "2": ["0"]})
    with pytest.raises(ValueError, match="not connected: add links"):
        NetworkEngine([1, 2, 3], TASKS, {"0": ["1"], "1": ["0"], "2": []})
    with pytest.raises(ValueError, match="root='9' is not among"):
        NetworkEngine([1, 2], TASKS, {"0": ["1"], "1": ["0"]}, root="9")
