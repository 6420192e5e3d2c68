"""Sums by gossip: exact residues, trees and polynomials of the Laplacian, and messages that give nothing away."""

import math

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.engines import Absence, EngineError, Faults
from dsfr.engines.gossip.minimal_polynomial import _minimal_polynomial, sum_polynomial
from dsfr.engines.gossip.residues import FRACTION_BITS, LARGEST, PRIMES, decode, encode, from_message, to_message
from dsfr.engines.gossip.rules import PolynomialRule, TreeRule, n_messages, sum_rule
from dsfr.engines.gossip.summation import contribution, message_bytes, total
from dsfr.engines.local.gossip import LEARN, PATIENCE, GossipEngine
from dsfr.engines.topology import TOPOLOGIES, make_topology

names = st.sampled_from(sorted(TOPOLOGIES))
seeds = st.integers(0, 10_000)
numbers = st.floats(-1e12, 1e12)


def agents_of(n):
    return [f"site-{number}" for number in range(n)]


def test_primes_are_prime():
    for prime in PRIMES.tolist():
        assert all(prime % divisor for divisor in range(2, math.isqrt(prime) + 1))


@given(st.lists(numbers, min_size=1, max_size=30))
def test_numbers_come_back_from_their_residues(values):
    found = decode(from_message(to_message(encode(np.array(values), "task"))))
    exact = np.rint(np.array(values) * 2.0**FRACTION_BITS) / 2.0**FRACTION_BITS
    np.testing.assert_array_equal(found, exact)


@given(st.lists(numbers.map(lambda x: np.float64(np.float32(x)) if abs(x) > 1.0 else x), min_size=1, max_size=50))
def test_sums_of_residues_are_the_exact_sums_rounded_once(values):
    rounded = decode(encode(np.array(values), "task"))  # whole multiples of the smallest unit
    total_residues = sum(encode(np.array([value]), "task") for value in rounded) % PRIMES[:, None]
    assert decode(total_residues)[0] == math.fsum(rounded)


def test_numbers_that_are_too_large_are_refused():
    with pytest.raises(EngineError, match=r"task 'sums' contributes 8\.8e\+12.*solver='sums'"):
        encode(np.array([1.0, LARGEST]), "sums")


def test_the_shortest_recurrence_of_fibonacci_numbers():
    fibonacci = [1, 1]
    while len(fibonacci) < 12:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    prime = int(PRIMES[0])
    assert _minimal_polynomial(np.array(fibonacci), prime).tolist() == [1, prime - 1, prime - 1]  # x^2 - x - 1


@pytest.mark.parametrize(
    ("name", "n", "degree"),
    [("complete", 9, 1), ("star", 20, 2), ("ring", 20, 10), ("ring", 21, 10), ("line", 20, 19), ("grid", 9, 5)],
)
def test_a_sum_takes_as_many_exchanges_as_the_laplacian_has_eigenvalues_but_zero(name, n, degree):
    links = make_topology(name, agents_of(n))
    spectrum = np.linalg.eigvalsh(nx.laplacian_matrix(nx.Graph({a: list(b) for a, b in links.items()})).toarray())
    assert sum_polynomial(links).degree == degree == np.count_nonzero(np.diff(spectrum) > 1e-9)


def test_a_graph_in_pieces_has_no_sums():
    with pytest.raises(EngineError, match="not connected"):
        sum_polynomial({"a": ("b",), "b": ("a",), "c": ("d",), "d": ("c",)})


def exchange_all(rule, parts, carries=lambda sender, receiver: True):
    """Carry out all exchanges of a rule over links that carry messages; what was sent over each link."""
    sent = {}
    for k, links in enumerate(rule.exchanges, start=1):
        messages = {link: parts[link[0]].message(link[1]) for link in links if carries(*link)}
        for name, part in parts.items():
            part.receive(k, {sender: message for (sender, receiver), message in messages.items() if receiver == name})
        for link, message in messages.items():
            sent.setdefault(link, []).append(from_message(message))
    return sent


@given(names, st.integers(1, 12), seeds)
def test_both_rules_give_everybody_the_sum(name, n, seed):
    links = make_topology(name, agents_of(n), seed=seed)
    values = dict(zip(links, np.random.default_rng(seed).normal(size=(n, 2)), strict=True))
    for rule in (PolynomialRule.of(links), TreeRule.of(links)):
        parts = {agent: rule.begin(encode(value, "share")) for agent, value in values.items()}
        exchange_all(rule, parts)
        for part in parts.values():
            np.testing.assert_allclose(decode(part.value), sum(values.values()), rtol=1e-15, atol=1e-15)


