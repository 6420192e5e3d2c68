"""Laws of missing and noisy inputs, over all estimators."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsfr
from dsfr import (
    AutoSFRRegressor,
    Ensemble,
    FuzzyRules,
    LapWNNRegressor,
    Policy,
    RangeScaling,
    RuleRegressor,
    SFRRegressor,
)
from tests.tables import make_table

seeds = st.integers(0, 2**31)
ESTIMATORS = {
    "sfr": lambda: SFRRegressor(3, tune="evidence", uncertainty=True, random_state=0),
    "conjugate": lambda: SFRRegressor(3, random_state=0),
    "few-rounds": lambda: SFRRegressor(3, solver="few-rounds", random_state=0),
    "bell": lambda: SFRRegressor(3, rules=FuzzyRules(membership="bell"), random_state=0),
    "auto": lambda: AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects="pairs"), random_state=0),
    "rules": lambda: RuleRegressor(3, teacher=AutoSFRRegressor(ensemble=Ensemble(n_models=0)), random_state=0),
    "lapwnn": lambda: LapWNNRegressor(n_nodes=8, random_state=0),
}
KINDS = st.sampled_from(sorted(ESTIMATORS))
SURE = ("auto", "rules", "sfr")


def gappy(X, rng, share):
    gaps = rng.random(X.shape) < share
    gaps[np.arange(len(X)), np.arange(len(X)) % X.shape[1]] = False  # rows without any value are equal
    return np.where(gaps, np.nan, X)


def fitted(kind, seed, *, share=0.0, n_agents=1):
    X, _, y = make_table(seed, n_rows=70, n_features=3, n_labels=25)
    rng = np.random.default_rng(seed)
    rows = gappy(X, rng, share) if share else X
    return ESTIMATORS[kind]().set_params(n_agents=n_agents).fit(rows, y), X, rng


@settings(max_examples=12, deadline=None)
@given(kind=KINDS, seed=seeds, share=st.sampled_from([0.0, 0.3]))
def test_noise_goes_from_plain_predictions_to_those_of_missing_values(kind, seed, share):
    model, X, rng = fitted(kind, seed, share=share)
    X = X[:12]
    plain = model.predict(X)
    scale = np.ptp(plain) + 1e-9
    np.testing.assert_array_equal(model.predict(X, X_std=0.0), plain)
    np.testing.assert_allclose(model.predict(X, X_std=np.full(3, 1e-300)), plain, rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_allclose(model.predict(X, X_std=1e-5 * X.std(axis=0)), plain, atol=1e-3 * scale)
    gaps = rng.random(X.shape) < 0.4
    gaps[0] = True
    missing = model.predict(np.where(gaps, np.nan, X))
    assert np.isfinite(missing).all()
    np.testing.assert_array_equal(model.predict(X, X_std=np.where(gaps, 1e100, 0.0)), missing)
    np.testing.assert_array_equal(model.predict(X, X_std=np.where(gaps, np.inf, 0.0)), missing)
    whole = ~gaps.any(axis=1)
    np.testing.assert_array_equal(missing[whole], plain[whole])


@settings(max_examples=8, deadline=None)
@given(kind=KINDS, seed=seeds, share=st.sampled_from([0.1, 0.4]))
def test_distributed_equals_pooled_with_missing_values_at_fit(kind, seed, share):
    X, _, y = make_table(seed, n_rows=60, n_features=3, n_labels=25)
    rng = np.random.default_rng(seed)
    rows = gappy(X, rng, share)
    owners = rng.integers(3, size=len(y))
    whole = ESTIMATORS[kind]().fit(rows, y)
    parts = ESTIMATORS[kind]().fit(rows, y, agents=owners)
    one, other = whole.model_.mixture.density, parts.model_.mixture.density
    for name, array in one.arrays().items():
        np.testing.assert_allclose(other.arrays()[name], array, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(parts.model_.completed(rows), whole.model_.completed(rows), rtol=1e-7, atol=1e-7)


@settings(max_examples=6, deadline=None)
@given(seed=seeds, share=st.sampled_from([0.1, 0.4]))
def test_predictions_of_a_distributed_fit_are_those_of_the_pooled_rows(seed, share):
    X, _, y = make_table(seed, n_rows=60, n_features=3, n_labels=25)
    rng = np.random.default_rng(seed)
    rows = gappy(X, rng, share)
    low, high = X.min(axis=0), X.max(axis=0)
    start = tuple(map(tuple, rows[~np.isnan(rows).any(axis=1)][:3].tolist()))
    make = lambda: SFRRegressor(  # noqa: E731
        3, solver="sums", unlabeled=None, rules=FuzzyRules(init=start), scaling=RangeScaling(lower=low, upper=high)
    )
    whole = make().fit(rows, y)
    parts = make().fit(rows, y, agents=rng.integers(3, size=len(y)))
    np.testing.assert_allclose(parts.predict(rows), whole.predict(rows), atol=1e-6)


@settings(max_examples=8, deadline=None)
@given(kind=KINDS, seed=seeds)
def test_the_order_of_rows_does_not_matter_and_a_file_has_the_same_bits(kind, seed, tmp_path_factory):
    model, X, rng = fitted(kind, seed, share=0.2)
    X = gappy(X, rng, 0.4)
    order = rng.permutation(len(X))
    predictions = model.predict(X, X_std=0.1)
    np.testing.assert_array_equal(model.predict(X[order], X_std=0.1), predictions[order])
    loaded = dsfr.load(model.save(tmp_path_factory.mktemp("models") / "m.dsfr"))
    np.testing.assert_array_equal(loaded.predict(X, X_std=0.1), predictions)


@settings(max_examples=8, deadline=None)
@given(kind=st.sampled_from(SURE), seed=seeds, size=st.sampled_from([1e-3, 1.0, 1e3]))
def test_uncertain_inputs_add_to_the_deviation_and_widen_the_interval(kind, seed, size):
    model, X, rng = fitted(kind, seed)
    X = X[:15]
    plain, noisy = model.deviation_parts(X), model.deviation_parts(X, X_std=size * X.std(axis=0))
    assert (plain.inputs == 0.0).all()
    assert (noisy.inputs >= 0.0).all()
    for parts, X_std in ((plain, None), (noisy, size * X.std(axis=0))):
        std = model.predict(X, return_std=True, X_std=X_std)[1]
        np.testing.assert_allclose(std, np.sqrt(parts.noise**2 + parts.ignorance**2 + parts.inputs**2), rtol=1e-6)
    low, high = model.predict_interval(X, 0.5, X_std=size * X.std(axis=0))
    assert (high - low >= 2.0 * model.model_.mixture.half_widths(model.model_.completed(X), 0.5).min() / 2.0).all()
    missing = model.deviation_parts(np.where(rng.random(X.shape) < 0.5, np.nan, X))
    assert np.isfinite(missing.total).all()
    assert model.in_domain(np.full((1, 3), np.nan)).all()


def test_the_deviation_of_a_line_over_its_inputs_is_exact():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) @ np.array([[1.0, 0.7], [0.0, 0.5]])
    model = SFRRegressor(1, tune="evidence", uncertainty=True, random_state=0).fit(X, X @ [2.0, -3.0])
    density = model.model_.mixture.density
    covariance = density.correlation * np.outer(density.deviation, density.deviation)
    parts = model.deviation_parts([[np.nan, np.nan]])
    assert parts.inputs[0] == pytest.approx(np.sqrt(np.array([2.0, -3.0]) @ covariance @ [2.0, -3.0]), rel=1e-3)
    assert model.predict([[np.nan, np.nan]])[0] == pytest.approx(density.mean @ [2.0, -3.0], abs=1e-3)


@pytest.mark.parametrize("kind", sorted(ESTIMATORS))
def test_a_fit_without_missing_values_takes_no_more_rounds(kind):
    model, *_ = fitted(kind, 0)
    tasks = {name for name, *_ in model.ledger_.entries}
    assert not tasks & {"value_extremes", "value_sums", "expected_sums"}
    again, *_ = fitted(kind, 0, share=0.2)
    assert {"value_extremes", "value_sums", "expected_sums"} <= {name for name, *_ in again.ledger_.entries}


def test_features_with_too_few_values_are_named():
    X, _, y = make_table(0, n_rows=60, n_features=3)
    X[2:, 1] = np.nan
    X[:, 2] = np.nan
    with pytest.raises(ValueError, match=r"too few values in x2 \(0 values\): a feature needs at least 3"):
        SFRRegressor().fit(X, y)
    with pytest.raises(ValueError, match=r"too few values in x1 \(2 values\)"):
        SFRRegressor().fit(X[:, :2], y)


def test_values_far_off_do_not_spoil_what_is_completed():
    X, _, y = make_table(0, n_rows=120, n_features=3)
    rng = np.random.default_rng(0)
    X = gappy(X, rng, 0.2)
    clean = AutoSFRRegressor(ensemble=Ensemble(n_models=0), random_state=0).fit(X, y).model_.mixture.density
    X[3, 0] = 1e12
    spoilt = AutoSFRRegressor(ensemble=Ensemble(n_models=0), random_state=0).fit(X, y).model_.mixture.density
    assert abs(spoilt.mean[0] - clean.mean[0]) < clean.deviation[0]


@pytest.mark.parametrize(
    ("X_std", "message"),
    [
        (-1.0, "negative or missing values: a standard deviation is a number >= 0"),
        (np.nan, "negative or missing"),
        (np.ones(2), r"X_std has shape \(2,\); it must be one number, one for each of 3 features"),
        ({"nothing": 1.0}, "X_std names nothing, which the model does not have; it has x0, x1, x2"),
    ],
)
def test_bad_noise_is_refused(X_std, message):
    model, X, _ = fitted("conjugate", 0)
    with pytest.raises(ValueError, match=message):
        model.predict(X, X_std=X_std)


def test_noise_is_given_once_by_feature_or_by_value():
    model, X, _ = fitted("auto", 1)
    by_feature = model.predict(X, X_std=[0.0, 0.5, 0.0])
    np.testing.assert_array_equal(model.predict(X, X_std={"x1": 0.5}), by_feature)
    np.testing.assert_array_equal(model.predict(X, X_std=np.tile([0.0, 0.5, 0.0], (len(X), 1))), by_feature)
    assert not np.array_equal(model.predict(X), by_feature)


def test_a_policy_lets_the_sums_of_completion_out_unless_a_column_has_few_values():
    X, _, y = make_table(0, n_rows=210, n_features=2, n_labels=90)
    rng = np.random.default_rng(0)
    owners = np.arange(len(y)) % 3
    ranges = RangeScaling(lower=X.min(axis=0), upper=X.max(axis=0), target_range=(np.nanmin(y), np.nanmax(y)))
    make = lambda: SFRRegressor(2, scaling=ranges, engine=dsfr.InProcess(policy=Policy()), solver="sums")  # noqa: E731
    rows = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    assert np.isfinite(make().fit(rows, y, agents=owners).predict(rows)).all()
    rows[owners == 1, 0] = np.nan
    rows[1, 0] = 0.0
    with pytest.raises(dsfr.engines.EngineError, match=r"policy rule 'values': 1 values in column 0"):
        make().fit(rows, y, agents=owners)
