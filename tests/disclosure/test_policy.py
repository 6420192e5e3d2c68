"""The policy: every task has rules, every refusal names rule and numbers, and files tighten the defaults only."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import InProcess, Policy, PolicyError, RangeScaling, SFRRegressor, load
from dsfr.disclosure import protect, protected_tasks
from dsfr.disclosure.function_rules import all_rows
from dsfr.disclosure.rules import Request
from dsfr.disclosure.statements import Statement
from dsfr.disclosure.table import TABLE
from dsfr.engines import Absence, EngineError, Faults, InProcessEngine
from dsfr.engines.checkpoint.engine import with_checkpoint
from dsfr.training import TASKS, make_shards, train
from dsfr.training.scaling.robust import agree_scaling
from dsfr.training.tasks.checked_engine import checked
from dsfr.training.tasks.registry import REGISTRY
from tests.disclosure.crypto import needs_cryptography
from tests.tables import SumsAlone, make_settings, make_table

SMALL = Policy(min_rows=10, min_mass=0.1)


def declared(X, y):
    low, high = np.nanmin(y), np.nanmax(y)
    return RangeScaling(lower=X.min(axis=0), upper=X.max(axis=0), target_range=(low - 1.0, high + 1.0))


def engine_of(X, y, owners, policy, **options):
    shards = make_shards(X, y, np.asarray(owners))
    return protect(InProcessEngine(shards, protected_tasks(TASKS, policy=policy), **options), policy=True, masked=False)


def test_every_task_has_rules_or_a_reason():
    assert TABLE.keys() == REGISTRY.keys(), "add new tasks to src/dsfr/disclosure/table.py: others are refused"
    for name, rules in TABLE.items():
        assert rules.refused or REGISTRY[name].verb == "sum", f"{name} is no sum, so it must be refused"


@settings(max_examples=15)
@given(
    seed=st.integers(0, 1000),
    n_owners=st.integers(3, 5),
    n_rules=st.integers(1, 4),
    solver=st.sampled_from(["sums", "conjugate", "admm"]),
    unlabeled=st.sampled_from(["icr", "graph", None]),
    fuzzifier=st.sampled_from([1.1, 1.5, 2.0]),
)
def test_a_policy_that_is_kept_changes_nothing(seed, n_owners, n_rules, solver, unlabeled, fuzzifier):
    X, _, y = make_table(seed, n_rows=200, n_features=2, n_labels=60)
    owners = np.arange(len(y)) % n_owners
    told = make_settings(
        seed=seed, n_rules=n_rules, solver=solver, unlabeled=unlabeled, fuzzifier=fuzzifier, scaling=declared(X, y)
    )
    plain = train(SumsAlone(make_shards(X, y, owners), TASKS), told)
    guarded = train(engine_of(X, y, owners, SMALL), told)
    np.testing.assert_array_equal(guarded.predictor.predict(X), plain.predictor.predict(X))


@pytest.mark.parametrize(
    ("policy", "match"),
    [
        (replace(SMALL, min_rows=41), "'rows': 40 own rows, and min_rows is 41"),
        (replace(SMALL, min_labels=21), "'labels': 20 own labels, and min_labels is 21"),
        (replace(SMALL, min_partners=3), "'partners': 2 partners, and at least 3"),
        (replace(SMALL, max_weights_per_label=0.1), "'weights': 8 weights for 60 labels.*is 0.1: at most 6"),
        (replace(SMALL, min_fuzzifier=1.2), "'fuzzifier': a fuzzifier of 1.1, and min_fuzzifier is 1.2"),
        (replace(SMALL, max_centers=1), "'centers': 2 centers, and max_centers is 1"),
        (replace(SMALL, min_mass=30.0), "'cluster_mass': a cluster with a mass of .* and min_mass is 30"),
        (replace(SMALL, max_rounds=4), "'rounds': this is round 5 of the fit, and max_rounds is 4"),
    ],
    ids=lambda value: "" if isinstance(value, Policy) else value[1:10].strip("':"),
)
def test_each_refusal_names_rule_and_numbers(policy, match):
    X, _, y = make_table(3, n_rows=120, n_labels=60)
    y = np.where(np.arange(len(y)) < 60, 1.0 + X[:, 0], np.nan)
    with pytest.raises(PolicyError, match=match):
        train(
            engine_of(X, y, np.arange(len(y)) % 3, policy),
            make_settings(n_rules=2, solver="sums", fuzzifier=1.1, scaling=declared(X, y)),
        )


@pytest.mark.parametrize("labels", [(8, 12, 7, 9, 5), (5, 0, 20, 14, 6)])
def test_the_coordinator_counts_the_labels_that_owners_have_stated(labels, tmp_path):
    """And not fewer: one more curve or rule may be allowed."""
    X, full, _ = make_table(0, n_rows=300)
    owners, places = np.arange(300) % 5, np.arange(300) // 5
    y = np.where(places < np.array(labels)[owners], full, np.nan)
    engine = checked(with_checkpoint(engine_of(X, y, owners, SMALL), tmp_path, {}, resume=True))
    stated = sum(number // 5 * 5 for number in labels)
    assert engine.stated_labels == stated
    assert agree_scaling(engine, make_settings(scaling=declared(X, y))).stated_labels == stated


@pytest.mark.parametrize("task", [name for name, rules in TABLE.items() if rules.refused])
def test_refused_tasks_are_refused_by_owners_even_if_the_coordinator_asks(task):
    X, _, y = make_table(0)
    guarded = engine_of(X, y, np.arange(len(y)) % 3, SMALL)
    with pytest.raises(PolicyError, match=f"task '{task}' is refused: "):
        guarded._engine.sum(task, {})
    before = guarded.ledger.rounds
    with pytest.raises(PolicyError, match=f"{task}.* is refused: "):
        guarded.sum(task, {})
    assert guarded.ledger.rounds == before, "the coordinator does not even send it"


@pytest.mark.parametrize("task", ["cluster_sums", "cluster_variances", "keep_teacher"])
def test_sums_over_a_sample_are_refused_because_two_of_them_can_differ_in_one_row(task):
    request = Request(SMALL, None, {}, {"sample": np.asarray(0.5)}, 60, {})
    assert all_rows in TABLE[task].before
    assert all_rows(request) == "a sample of the rows"
    assert all_rows(replace(request, broadcast={})) is None


def test_nothing_leaves_before_owners_have_admitted_each_other():
    X, _, y = make_table(0)
    bare = InProcessEngine(make_shards(X, y, np.arange(len(y)) % 3), protected_tasks(TASKS, policy=SMALL))
    with pytest.raises(PolicyError, match="owners have not admitted each other"):
        bare.sum("identify", {})


@pytest.mark.parametrize("masked", [False, True])
def test_owners_that_admit_each_other_again_go_on_counting_rounds(masked, tmp_path):
    """A coordinator says when: without this it has as many rounds as it likes."""
    if masked:
        needs_cryptography()
    X, _, y = make_table(0, n_rows=300)
    tasks = protected_tasks(TASKS, policy=replace(SMALL, max_rounds=3), masked=masked)
    asked = {"seed": np.asarray(0), "low": X.min(axis=0), "high": X.max(axis=0)}

    def opened(bare):
        return protect(bare, policy=True, masked=masked)

    owners, restarted = (InProcessEngine(make_shards(X, y, np.arange(len(y)) % 3), tasks) for _ in range(2))
    opened(owners).save_memories((tmp_path / "first").joinpath)
    for _ in range(3):
        opened(owners).sum("row_moments", asked)
    owners.save_memories((tmp_path / "last").joinpath)
    opened(restarted).sum("row_moments", asked)
    for bare, memory in ((owners, ""), (owners, "first"), (restarted, "last")):
        engine = opened(bare)
        if memory:
            engine.load_memories((tmp_path / memory).joinpath)
        with pytest.raises(PolicyError, match="'rounds': this is round 4 of the fit, and max_rounds is 3"):
            engine.sum("row_moments", asked)


def test_labels_are_stated_in_multiples():
    X, _, y = make_table(0, n_rows=120, n_labels=120)
    y[7 * 3 :] = np.nan
    bare = InProcessEngine(make_shards(X, y, np.arange(len(y)) % 3), protected_tasks(TASKS, policy=SMALL))
    assert [Statement.of(part).labels for part in bare.gather("state_labels_and_key", {})] == [5, 5, 5]


def test_a_sum_without_an_owner_is_not_used():
    X, _, y = make_table(0)
    away = Faults(absences=[Absence("1", 1, 1, task="row_moments")])
    guarded = engine_of(X, y, np.arange(len(y)) % 3, SMALL, faults=away)
    with pytest.raises(EngineError, match="1 did not take part in task 'row_moments'"):
        train(guarded, make_settings(n_rules=1, scaling=declared(X, y)))


def test_estimators_take_a_policy_and_the_model_file_keeps_it(tmp_path):
    X, _, y = make_table(0, n_rows=240, n_labels=90)
    model = SFRRegressor(
        n_rules=3, n_agents=3, scaling=declared(X, y), engine=InProcess(policy=Policy()), random_state=0
    )
    path = model.fit(X, y).save(tmp_path / "model.dsfr")
    assert load(path).settings["engine"]["policy"]["max_weights_per_label"] == pytest.approx(1 / 3)
    allowed = InProcess(policy=Policy(columns=("x0", "x1")))
    with pytest.raises(ValueError, match="'columns': x2 may not be used; allowed are x0, x1"):
        model.set_params(engine=allowed).fit(X, y)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"scaling": "range"}, "declare the ranges, scaling=RangeScaling"),
        ({"scaling": "robust"}, "declare the ranges, scaling=RangeScaling"),
        ({"solver": "few-rounds"}, 'few-rounds" gathers the centers.*take solver="sums"'),
        ({"tune": "loo"}, 'tune="loo" needs leave-one-out errors.*tune="evidence"'),
        ({"uncertainty": True}, "uncertainty=True needs leave-one-out errors.*take uncertainty=False"),
    ],
)
def test_settings_that_need_more_than_sums_are_refused_with_the_remedy(params, match):
    X, _, y = make_table(0, n_rows=240, n_labels=90)
    told = {"scaling": declared(X, y), "n_rules": 2, "n_agents": 3, **params}
    with pytest.raises((ValueError, PolicyError), match=match):
        SFRRegressor(engine=InProcess(policy=Policy()), **told).fit(X, y)


def test_a_policy_file_tightens_and_never_loosens(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text("min_rows = 100\nmax_weights_per_label = 0.2\ncolumns = ['a', 'b']\n")
    assert Policy.read(path) == Policy(min_rows=100, max_weights_per_label=0.2, columns=("a", "b"))
    for text, match in {
        "min_rows = 10": "looser than the defaults in min_rows=10",
        "max_rounds = 5000": "looser than the defaults in max_rounds=5000",
        "maximum = 3": "unknown rules maximum",
        "min_rows = 'many'": "min_rows='many' must be a whole number",
        "min_rows": "is not TOML",
    }.items():
        path.write_text(text)
        with pytest.raises(ValueError, match=match):
            Policy.read(path)


@given(st.data())
def test_looser_is_found_for_every_rule(data):
    name = data.draw(st.sampled_from([entry.name for entry in fields(Policy) if entry.name != "columns"]))
    own = Policy(epsilon=1.0, delta=0.05, min_label_mass=5.0)  # nothing is looser than none
    value = getattr(own, name)
    step = 1 if isinstance(value, int) else 0.01
    up, down = replace(own, **{name: value + step}), replace(own, **{name: value - step})
    tighter, looser = (up, down) if name.startswith("min_") else (down, up)
    assert looser.looser_than(own) == [name]
    assert tighter.looser_than(own) == []