@given(names, st.integers(2, 12), seeds)
def test_a_tree_sends_one_message_each_way_over_each_of_its_links(name, n, seed):
    links = make_topology(name, agents_of(n), seed=seed)
    rule = TreeRule.of(links)
    sent = [link for exchange in rule.exchanges for link in exchange]
    assert len(sent) == len(set(sent)) == 2 * (n - 1)
    assert all(receiver in links[sender] for sender, receiver in sent)
    tree = nx.Graph(sent)
    assert nx.is_tree(tree)
    assert len(rule.exchanges) == nx.diameter(tree)


@settings(max_examples=40)
@given(names, st.integers(2, 9), seeds)
def test_an_agent_learns_of_a_tree_the_sums_of_the_parts_that_fall_apart_without_it(name, n, seed):
    """Contributions and masks are unknowns; what follows from messages without unknown masks are those sums."""
    links = make_topology(name, agents_of(n), seed=seed)
    edges = [(a, b) for a, near in links.items() for b in near if a < b]
    unknowns = {unknown: place for place, unknown in enumerate([*links, *edges])}
    rule, parts = TreeRule.of(links), {}
    for agent in links:
        own = np.zeros((len(PRIMES), len(unknowns)), dtype=np.int64)
        own[:, unknowns[agent]] = 1
        for one, other in (edge for edge in edges if agent in edge):
            own[:, unknowns[one, other]] = 1 if agent == one else -1
        parts[agent] = rule.begin(own % PRIMES[:, None])
    sent = exchange_all(rule, parts)
    for agent in links:
        received = [message[0] for (_, receiver), messages in sent.items() if receiver == agent for message in messages]
        seen = np.array([np.where(row > PRIMES[0] // 2, row - PRIMES[0], row) for row in received])
        hidden = [unknowns[edge] for edge in edges if agent not in edge]
        free = scipy.linalg.null_space(seen[:, hidden].T) if hidden else np.eye(len(seen))
        others = [other for other in links if other != agent]
        learnt = free.T @ seen[:, [unknowns[other] for other in others]]
        graph = nx.Graph({other: [near for near in links[other] if near != agent] for other in others})
        pieces = np.array(
            [[other in piece for other in others] for piece in nx.connected_components(graph)], dtype=float
        )
        rank = np.linalg.matrix_rank
        assert rank(np.vstack([pieces, learnt])) == rank(pieces) == len(pieces)


def share(shard, memory, broadcast):
    return memory, {"value": shard}


def engine_over(topology, values, **options):
    return GossipEngine(dict(zip(topology, values, strict=True)), {"share": share}, topology, **options)


@settings(max_examples=60)
@given(names, st.integers(1, 30), seeds)
def test_everybody_gets_the_exact_sum_the_maximum_and_all_contributions(name, n, seed):
    topology = make_topology(name, agents_of(n), seed=seed)
    values = np.random.default_rng(seed).normal(size=(n, 3)) * [1e-3, 1.0, 1e6]
    engine = engine_over(topology, values)
    rounded = np.array([decode(encode(value, "share")) for value in values])
    expected = [math.fsum(column) for column in rounded.T]
    np.testing.assert_array_equal(engine.sum("share", {})["value"], expected)
    np.testing.assert_array_equal(engine.max("share", {})["value"], values.max(axis=0))
    gathered = engine.gather("share", {})
    np.testing.assert_array_equal([part["value"] for part in gathered], values)
    graph = nx.Graph({agent: list(near) for agent, near in topology.items()})
    across = nx.diameter(graph)
    rounds = {verb: entry.rounds for (task, verb), entry in engine.ledger.entries.items() if task == "share"}
    exchanges = len(sum_rule(topology).exchanges)
    assert rounds == {v: r for v, r in {"sum": exchanges, "max": across, "gather": across}.items() if r}
    if n > 1:
        assert engine.ledger.entries[LEARN, "flood"].rounds == across + 1  # all links, and a key for each
        assert engine.ledger.entries["share", "sum"].bytes_up == n_messages(sum_rule(topology)) * message_bytes(3)
    assert across <= exchanges <= sum_polynomial(topology).degree


def test_contributions_that_do_not_fit_are_refused():
    topology = make_topology("ring", agents_of(3))
    engine = engine_over(topology, [np.zeros(2), np.zeros(3), np.zeros(2)])
    with pytest.raises(EngineError, match="agents disagree in task 'share'"):
        engine.sum("share", {})


def test_another_graph_than_everybody_thinks_is_noticed():
    """A link that does not carry what it should: every agent sees that the sum of the check numbers is wrong."""
    known = make_topology("ring", agents_of(6))
    true = make_topology("line", agents_of(6))
    rule = PolynomialRule.of(known)
    parts = {name: rule.begin(contribution(name, np.ones(2), {}, 1, "share")) for name in known}
    exchange_all(rule, parts, carries=lambda sender, receiver: sender in true[receiver])
    for part in parts.values():
        with pytest.raises(EngineError, match="the sum of task 'share' has come out wrong"):
            total(part.value, known, "share")


class Spy(GossipEngine):
    """Keeps what every agent receives in sums."""

    def _exchange(self, task, verb, message, links=None):
        received = super()._exchange(task, verb, message, links)
        if verb == "sum":
            for (sender, receiver), part in ((link, message(*link)) for link in links):
                self.seen.setdefault(receiver, []).append((sender, from_message(part["value"])))
        return received


@pytest.mark.parametrize("name", ["ring", "complete", "grid"])
def test_contributions_are_masked(name):
    """Two trainings on the same rows send different messages, and get the same sums."""
    topology = make_topology(name, agents_of(6))
    values = [np.array([float(number), 1.0]) for number in range(6)]
    seen, sums = [], []
    for _ in range(2):
        engine = Spy(dict(zip(topology, values, strict=True)), {"share": share}, topology)
        engine.seen = {}
        sums.append(engine.sum("share", {})["value"])
        seen.append(engine.seen)
    np.testing.assert_array_equal(sums[0], sums[1])
    np.testing.assert_array_equal(sums[0], [15.0, 6.0])
    for receiver in topology:
        for (_, first), (_, second) in zip(seen[0][receiver], seen[1][receiver], strict=True):
            assert (first[:, :2] != second[:, :2]).all()


def test_an_agent_that_is_away_is_waited_for():
    topology = make_topology("ring", agents_of(5))
    faults = Faults(absences=[Absence("site-2", 8, 8 + PATIENCE - 1)])
    engine = engine_over(topology, [np.ones(1)] * 5, faults=faults)
    calm = engine_over(topology, [np.ones(1)] * 5)
    for _ in range(4):
        assert engine.sum("share", {})["value"] == calm.sum("share", {})["value"] == 5.0
    assert engine.ledger.rounds == calm.ledger.rounds + PATIENCE
    assert engine.present == tuple(topology)
    assert engine.ledger.agents["site-2"].rounds == calm.ledger.rounds


def test_one_that_never_returns_is_left_out_and_the_sum_is_that_of_the_others():
    topology = make_topology("ring", agents_of(5))
    values = [np.array([10.0**number]) for number in range(5)]
    engine = engine_over(topology, values, faults=Faults(absences=[Absence("site-2", 8)]))
    sums = [float(engine.sum("share", {})["value"][0]) for _ in range(4)]
    assert sums == [11111.0, 11111.0, 11011.0, 11011.0]
    assert engine.present == ("site-0", "site-1", "site-3", "site-4")
    assert engine.max("share", {})["value"] == 1e4
    assert len(engine.gather("share", {})) == 4


def test_who_is_cut_off_by_a_missing_agent_is_named():
    topology = make_topology("line", agents_of(5))
    engine = engine_over(topology, [np.ones(1)] * 5, faults=Faults(absences=[Absence("site-3", 1)]))
    with pytest.raises(EngineError, match=r"no message from site-3 in 200 rounds.*site-4 cannot reach the others"):
        engine.sum("share", {})


def test_fewer_agents_than_are_wanted_are_an_error_that_names_the_missing():
    topology = make_topology("ring", agents_of(5))
    faults = Faults(absences=[Absence("site-1", 1), Absence("site-2", 1)])
    engine = engine_over(topology, [np.ones(1)] * 5, faults=faults, min_agents=4)
    with pytest.raises(EngineError, match=r"only 3 of 5 agents answered.*Missing: site-1, site-2"):
        engine.sum("share", {})


@settings(max_examples=20)
@given(names, st.integers(2, 8), seeds, st.floats(0.0, 0.6))
def test_lost_messages_cost_rounds_and_nothing_else(name, n, seed, loss):
    topology = make_topology(name, agents_of(n), seed=seed)
    values = list(np.random.default_rng(seed).normal(size=(n, 2)))
    lossy = engine_over(topology, values, faults=Faults(loss=loss, tries=1, seed=seed))
    calm = engine_over(topology, values)
    np.testing.assert_array_equal(lossy.sum("share", {})["value"], calm.sum("share", {})["value"])
    assert lossy.ledger.rounds >= calm.ledger.rounds


def test_a_link_that_never_works_is_named():
    topology = make_topology("line", agents_of(2))
    engine = engine_over(topology, [np.ones(1)] * 2)
    engine._faults.send = lambda: (False, 1, 0.0)
    with pytest.raises(EngineError, match=r"messages were lost in 1000 rounds.*from site-0 to site-1"):
        engine.sum("share", {})


def test_a_graph_over_other_agents_is_refused():
    with pytest.raises(ValueError, match="topology is over"):
        GossipEngine([1, 2], {"share": share}, {"0": ["2"], "2": ["0"]})
    with pytest.raises(ValueError, match="not connected: add links"):
        GossipEngine([1, 2, 3], {"share": share}, {"0": ["1"], "1": ["0"], "2": []})
