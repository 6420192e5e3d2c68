"""Importances of features and partial dependence: from the model alone, without permuting rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.inspection import partial_dependence

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, LapWNNRegressor, RuleRegressor, SFRRegressor
from tests.tables import make_table, owners_of

few = settings(max_examples=6, deadline=None)
EFFECTS = AutoSFRRegressor(ensemble=Ensemble(n_models=0, effects="single"), random_state=0)
ESTIMATORS = [
    SFRRegressor(random_state=0),
    EFFECTS,
    AutoSFRRegressor(ensemble=Ensemble(n_models=1), target="log", random_state=0),
    RuleRegressor(random_state=0, teacher=AutoSFRRegressor(ensemble=EFFECTS.ensemble)),
    LapWNNRegressor(random_state=0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_importances_sum_to_1_and_partial_dependence_is_that_of_scikit_learn(estimator):
    X, _, y = make_table(0)
    model = estimator.fit(X, y)
    found = model.feature_importances_
    assert found.shape == (3,)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(found, model.feature_importances_)
    grid, means = model.model_.partial_dependence(0, X, n_points=4)
    known = partial_dependence(model, X, [0], custom_values={0: grid}, kind="average", method="brute")
    np.testing.assert_allclose(known["average"][0], means, rtol=1e-9)


@few
@given(seed=st.integers(0, 999), n_features=st.integers(2, 5))
def test_importances_of_a_line_are_the_shares_of_its_variance(seed, n_features):
    """Of independent columns: ``slope^2 variance``, over their sum; a column without a slope has none."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((150, n_features)) * rng.uniform(0.5, 2.0, n_features)
    slopes = np.append(rng.uniform(1.0, 3.0, n_features - 1), 0.0)
    model = SFRRegressor(n_rules=1, unlabeled=None, ridge=1e-6, random_state=0).fit(X, X @ slopes)
    parts = slopes**2 * X.var(axis=0)
    np.testing.assert_allclose(model.model_.importances(X), parts / parts.sum(), atol=1e-4)
    np.testing.assert_allclose(model.feature_importances_, parts / parts.sum(), atol=0.08)


@few
@given(seed=st.integers(0, 999), unit=st.sampled_from([1e-6, 1.0, 1e6]))
def test_owners_and_units_do_not_matter(seed, unit):
    X, _, y = make_table(seed % 7)
    pooled = EFFECTS.fit(X, y).feature_importances_
    shared = EFFECTS.fit(X, unit * y, agents=owners_of(seed, len(y), 3)).feature_importances_
    np.testing.assert_allclose(shared, pooled, atol=1e-4)


def test_a_constant_model_has_no_importances():
    X, _, y = make_table(1)
    constant = SFRRegressor(random_state=0).fit(X, np.where(np.isnan(y), np.nan, 3.0))
    np.testing.assert_array_equal(constant.feature_importances_, np.zeros(3))


def test_short_rules_have_the_same_importances_after_loading(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "k": rng.choice(["e", "n", "s"], 200), "b": rng.normal(size=200)})
    y = 3.0 * X["a"] + 4.0 * (X["k"] == "n")
    model = RuleRegressor(random_state=0, teacher=AutoSFRRegressor(ensemble=EFFECTS.ensemble)).fit(X, y)
    loaded = dsfr.load(model.save(tmp_path / "m.dsfr"))
    np.testing.assert_array_equal(loaded.importances(), model.feature_importances_)
    np.testing.assert_allclose(loaded.importances(), loaded.importances(X), atol=0.1)
    drawn = loaded.mixture.drawn_rows(500)
    np.testing.assert_array_equal(drawn[:, 1:4].sum(axis=1), 1.0)
    assert loaded.partial_dependence("a")[1].shape == (50,)
    bare = replace(loaded, mixture=replace(loaded.mixture, density=None))
    with pytest.raises(ValueError, match=r"does not know the distribution of the rows .*: give rows X"):
        bare.importances()
