"""The student of a teacher does not depend on who owns the rows, in which order they come, or how they are read."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsfr import RuleRegressor, scan
from dsfr.core.distillation.split_sums import SplitSums, bin_positions, triangle_products
from dsfr.core.features.linguistic import ramp
from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, make_shards, train
from dsfr.training.distillation.distill import distill
from dsfr.training.distillation.settings import StudentSettings
from tests.tables import make_settings, owners_of
from tests.test_rule_card import hyperparameters, table, teacher

seeds = st.integers(0, 10_000)
told = {"n_rules": 3, "tune": "evidence", "scaling": "robust", "uncertainty": True}


def trained_engine(X, y, owners, *, serialize=False, **more):
    engine = InProcessEngine(make_shards(X, y, owners), TASKS, serialize=serialize)
    return engine, train(engine, make_settings(**told | more))


@pytest.mark.slow
@settings(max_examples=20)
@given(seeds, st.integers(2, 5), hyperparameters, st.sampled_from(["robust", "range"]), st.booleans())
def test_distributed_equals_pooled(seed, n_agents, hyper, scaling, uncertainty):
    X, _, y = table(seed)
    own = StudentSettings(**{name: value for name, value in hyper.items() if name != "n_agents"})
    more = {"scaling": scaling, "uncertainty": uncertainty}
    pooled, training = trained_engine(X, y, np.zeros(len(y)), **more)
    spread, _ = trained_engine(X, y, owners_of(seed, len(y), n_agents), serialize=True, **more)
    one, other = distill(pooled, training, own), distill(spread, training, own)
    np.testing.assert_allclose(other.mixture.predict(X), one.mixture.predict(X), rtol=1e-8, atol=1e-8)
    assert other.record["price"] == pytest.approx(one.record["price"], abs=1e-8)
    assert [entry["n_rules"] for entry in other.record["curve"]] == [entry["n_rules"] for entry in one.record["curve"]]
    if uncertainty:
        # To the digits of the deviations of rules, which are rounded.
        for found, expected in zip(other.mixture.interval(X, 0.8), one.mixture.interval(X, 0.8), strict=True):
            np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.02 * np.ptp(y[~np.isnan(y)]))
        np.testing.assert_allclose(other.mixture.deviations(X), one.mixture.deviations(X), rtol=0.02)


@settings(max_examples=10)
@given(seeds)
def test_row_order_does_not_matter(seed):
    X, _, y = table(seed)
    order = np.random.default_rng(seed).permutation(len(y))
    engine, training = trained_engine(X, y, np.zeros(len(y)))
    shuffled, _ = trained_engine(X[order], y[order], np.zeros(len(y)))
    one, other = (distill(which, training, StudentSettings()) for which in (engine, shuffled))
    np.testing.assert_allclose(other.mixture.predict(X), one.mixture.predict(X), rtol=1e-8, atol=1e-8)


@settings(max_examples=50)
@given(seeds, st.integers(1, 4), st.integers(2, 9))
def test_sums_by_bins_give_the_sums_of_every_ramp(seed, n_features, n_knots):
    rng = np.random.default_rng(seed)
    X, U, w = rng.normal(size=(80, n_features)), rng.normal(size=(80, 3)), rng.random(80)
    knots = np.sort(rng.normal(size=(n_features, n_knots)), axis=1)
    inside, within = bin_positions(X, knots)
    products = triangle_products(U)
    shape = (n_features, -1, products.shape[1])
    sums = SplitSums(
        (inside.T @ (w[:, None] * products)).reshape(shape), (within.T @ (w[:, None] * products)).reshape(shape)
    )
    for c in range(n_features):
        for first in range(n_knots):
            for last in range(first + 1, n_knots):
                weights = w * ramp(X[:, c], knots[c, first], knots[c, last])
                np.testing.assert_allclose(
                    sums.above(c, knots[c], [(first, last)])[0], weights @ products, rtol=1e-9, atol=1e-9
                )


@settings(max_examples=20)
@given(
    value=st.tuples(st.integers(-(10**12), 10**12), st.integers(-99, 80)).map(lambda v: float(f"{v[0]}e{v[1]}")),
    n_labels=st.integers(1, 40),
    n_agents=st.integers(1, 3),
    uncertainty=st.booleans(),
)
@example(value=0.0012345678, n_labels=30, n_agents=1, uncertainty=True)
def test_labels_that_do_not_vary_are_predicted_with_all_their_digits(value, n_labels, n_agents, uncertainty):
    """They have no deviation by which digits could be too small to matter."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(np.arange(60) < n_labels, value, np.nan)
    engine, training = trained_engine(X, y, owners_of(0, 60, n_agents), uncertainty=uncertainty)
    student = distill(engine, training, StudentSettings())
    np.testing.assert_array_equal(student.mixture.predict(X), np.full(60, value))
    if uncertainty:
        np.testing.assert_array_equal(student.mixture.interval(X, 0.5), np.full((2, 60), value))


