"""Masked sums equal plain ones, single contributions look random, and no mask is used for two questions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.disclosure import Policy, PolicyError, protect, protected_tasks
from dsfr.disclosure.masks import mask, new_key, pair_secrets, public_key, question
from dsfr.disclosure.owner import ADMIT, ROUND, STATE
from dsfr.disclosure.ring import add, decode, encode, from_parts, negate, to_parts
from dsfr.disclosure.statements import Statement, pack_statements
from dsfr.engines import EngineError, InProcessEngine
from dsfr.training import TASKS, RangeScaling, make_shards, train
from tests.disclosure.crypto import needs_cryptography
from tests.tables import SumsAlone, make_settings, make_table, owners_of

needs_cryptography()

FLOATS = st.floats(-(2.0**40), 2.0**40, allow_subnormal=False)
NUMBERS = st.lists(FLOATS, min_size=1, max_size=8)


@given(NUMBERS, st.integers(1, 20))
def test_the_ring_adds_as_exact_fractions_do(values, times):
    array = np.array(values)
    total = encode(array)
    for _ in range(times - 1):
        total = add(total, encode(array))
    np.testing.assert_allclose(decode(*total, array.dtype), times * array, rtol=1e-15, atol=times * 2.0**-64)


@given(st.lists(st.integers(-(2**62), 2**62), min_size=1), NUMBERS)
def test_numbers_survive_and_negation_is_exact(integers, values):
    for array in (np.array(integers), np.array(values)):
        words = encode(array)
        np.testing.assert_allclose(decode(*words, array.dtype), array, rtol=0, atol=2.0**-64)
        zero = add(words, negate(*words))
        assert not zero[0].any()
        assert not zero[1].any()


@given(st.integers(0, 2**32), st.integers(1, 50))
def test_sums_of_parts_carry(seed, n_owners):
    rng = np.random.default_rng(seed)
    words = [tuple(rng.integers(0, 2**64, 5, dtype=np.uint64) for _ in range(2)) for _ in range(n_owners)]
    expected = words[0]
    for other in words[1:]:
        expected = add(expected, other)
    # As floats, which is how MPI adds.
    parts = sum(to_parts(*word).astype(np.float64) for word in words).astype(np.uint64)
    for found, wanted in zip(from_parts(parts), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@given(st.integers(2, 6), st.integers(0, 20))
def test_masks_cancel_in_the_sum_of_all_and_in_no_other(n_owners, size):
    private = [new_key() for _ in range(n_owners)]
    keys = [public_key(one) for one in private]
    masks = [mask(pair_secrets(one, keys), i, b"question", size) for i, one in enumerate(private)]
    total = masks[0]
    for other in masks[1:]:
        if size:
            assert total[0].any()
        total = add(total, other)
    assert not total[0].any()
    assert not total[1].any()


def test_a_mask_belongs_to_one_question():
    asked = {"x": np.zeros(2)}
    same = (b"run", 1, "task", asked, [b"a", b"b"])
    others = [
        (b"ran", *same[1:]),
        (b"run", 2, *same[2:]),
        (b"run", 1, "tusk", *same[3:]),
        (*same[:3], {"x": np.array([0.0, 1e-300])}, same[4]),
        (*same[:3], {"y": np.zeros(2)}, same[4]),
        (*same[:3], {"x": np.zeros((2, 1))}, same[4]),
        (*same[:4], [b"a", b"c"]),
    ]
    digests = {question(*one) for one in [same, *others]}
    assert len(digests) == 1 + len(others)
    assert question(*same[:4], [b"b", b"a"]) == question(*same)


def masked_engine(shards, policy=None):
    tasks = protected_tasks(TASKS, policy=policy, masked=True)
    return protect(InProcessEngine(shards, tasks, serialize=True), policy=policy is not None, masked=True)


@pytest.mark.slow
@settings(max_examples=15)
@given(
    seed=st.integers(0, 1000),
    n_owners=st.integers(2, 6),
    n_rules=st.integers(1, 4),
    solver=st.sampled_from(["sums", "conjugate", "admm"]),
    unlabeled=st.sampled_from(["icr", "graph", None]),
    ridge=st.sampled_from([1e-3, 0.1, 10.0]),
    unit=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_masked_and_plain_trainings_give_the_same_model(seed, n_owners, n_rules, solver, unlabeled, ridge, unit):
    X, _, y = make_table(seed, n_rows=120, n_features=2, n_labels=40)
    y *= unit
    shards = make_shards(X, y, owners_of(seed, len(y), n_owners))
    scaling = RangeScaling(lower=X.min(axis=0), upper=X.max(axis=0), target_range=(0.0, 100.0 * unit))
    told = make_settings(seed=seed, n_rules=n_rules, solver=solver, unlabeled=unlabeled, ridge=ridge, scaling=scaling)
    plain, masked = train(SumsAlone(shards, TASKS), told), train(masked_engine(shards), told)
    apart = np.abs(plain.predictor.predict(X) - masked.predictor.predict(X)).max()
    assert apart <= 1e-8 * np.nanstd(y)


class Wiretap(InProcessEngine):
    def _contributions(self, task, verb, broadcast):
        self.heard = super()._contributions(task, verb, broadcast)
        return self.heard


def wiretapped(seed=0, n_rows=120):
    X, _, y = make_table(seed, n_rows=n_rows)
    wire = Wiretap(make_shards(X, y, np.arange(len(y)) % 3), protected_tasks(TASKS, masked=True))
    return wire, protect(wire, policy=False, masked=True)


def test_single_contributions_and_sums_of_some_look_random():
    wire, engine = wiretapped()
    message = {"seed": np.asarray(0), "low": np.zeros(3), "high": np.ones(3)}
    bits = []
    for _ in range(200):
        engine.sum("row_moments", message)
        some = wire.heard[0]["f_total"] + wire.heard[1]["f_total"]
        bits += [np.stack([wire.heard[0]["f_total"], some & np.uint64(0xFFFFFFFF)])]
    parts = np.stack(bits)
    for bit in range(32):  # 4800 throws of a coin: 5 deviations are 173
        assert abs(int(((parts >> np.uint64(bit)) & np.uint64(1)).sum()) - parts.size / 2) < 5 * np.sqrt(parts.size) / 2


def test_a_round_is_not_answered_twice():
    wire, engine = wiretapped()
    message = {"seed": np.asarray(0), "low": np.zeros(3), "high": np.ones(3)}
    engine.sum("row_moments", message)
    for number in (1, 0):
        with pytest.raises(PolicyError, match=f"round {number} is not after round 1"):
            wire.sum("row_moments", {**message, ROUND: np.asarray(number)})
    with pytest.raises(PolicyError, match="round 0 is not after"):
        wire.sum("row_moments", message)


def test_owners_that_were_asked_different_questions_are_noticed():
    _, engine = wiretapped()
    agents = engine._engine._agents
    run = agents["1"].run
    agents["1"].run = lambda task, broadcast: run(task, {**broadcast, "low": broadcast["low"] - 1e-12})
    with pytest.raises(EngineError, match="masks do not cancel in task 'row_moments'"):
        engine.sum("row_moments", {"seed": np.asarray(0), "low": np.zeros(3), "high": np.ones(3)})


def test_extremes_and_single_contributions_are_refused_by_owners():
    wire, _ = wiretapped()
    with pytest.raises(PolicyError, match="'measure' is refused: it is no sum"):
        wire.sum("measure", {"seed": np.asarray(0), ROUND: np.asarray(1)})


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda found: found[1:], "own statement is not among"),
        (lambda found: [*found, found[0]], "own statement is not among|not all different"),
        (lambda found: found[:1], "0 partners|own statement"),
        (lambda found: [*found[:2], Statement(5, b"")], "own statement|public keys are missing"),
        (lambda found: [found[0], found[1], found[2], Statement(0, found[2].public_key)], "not all different"),
    ],
)
def test_changed_statements_are_refused(change, match):
    X, _, y = make_table(0)
    bare = InProcessEngine(make_shards(X, y, np.arange(len(y)) % 3), protected_tasks(TASKS, masked=True))
    found = [Statement.of(part) for part in bare.gather(STATE, {})]
    with pytest.raises(PolicyError, match=match):
        bare.sum(ADMIT, pack_statements(change(found)))
    with pytest.raises(PolicyError, match="owners have not admitted each other"):
        bare.sum("identify", {ROUND: np.asarray(1)})


@pytest.mark.parametrize("statements", [np.zeros(4), np.arange(40, dtype=np.uint8), np.empty(0, dtype=np.uint8)])
def test_statements_that_are_none_are_refused(statements):
    X, _, y = make_table(0)
    bare = InProcessEngine(make_shards(X, y, np.arange(len(y)) % 3), protected_tasks(TASKS, masked=True))
    bare.gather(STATE, {})
    with pytest.raises(PolicyError, match="refused"):
        bare.sum(ADMIT, {"statements": statements})


def test_numbers_that_are_too_large_are_refused():
    X, _, y = make_table(0)
    engine = masked_engine(make_shards(X, y, np.arange(len(y)) % 3))
    with pytest.raises(PolicyError, match=r"'total' has numbers that are too large for masked sums|'products' has"):
        engine.sum("row_moments", {"seed": np.asarray(0), "low": np.zeros(3), "high": np.full(3, 1e-20)})


def test_policy_and_masks_together_give_the_plain_model():
    X, _, y = make_table(0, n_rows=300, n_labels=90)
    shards = make_shards(X, y, np.arange(len(y)) % 3)
    scaling = RangeScaling(lower=X.min(axis=0), upper=X.max(axis=0), target_range=(0.0, 100.0))
    told = make_settings(n_rules=3, solver="sums", tune="evidence", scaling=scaling)
    plain, both = (train(engine, told) for engine in (SumsAlone(shards, TASKS), masked_engine(shards, Policy())))
    np.testing.assert_allclose(both.predictor.predict(X), plain.predictor.predict(X), rtol=0, atol=1e-8)
