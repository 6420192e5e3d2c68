"""Weights of labels: 2 is the label twice, 0 is no label; where labels choose, only ratios of weights count."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data

from dsfr import (
    ICR,
    AutoSFRRegressor,
    Ensemble,
    InProcess,
    LapWNNRegressor,
    Policy,
    PolicyError,
    RangeScaling,
    RuleRegressor,
    SFRRegressor,
)
from dsfr.core.compiled import available
from dsfr.core.density import RowDensity
from dsfr.core.features.takagi_sugeno import MANY_ROWS, Rules
from dsfr.core.scaling.quantiles import counts_below
from dsfr.core.solve.cholesky import cholesky, solve_factored
from dsfr.core.solve.leave_one_out import Together, left_out_residuals, left_out_variances, leverages
from dsfr.core.solve.statistics import Statistics
from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, make_shards, train
from dsfr.training.changed_rows import CompletedRows
from dsfr.training.rows import ArrayRows, ChangedRows, DerivedRows, DistinctRows, has_weights, weighted
from dsfr.training.settings import Settings
from dsfr.training.shard import LOG_TARGET, Shard
from dsfr.training.tasks.messages import pack
from tests.faults.recorded import record
from tests.tables import make_settings, make_table, owners_of

seeds = st.integers(0, 10_000)
TEACHER = SFRRegressor(n_rules=2, tune="evidence", uncertainty=True)
ALL = [
    SFRRegressor(random_state=0),
    SFRRegressor(n_agents=3, solver="sums", random_state=0),
    SFRRegressor(tune="loo", uncertainty=True, scaling="robust", random_state=0),
    AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects="pairs"), random_state=0),
    RuleRegressor(teacher=TEACHER, random_state=0),
    LapWNNRegressor(n_nodes=20, random_state=0),
]


def repeated(X, y, owners, times):
    """Two tables with the same rows: labels once, with unlabelled copies of their rows; and labels so many times."""
    rows = np.concatenate([np.arange(len(y)), np.repeat(np.arange(len(y)), times - 1)])
    once, often = y[rows].copy(), y[rows]
    once[len(y) :] = np.nan
    weights = np.ones(len(rows))
    weights[: len(y)] = times
    return X[rows], owners[rows], once, weights, often


@settings(max_examples=15)
@given(
    seed=seeds,
    n_agents=st.integers(1, 3),
    told=st.fixed_dictionaries(
        {
            "n_rules": st.integers(1, 4),
            "ridge": st.floats(1e-2, 10.0),
            "unlabeled": st.sampled_from(["graph", None]),
            "solver": st.sampled_from(["sums", "conjugate", "admm"]),
            "basis": st.sampled_from(["rules", "wavelets"]),
        }
    ),
)
def test_a_weight_of_two_is_the_label_twice(seed, n_agents, told):
    X, _, y = make_table(seed, n_rows=50, n_labels=20)
    times = np.where(np.isnan(y), 1, np.random.default_rng(seed).integers(1, 4, len(y)))
    X2, owners, once, weights, often = repeated(X, y, owners_of(seed, len(y), n_agents), times)
    chosen = make_settings(seed=seed, tol=1e-10, n_nodes=10, **told)
    weighted = train(InProcessEngine(make_shards(X2, once, owners, weights), TASKS), chosen)
    counted = train(InProcessEngine(make_shards(X2, often, owners), TASKS), chosen)
    np.testing.assert_allclose(weighted.mixture.predict(X), counted.mixture.predict(X), rtol=1e-6)
    assert weighted.n_labeled == np.count_nonzero(~np.isnan(y))


@settings(max_examples=8)
@given(
    seed=seeds,
    unlabeled=st.sampled_from(["graph", None]),
    relevance=st.sampled_from(["evidence", "slopes", None]),
    n_models=st.integers(1, 2),
)
def test_evidence_counts_a_label_as_often_as_its_weight_says(seed, unlabeled, relevance, n_models):
    """With copies that are counted; automatic training counts copies once, and takes ratios of weights."""
    X, _, y = make_table(seed, n_rows=50, n_features=2, n_labels=20, noise=2.0)
    times = np.where(np.isnan(y), 1, np.random.default_rng(seed).integers(1, 4, len(y)))
    X2, owners, once, weights, often = repeated(X, y, owners_of(seed, len(y), 2), times)
    chosen = make_settings(
        seed=seed, tune="evidence", n_models=n_models, relevance=relevance, unlabeled=unlabeled, n_rules=2
    )
    with patch.object(Settings, "merges_duplicates", False):
        weighted = train(InProcessEngine(make_shards(X2, once, owners, weights), TASKS), chosen)
        counted = train(InProcessEngine(make_shards(X2, often, owners), TASKS), chosen)
    # The search for the highest evidence ends within a tolerance of its own.
    np.testing.assert_allclose(weighted.mixture.predict(X), counted.mixture.predict(X), rtol=1e-3)


@pytest.mark.parametrize("estimator", ALL, ids=lambda estimator: type(estimator).__name__)
def test_a_weight_of_zero_is_no_label_and_weights_of_one_are_none(estimator):
    X, _, y = make_table(1, n_rows=60, n_features=2)
    out = np.flatnonzero(~np.isnan(y))[::3]
    hidden, weights = y.copy(), np.ones(len(y))
    hidden[out], weights[out] = np.nan, 0.0
    np.testing.assert_array_equal(
        estimator.fit(X, y, sample_weight=weights).predict(X), estimator.fit(X, hidden).predict(X)
    )
    plain = estimator.fit(X, y).predict(X)
    np.testing.assert_array_equal(estimator.fit(X, y, sample_weight=np.ones(len(y))).predict(X), plain)
    weights[out] = 20.0
    assert not np.allclose(estimator.fit(X, y, sample_weight=weights).predict(X), plain)


@pytest.mark.parametrize("estimator", ALL[2:5], ids=lambda estimator: type(estimator).__name__)
@pytest.mark.parametrize("factor", [1e-3, 50.0])
def test_where_labels_choose_only_ratios_of_weights_count(estimator, factor):
    X, _, y = make_table(2, n_rows=60, n_features=2)
    weights = np.random.default_rng(2).uniform(0.2, 3.0, len(y))
    first = estimator.fit(X, y, sample_weight=weights)
    expected, interval = first.predict(X), np.array(first.predict_interval(X, 0.8))
    second = estimator.fit(X, y, sample_weight=factor * weights)
    np.testing.assert_allclose(second.predict(X), expected, rtol=1e-4)
    np.testing.assert_allclose(np.array(second.predict_interval(X, 0.8)), interval, rtol=1e-3)


@settings(max_examples=10)
@given(seed=seeds, factor=st.floats(1e-2, 1e2), ridge=st.floats(1e-2, 10.0), consistency=st.floats(0.0, 1.0))
def test_without_tuning_larger_weights_are_a_smaller_ridge_and_penalty(seed, factor, ridge, consistency):
    X, _, y = make_table(seed, n_rows=50, n_features=2, n_labels=20)
    weights = np.random.default_rng(seed).uniform(0.2, 3.0, len(y))
    larger = SFRRegressor(3, ridge=ridge, unlabeled=ICR(weight=consistency), random_state=0)
    smaller = SFRRegressor(3, ridge=ridge / factor, unlabeled=ICR(weight=consistency / factor), random_state=0)
    np.testing.assert_allclose(
        larger.fit(X, y, sample_weight=factor * weights).predict(X),
        smaller.fit(X, y, sample_weight=weights).predict(X),
        rtol=1e-6,
    )


@settings(max_examples=10)
@given(seed=seeds, n=st.sampled_from([7, MANY_ROWS + 3]), fast=st.booleans())
def test_weighted_sums_are_those_of_repeated_rows(seed, n, fast):
    rng = np.random.default_rng(seed)
    rules = Rules(rng.uniform(-1.0, 1.0, (3, 2)), rng.uniform(0.3, 1.0, (3, 2)))
    X, y, times = rng.uniform(-1.0, 1.0, (n, 2)), rng.standard_normal(n), rng.integers(1, 4, n)
    fast = fast and available()
    weighted = sum(Statistics.parts(X, y, rules, None, times.astype(float), fast=fast), Statistics.none(9))
    counted = Statistics.of(np.repeat(X, times, axis=0), np.repeat(y, times), rules)
    for name, value in pack(weighted).items():
        np.testing.assert_allclose(value, pack(counted)[name], rtol=1e-9, atol=1e-9 * n, err_msg=name)
    thresholds = np.linspace(-2.0, 2.0, 9)
    np.testing.assert_array_equal(
        counts_below(y, thresholds, times.astype(float)), counts_below(np.repeat(y, times), thresholds)
    )


@settings(max_examples=10)
@given(seed=seeds, ridge=st.floats(1e-3, 10.0))
def test_a_weighted_label_is_left_out_as_a_whole(seed, ridge):
    rng = np.random.default_rng(seed)
    H, y, w = rng.standard_normal((12, 4)), rng.standard_normal(12), rng.uniform(0.1, 5.0, 12)

    def solved(rows):
        factor = cholesky((H[rows].T * w[rows]) @ H[rows] + ridge * np.eye(4))
        return factor, solve_factored(factor, H[rows].T @ (w[rows] * y[rows]))

    factor, weights = solved(np.arange(12))
    together = Together(w, w * (y - H @ weights))
    without = [solved(np.delete(np.arange(12), i)) for i in range(12)]
    expected = [y[i] - H[i] @ without[i][1] for i in range(12)]
    leverage = leverages(H, factor)
    left = left_out_residuals(y - H @ weights, leverage, together)
    np.testing.assert_allclose(left, expected, rtol=1e-8, atol=1e-10)
    spread = [1.0 + np.sum(np.linalg.solve(without[i][0].T, H[i]) ** 2) for i in range(12)]
    np.testing.assert_allclose(left_out_variances(leverage, together), spread, rtol=1e-8)


CHOSEN_BY = [
    {"tune": "loo", "n_models": 2, "relevance": "evidence"},
    {"tune": "evidence", "uncertainty": True, "n_models": 1, "effects": "single", "student": {"max_rules": 3}},
]
LEFT_OUT = ("left_out_errors", "stack", "score", "teacher_errors", "stage_errors", "rule_errors", "score_student")
OVER_LABELS = (*LEFT_OUT, "statistics", "polynomial_statistics")


@pytest.fixture(scope="module")
def calls_over_labels():
    calls = []
    for told in CHOSEN_BY:
        record(calls, **told)
    return [call for call in calls if call.task in OVER_LABELS]


@pytest.mark.parametrize("task", OVER_LABELS)
def test_every_task_sees_a_weight_as_equal_rows_that_are_left_out_together(calls_over_labels, task):
    calls = [call for call in calls_over_labels if call.task == task]
    assert calls
    for call in calls[:3]:
        X, y = call.shard.collected()
        times = np.where(np.isnan(y), 1, np.arange(len(y)) % 3 + 1)
        labeled = ~np.isnan(y)
        groups = np.repeat(np.arange(labeled.sum()), times[labeled])
        weighted = Shard(ArrayRows(X, y, times.astype(float)), call.shard.key)
        counted = Shard(ArrayRows(np.repeat(X, times, axis=0), np.repeat(y, times)), call.shard.key)
        memory = {name: value for name, value in call.memory.items() if not name.startswith("teacher")}
        rows = {name: value[groups] for name, value in memory.items() if name.startswith("left_out")}
        kept, found = TASKS[task](weighted, memory, call.broadcast)
        own, expected = TASKS[task](counted, {**memory, **rows, "label_groups": groups}, call.broadcast)
        for name, value in expected.items():
            np.testing.assert_allclose(found[name], value, rtol=1e-7, atol=1e-9, err_msg=name)
        if "largest" in found:
            asked = {"thresholds": np.linspace(0.0, 1.01 * float(found["largest"]), 400)}
            counts, theirs = (TASKS["count_errors"](s, m, asked)[1] for s, m in ((weighted, kept), (counted, own)))
            np.testing.assert_allclose(counts["squares"], theirs["squares"], rtol=1e-7)
            np.testing.assert_allclose(
                counts["counts"], theirs["counts"], atol=3.0
            )  # errors at a threshold, to rounding
            assert counts["counts"][-1] == theirs["counts"][-1] == times[labeled].sum()


@settings(max_examples=5)
@given(seed=seeds, uncertainty=st.booleans(), scaling=st.sampled_from(["range", "robust"]))
def test_where_copies_count_once_those_of_a_weighted_table_change_nothing(seed, uncertainty, scaling):
    X, _, y = make_table(seed, n_rows=50, n_features=2, n_labels=25)
    weights = np.random.default_rng(seed).uniform(0.2, 3.0, len(y))
    model = SFRRegressor(3, tune="evidence", uncertainty=uncertainty, scaling=scaling, random_state=0)
    expected = model.fit(X, y, sample_weight=weights).predict(X)
    rows = np.repeat(np.arange(len(y)), 2)
    with pytest.warns(UserWarning, match="duplicates of others"):
        found = model.fit(X[rows], y[rows], sample_weight=weights[rows])
    np.testing.assert_allclose(found.predict(X), expected, rtol=1e-6)


@pytest.mark.parametrize("told", [{}, {"topology": "ring"}, {"masks": True}], ids=str)
def test_every_engine_in_process_gives_the_same_model(told):
    if told.get("masks"):
        pytest.importorskip("cryptography", reason="masks need the extra dsfr[federation]")
    X, _, y = make_table(3, n_rows=60, n_features=2)
    owners, weights = owners_of(3, len(y), 3), np.random.default_rng(3).uniform(0.2, 3.0, len(y))
    scaling = RangeScaling(lower=tuple(X.min(axis=0)), upper=tuple(X.max(axis=0)), target_range=(0.0, 100.0))
    model = SFRRegressor(2, solver="sums", scaling=scaling, engine=InProcess(**told), random_state=0)
    found = model.fit(X, y, agents=owners, sample_weight=weights)
    # Where sums alone leave the agents, start centers are other ones: the lines must fit the weighted labels.
    member, labeled = found.model_.members[0].predictor, ~np.isnan(y)
    H = member.basis.features((X - member.ranges.midpoints) / member.ranges.half_widths)[labeled]
    z = (y[labeled] - member.target_mean) / member.target_scale
    gradient = H.T @ (weights[labeled] * (z - H @ member.weights))
    solution = found.sums_.solutions[0]
    penalty = solution.unlabeled_weight * solution.statistics.unlabeled_gram + solution.ridge * np.eye(H.shape[1])
    np.testing.assert_allclose(gradient, penalty @ member.weights, atol=1e-6)


def test_scikit_learns_check_passes_where_rows_decide_neither_scaling_nor_rules():
    """Its zero weights take rows away altogether; with one rule and declared ranges only labels count."""
    ranges = RangeScaling(lower=(0.0,) * 30, upper=(1.0,) * 30)
    check_sample_weight_equivalence_on_dense_data("SFRRegressor", SFRRegressor(1, unlabeled=None, scaling=ranges))
    check_sample_weight_equivalence_on_dense_data(
        "LapWNNRegressor", LapWNNRegressor(200, unlabeled=None, scaling=ranges, ridge=1e-6)
    )


def test_a_policy_refuses_weights_and_a_checkpoint_knows_them():
    X, _, y = make_table(4, n_rows=90, n_features=2, n_labels=60)
    scaling = RangeScaling(lower=tuple(X.min(axis=0)), upper=tuple(X.max(axis=0)), target_range=(0.0, 100.0))
    model = SFRRegressor(
        2, solver="sums", scaling=scaling, n_agents=3, engine=InProcess(policy=Policy(min_rows=5, min_labels=5))
    )
    with pytest.raises(PolicyError, match="policy rule 'weights'"):
        model.fit(X, y, sample_weight=np.linspace(0.5, 2.0, len(y)))
    owners = np.zeros(len(y))
    plain, heavy = (
        InProcessEngine(make_shards(X, y, owners, weights), TASKS).sum("identify", {})["rows"]
        for weights in (None, np.full(len(y), 2.0))
    )
    assert plain[2] != heavy[2]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "sample_weight has shape"),
        (np.ones((60, 2)), "sample_weight has shape"),
        (np.full(60, -1.0), "weights must lie between 0 and"),
        (np.full(60, 1e200), "weights must lie between 0 and"),
        (np.full(60, np.nan), "sample_weight contains NaN"),
        (np.zeros(60), "sample_weight is zero for every labelled row"),
    ],
)
def test_weights_that_are_none_are_refused(weights, message):
    X, _, y = make_table(5, n_rows=60)
    with pytest.raises(ValueError, match=message):
        SFRRegressor(2).fit(X, y, sample_weight=weights)


def test_the_score_counts_labels_by_weight():
    X, full, y = make_table(6, n_rows=60)
    model = SFRRegressor(3, random_state=0).fit(X, y)
    times = np.random.default_rng(6).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), times)
    assert model.score(X, full, sample_weight=times) == pytest.approx(model.score(X[rows], full[rows]))


def test_weights_go_with_rows_whatever_is_made_of_them():
    rng = np.random.default_rng(0)
    source = ArrayRows(rng.normal(size=(7, 2)), rng.uniform(1.0, 2.0, 7), np.arange(1.0, 8.0))
    shard = Shard(source, 0)
    limits = {"limit_low": np.full(2, -1.0), "limit_high": np.ones(2), "target_limits": np.array([1.2, 1.8])}
    kept = DistinctRows(source, np.packbits(np.ones(7, dtype=bool)), 7, 7)
    density = RowDensity(np.zeros(2), np.ones(2), None, -np.ones(2), np.ones(2), np.ones(2), np.zeros(2))
    made = [
        shard.within_limits(limits).rows,
        shard.on_target_scale({LOG_TARGET: np.ones(())}).rows,
        shard.complete().rows,
        CompletedRows(source, density),
        kept,
        shard.labeled().rows,
    ]
    # Slots make each class twice, with one name.
    kinds = {kind.__name__ for base in (DerivedRows, ChangedRows) for kind in base.__subclasses__()} - {"ChangedRows"}
    assert {type(rows).__name__ for rows in made} == kinds
    for rows in made:
        assert has_weights(rows)
        np.testing.assert_array_equal(np.concatenate([own for _, _, own in weighted(rows)]), source.weights)
