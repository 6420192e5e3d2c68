"""Contributions that cannot be: a bad owner is named, and never averaged in."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsfr.engines import EngineError, InProcessEngine
from dsfr.engines.local.network import NetworkEngine
from dsfr.engines.topology import make_topology
from dsfr.training import TASKS, make_shards, train
from dsfr.training.tasks.checked_engine import checked
from dsfr.training.tasks.declaration import ContributionError
from dsfr.training.tasks.message import Message
from dsfr.training.tasks.messages import upper_triangle
from dsfr.training.tasks.registry import REGISTRY
from dsfr.training.tasks.semidefinite import MAX_DECOMPOSED, matrix_is_semidefinite, triangle_is_semidefinite
from tests.faults.cases import n_cases, random_of, record
from tests.faults.mutation import mutated
from tests.faults.recorded import some_calls
from tests.tables import make_settings, make_table

BAD = "site-1"
POISONS = {
    "a NaN": lambda array: np.full_like(array, np.nan),
    "an infinity": lambda array: np.full_like(array, np.inf),
    "another shape": lambda array: np.append(array, 1.0),
    "another type": lambda array: array.astype(np.int64),
}


def shards_of_three():
    X, _, y = make_table(0, n_rows=60)
    return make_shards(X, y, np.array([f"site-{i % 3}" for i in range(len(y))]))


def poisoned(task, poison, monkeypatch, shards):
    """Let one agent contribute an array that is spoilt, whatever computes it."""
    declared = REGISTRY[task]
    honest = declared.function

    def bad(shard, memory, broadcast):
        kept, contribution = honest(shard, memory, broadcast)
        if shard.key == shards[BAD].key and contribution:
            contribution = {name: poison(array) for name, array in contribution.items()}
        return kept, contribution

    monkeypatch.setitem(declared.__dict__, "function", bad)


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("measure", {}),
        ("agree", {}),
        ("cluster_sums", {}),
        ("cluster_variances", {}),
        ("statistics", {"solver": "sums"}),
        ("weight_gradient", {}),
        ("weight_consensus", {"solver": "admm"}),
        ("local_clusters", {"solver": "few-rounds"}),
    ],
)
@pytest.mark.parametrize("topology", [None, "ring"])
def test_a_bad_owner_is_named_and_training_stops(task, told, poison, topology, monkeypatch):
    shards = shards_of_three()
    poisoned(task, poison, monkeypatch, shards)
    engine = InProcessEngine(shards, TASKS)
    if topology is not None:
        engine = NetworkEngine(shards, TASKS, make_topology(topology, list(shards)))
    with pytest.raises(ContributionError, match=rf"agent '{BAD}': task '{task}' refuses its contribution: '\w+' "):
        train(engine, make_settings(max_rounds=5, **told))
    assert BAD in engine.agents


def negative(name):
    def spoil(bundle):
        return bundle | {name: -1.0 - np.abs(bundle[name])}

    return spoil


def indefinite(bundle):
    p = len(bundle["moment"])
    gram = np.eye(p)
    gram[0, 1] = 5.0
    return bundle | {"gram": upper_triangle(gram)}


@pytest.mark.parametrize(
    ("task", "spoil", "array"),
    [
        ("agree", negative("n_samples"), "n_samples"),
        ("agree", negative("target_square"), "target_square"),
        ("cluster_sums", negative("mass"), "mass"),
        ("cluster_variances", negative("square"), "square"),
        ("count_below", negative("counts"), "counts"),
        ("statistics", negative("n_labeled"), "n_labeled"),
        ("statistics", indefinite, "gram"),
        ("polynomial_statistics", indefinite, "gram"),
        ("stack", lambda bundle: bundle | {"products": bundle["products"] - 1e9}, "products"),
        ("compare", lambda bundle: bundle | {"products": np.triu(bundle["products"] + 1.0)}, "products"),
        ("left_out_errors", negative("errors"), "errors"),
        ("score", negative("largest"), "largest"),
    ],
)
def test_totals_that_no_agents_can_have_contributed_are_refused(task, spoil, array):
    """The coordinator checks what comes back, whoever added it up."""
    call = some_calls()[task][0]

    class Careless(InProcessEngine):
        def _run_round(self, task, verb, broadcast):
            return [spoil(call.contribution)]

    engine = checked(Careless([1, 2], TASKS))
    with pytest.raises(ContributionError, match=rf"task '{task}' refuses its contribution: '{array}' "):
        getattr(engine, REGISTRY[task].verb)(task, call.broadcast)


def test_a_bad_gathered_contribution_is_refused_by_the_coordinator_and_its_owner_named():
    call = some_calls()["local_clusters"][0]

    class Careless(InProcessEngine):
        present = ("a", "b")

        def _run_round(self, task, verb, broadcast):
            return [call.contribution, call.contribution | {"mass": -call.contribution["mass"]}]

    with pytest.raises(ContributionError, match=r"agent 'b': task 'local_clusters' .*'mass' is from .* must be >= 0"):
        checked(Careless([1, 2], TASKS)).gather("local_clusters", call.broadcast)


def test_mutated_contributions_are_refused_or_still_as_declared(record_property):
    rng, outcomes = random_of("contributions"), Counter()
    answered = [call for calls in some_calls().values() for call in calls if call.contribution]
    for number in range(n_cases(1000)):
        call = answered[number % len(answered)]
        contribution = mutated(call.contribution, rng)
        try:
            REGISTRY[call.task].check_contribution(contribution, {"d": call.shard.n_features})
        except EngineError as error:
            assert f"task {call.task!r}" in str(error)  # noqa: PT017
            outcomes["refused"] += 1
        else:
            assert all(array.dtype == np.float64 and np.isfinite(array).all() for array in contribution.values())
            outcomes["still as declared"] += 1
    assert outcomes["refused"] > outcomes.total() / 3
    record(record_property, outcomes)


@given(st.integers(0, 10_000), st.integers(1, 90), st.integers(0, 90), st.floats(-8.0, 8.0))
def test_matrices_of_products_are_accepted(seed, p, n, power):
    H = np.random.default_rng(seed).standard_normal((n, p)) * 10.0**power
    assert matrix_is_semidefinite(H.T @ H)
    assert triangle_is_semidefinite(upper_triangle(H.T @ H), p)


@given(st.integers(0, 10_000), st.integers(2, MAX_DECOMPOSED), st.floats(0.0, 6.0))
def test_an_indefinite_matrix_is_refused(seed, p, power):
    rng = np.random.default_rng(seed)
    vectors = np.linalg.qr(rng.standard_normal((p, p)))[0]
    values = rng.uniform(0.1, 1.0, p)
    values[0] = -0.1
    assert not matrix_is_semidefinite(10.0**power * (vectors * values) @ vectors.T)


@pytest.mark.parametrize("p", [MAX_DECOMPOSED + 1, 300])
def test_large_matrices_are_refused_by_necessary_conditions(p):
    gram = np.eye(p)
    assert triangle_is_semidefinite(upper_triangle(gram), p)
    gram[3, 7] = gram[7, 3] = 1.5
    assert not triangle_is_semidefinite(upper_triangle(gram), p)
    gram = np.eye(p)
    gram[5, 5] = -1.0
    assert not triangle_is_semidefinite(upper_triangle(gram), p)
    gram = np.eye(p)
    gram[5, 6] = 0.5
    assert not matrix_is_semidefinite(gram)


def test_a_problem_names_array_rule_and_value():
    declared = Message(REGISTRY["start_centers"].broadcast)
    told = dict(some_calls()["start_centers"][0].broadcast)
    problem = declared.problem(told | {"fuzzifier": np.asarray(0.5)}, {"d": 2})
    assert problem == "'fuzzifier' is 0.5, and must be > 1"
    problem = declared.problem(told | {"n_rules": np.asarray(9999)}, {"d": 2})
    assert problem == "'n_rules' is 9999, and must be 1 to 5000 / (d + 1)"
    centers = {"centers": np.zeros((2, 3))}
    problem = Message(REGISTRY["cluster_sums"].broadcast).problem(centers, {"d": 2})
    assert problem == "'centers' has shape (2, 3), and must have shape (k, d) = (2, 2)"