def test_the_text_of_labels_that_do_not_vary_has_all_their_digits():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = RuleRegressor(random_state=0).fit(X, np.full(40, 0.0012345678))
    assert "= 0.0012345678\n" in f"{model.rules_}\n"


def test_rows_from_files_give_the_same_bits(tmp_path):
    X, _, y = table(5, n=400, n_labels=60)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    own = {"teacher": teacher(), "random_state": 0}
    arrays = RuleRegressor(**own).fit(frame, y)
    files = RuleRegressor(**own).fit(scan(tmp_path / "t.csv", target="y"))
    np.testing.assert_array_equal(files.predict(frame), arrays.predict(frame))
    assert str(files.rules_) == str(arrays.rules_)


@settings(max_examples=10)
@given(seeds)
def test_intervals_are_wide_far_from_the_rows_and_where_inputs_are_not_known(seed):
    X, _, y = table(seed)
    model = RuleRegressor(teacher=teacher(), random_state=0).fit(X, y)
    far = np.stack([X.mean(axis=0) + 1000.0 * step for step in np.diag(X.std(axis=0))])
    usual = np.max(np.diff(model.model_.interval(X, 0.8), axis=0))
    half = model.model_.mixture.half_widths(far, 0.8)
    assert (2.0 * half > 10.0 * usual).all()
    assert not model.in_domain(far).any()
    noisy = model.deviation_parts(X, X_std=X.std(axis=0))
    assert (noisy.total >= noisy.inputs).all()
    assert noisy.inputs.max() > 0.0


@settings(max_examples=10)
@given(seeds, st.sampled_from([1e-3, 0.1, 10.0, 1e5]))
def test_deviations_follow_the_units_of_the_target(seed, unit):
    X, _, y = table(seed)
    one, other = (RuleRegressor(teacher=teacher(), random_state=0).fit(X, factor * y) for factor in (1.0, unit))
    if len(one.rules_) == len(other.rules_):
        found = other.predict(X, return_std=True)[1] / (unit * one.predict(X, return_std=True)[1])
        np.testing.assert_allclose(found, 1.0, rtol=0.02)


def test_rules_with_noisier_rows_have_wider_intervals():
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (3000, 2))
    y = np.exp(4.0 * X[:, 0] + 0.4 * rng.normal(size=3000))
    known = np.where(np.arange(3000) < 200, y, np.nan)
    model = RuleRegressor(random_state=0).fit(X, known)
    low, high = model.predict_interval(X)
    wide, narrow = (np.mean((high - low)[part]) for part in (X[:, 0] > 0.8, X[:, 0] < 0.3))
    assert wide > 1.5 * narrow
    assert len(set(model.model_.mixture.scores.rule_deviations.tolist())) > 1


@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_of_rules_far_off_the_teacher_hold_new_targets(seed):
    """Three rules of a waving surface: their errors are not the teacher's made larger."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (1200, 3))
    y = np.sin(4.0 * X[:, 0]) * X[:, 1] + X[:, 2] ** 2 + 0.05 * rng.standard_normal(1200)
    model = RuleRegressor(max_rules=3, random_state=0).fit(X, np.where(np.arange(1200) < 150, y, np.nan))
    assert model.complexity_["price"] > 1.0
    low, high = model.predict_interval(X[150:], coverage=0.8)
    assert 0.74 <= np.mean((low <= y[150:]) & (y[150:] <= high)) <= 0.88


def test_intervals_of_the_student_hold_new_targets():
    held, n = 0.0, 0
    for seed in range(8):
        X, y, known = table(seed, n=600, n_labels=60)
        model = RuleRegressor(teacher=teacher(), random_state=0).fit(X, known)
        low, high = model.predict_interval(X[60:], coverage=0.9)
        held, n = held + np.sum((low <= y[60:]) & (y[60:] <= high)), n + 540
    assert 0.87 <= held / n <= 0.95
