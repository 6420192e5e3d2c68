"""Automatic models and short rules under a policy: the model of plain sums, and refusals make it smaller."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import (
    AutoSFRRegressor,
    Ensemble,
    InProcess,
    Policy,
    PolicyError,
    RangeScaling,
    RuleRegressor,
    SFRRegressor,
    load,
)
from dsfr.core.explain.student_notes import notes_of
from dsfr.core.scaling.affine import Ranges
from dsfr.core.scaling.grid import MOST_VALUES, coarse_counts, grid, is_on_grid
from dsfr.disclosure import protect, protected_tasks
from dsfr.disclosure.tails import find_tails, within_tails
from dsfr.engines import InProcessEngine, RefusedError
from dsfr.engines.checkpoint.engine import with_checkpoint
from dsfr.training import TASKS, make_shards
from tests.disclosure.crypto import needs_cryptography
from tests.tables import SumsAlone, make_table

LIKE_SUMS = {"uncertainty": False, "ensemble": Ensemble(max_weights_per_label=1 / 3)}


def scaling(n_features):
    unit = 10.0 ** np.arange(n_features)
    return RangeScaling(lower=3.0 - unit, upper=3.0 + unit, target_range=(0.0, 100.0))


def estimator(kind, n_features, **told):
    if kind == "sfr":
        return SFRRegressor(n_rules=2, tune="evidence", scaling=scaling(n_features), random_state=0)
    auto = AutoSFRRegressor(scaling=scaling(n_features), random_state=0, **LIKE_SUMS).set_params(**told)
    return auto if kind == "auto" else RuleRegressor(teacher=auto.set_params(random_state=None), random_state=0)


def fitted(kind, X, y, n_owners, engine_of, **told):
    """A model trained over an engine."""
    shards = make_shards(X, y, np.arange(len(y)) % n_owners)
    names = [f"x{j}" for j in range(X.shape[1])]
    return estimator(kind, X.shape[1], **told).fit_over(lambda _: engine_of(shards), names)


def guarded(policy=None, masked=False):
    def engine_of(shards):
        tasks = protected_tasks(TASKS, policy=policy or Policy(), masked=masked)
        return protect(InProcessEngine(shards, tasks), policy=True, masked=masked)

    return engine_of


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 1000),
    kind=st.sampled_from(["auto", "rules"]),
    n_owners=st.integers(3, 5),
    n_features=st.integers(1, 3),
    effects=st.sampled_from(["auto", "single", None]),
)
def test_masks_change_nothing_in_automatic_models_and_short_rules(seed, kind, n_owners, n_features, effects):
    needs_cryptography()
    X, _, y = make_table(seed, n_rows=400, n_features=n_features, n_labels=110)
    plain, masked = (
        fitted(kind, X, y, n_owners, guarded(masked=masked), ensemble__effects=effects).model_.predict(X)
        for masked in (False, True)
    )
    assert np.abs(masked - plain).max() <= 1e-8 * np.nanstd(y)


def test_a_policy_that_refuses_nothing_moves_tails_and_changes_nothing_else():
    X, _, y = make_table(1, n_rows=4000, n_labels=90)
    declared = scaling(3).declared

    def on_moved(shards):
        moved = {name: within_tails(own, find_tails(Policy(), own, declared)) for name, own in shards.items()}
        return SumsAlone(moved, TASKS)

    plain, kept = (fitted("auto", X, y, 3, engine) for engine in (on_moved, guarded()))
    assert len(kept.models_) == len(plain.models_) >= 3
    np.testing.assert_array_equal(kept.model_.predict(X), plain.model_.predict(X))


def test_refusals_make_models_smaller_and_tighter_rules_more_so():
    X, full, y = make_table(0, n_rows=600, n_labels=150)
    plain = fitted("auto", X, y, 5, lambda shards: SumsAlone(shards, TASKS))
    kept = fitted("auto", X, y, 5, guarded())
    tight = fitted("auto", X, y, 5, guarded(Policy(min_mass=30.0)))
    sizes = [sum(model["n_rules"] for model in getattr(each, "models_", ())) for each in (plain, kept, tight)]
    assert sizes[0] > sizes[1] > sizes[2]
    assert np.std(kept.model_.predict(X) - full) < 0.05 * np.std(full)


def test_the_same_policy_in_one_line_of_python():
    X, full, y = make_table(0, n_rows=900, n_labels=150)
    where = InProcess(policy=Policy())
    teacher = AutoSFRRegressor(scaling=scaling(3), **LIKE_SUMS)
    model = RuleRegressor(teacher=teacher, engine=where, n_agents=3, random_state=0).fit(X, y)
    assert 2 <= len(model.rules_) <= 5
    assert np.std(model.predict(X) - full) < 0.2 * np.std(full)
    ends = grid(scaling(3).declared)
    rules = model.model_.mixture.strongest.basis
    for j in range(3):
        assert is_on_grid(np.array(rules.ramps_of(j)).ravel(), ends[j], scaling(3).declared, j) or not rules.ramps_of(j)


@pytest.mark.parametrize("engine_of", [guarded(), lambda shards: SumsAlone(shards, TASKS)], ids=["policy", "sums"])
def test_what_the_strongest_rule_alone_costs_is_not_made_up(engine_of, tmp_path):
    X, _, y = make_table(0, n_rows=900, n_labels=150)
    told, known = (fitted("rules", X, y, 3, engine) for engine in (engine_of, lambda s: InProcessEngine(s, TASKS)))
    assert len(told.rules_) > 1
    assert "strongest_price" not in told.complexity_
    assert known.complexity_["strongest_price"] > 0.0
    kept = load(told.save(tmp_path / "m.dsfr"))
    assert kept.training["student"]["strongest_price"] is None
    for card in (told.rules_, kept.explain()):
        assert "strongest rule alone" not in " ".join(card.notes)


@pytest.mark.parametrize(
    ("alone", "end"), [(None, "both)."), (0.05, "both); answering with the strongest rule alone: 5.0%.")]
)
def test_the_price_of_the_strongest_rule_is_said_if_it_is_known(alone, end):
    teacher = {"teacher_members": 1, "teacher_weights": 9, "teacher_error": 2.0}
    record = {"is_signal": True, "price": 0.03, "strongest_price": alone, "curve": [], "max_rules": 5, **teacher}
    (said,) = notes_of(record, 2)
    assert said.startswith("Price of readability: 2 rules with 3.0% more error than a model with 9 weights (expected")
    assert said.endswith(end)


def test_a_refusal_is_replayed_from_a_checkpoint(tmp_path):
    X, _, y = make_table(0, n_rows=600, n_labels=150)
    expected = fitted("auto", X, y, 5, guarded())
    left = iter(range(15))

    class Dying(InProcessEngine):
        def _run_round(self, task, verb, broadcast):
            if task not in ("identify", "state_labels_and_key", "admit_owners") and next(left, None) is None:
                raise OSError("killed")
            return super()._run_round(task, verb, broadcast)

    def resuming(kind):
        def engine_of(shards):
            tasks = protected_tasks(TASKS, policy=Policy())
            engine = protect(kind(shards, tasks), policy=True, masked=False)
            return with_checkpoint(engine, tmp_path, {}, resume=True)

        return engine_of

    with pytest.raises(OSError, match="killed"):
        fitted("auto", X, y, 5, resuming(Dying))
    resumed = fitted("auto", X, y, 5, resuming(InProcessEngine))
    np.testing.assert_array_equal(resumed.model_.predict(X), expected.model_.predict(X))


def test_models_of_a_given_size_are_not_made_smaller():
    X, _, y = make_table(0, n_rows=200, n_labels=90)
    with pytest.raises(PolicyError, match="'cluster_mass'") as error:
        fitted("auto", X, y, 3, guarded(), ensemble__n_models=1, n_rules=7)
    assert isinstance(error.value, RefusedError)


@given(low=st.floats(-1e3, 1e3), length=st.floats(1e-3, 1e9))
def test_grids_are_round_few_and_inside_their_range(low, length):
    ranges = Ranges(np.array([low]), np.array([low + length]))
    values = np.unique(grid(ranges)[0])
    assert 13 <= len(values) <= MOST_VALUES
    assert (values >= low - 1e-6 * length).all()
    assert (values <= low + length * (1.0 + 1e-6)).all()
    steps = np.diff(values)
    np.testing.assert_allclose(steps, steps[0], rtol=1e-5)
    assert is_on_grid(values, grid(ranges)[0], ranges, 0)
    assert not is_on_grid(values[:-1] + steps / 2.0, grid(ranges)[0], ranges, 0)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=33), st.integers(1, 12))
def test_coarse_counts_show_no_few_rows_and_are_near(cells, least):
    counts, n = np.cumsum(cells[:-1] or [0]).astype(float), float(sum(cells))
    shown = coarse_counts(counts, n, float(least))
    steps = np.diff(shown, prepend=0.0, append=n)
    assert ((steps == 0.0) | (steps >= least)).all() or n < least
    if n >= least:
        assert np.abs(shown - counts).max() < least
