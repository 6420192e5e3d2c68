"""The automatic mode on tables of any kind, and what is refused before anything is trained."""

import numpy as np
import pytest
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, Ensemble
from tests.tables import make_settings, make_table

seeds = st.integers(0, 10_000)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"n_models": 3}, "n_models=3 does not go with tune=None"),
        ({"uncertainty": True, "solver": "conjugate"}, r"solver=Conjugate\(\) does not go with uncertainty=True"),
        ({"n_models": -1}, "n_models=-1 must be"),
        ({"n_models": 0, "tune": "evidence"}, "n_models=0 does not go with effects=None"),
        ({"effects": "pairs"}, "effects='pairs' does not go with tune=None"),
        ({"n_models": "many"}, "n_models='many' must be"),
        ({"n_models": 31, "tune": "evidence"}, "n_models=31 must be a whole number from 0 .effects alone. to 30"),
        ({"scaling": "log"}, "scaling='log' must be one of"),
        ({"relevance": "all"}, "relevance='all' must be one of"),
        ({"firing": "max"}, "firing='max' must be one of"),
        ({"pairs": "far"}, "pairs='far' must be one of"),
        ({"solver": "few-rounds", "scaling": "robust"}, r"solver=FewRounds\(\) does not go with scaling=RobustScaling"),
        ({"solver": "few-rounds", "tune": "loo"}, r"FewRounds\(\) does not go with tune='loo' .*take solver='sums'"),
        ({"basis": "wavelets", "relevance": "slopes"}, "basis='wavelets' does not go with relevance='slopes'"),
    ],
)
def test_what_cannot_be_combined_is_refused(told, message):
    with pytest.raises(ValueError, match=message):
        make_settings(**told)


def test_more_models_than_can_be_solved_are_refused_before_the_first():
    X, _, y = make_table(0)
    with pytest.raises(
        ValueError, match=r"81920 weights .* Lower n_models=25 \(every second model has twice the rules"
    ):
        AutoSFRRegressor(ensemble=Ensemble(n_models=25)).fit(X, y)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 5])
def test_auto_works_with_hardly_any_label(n_labels):
    X, _, y = make_table(0, n_labels=n_labels)
    model = AutoSFRRegressor(random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()


def test_auto_works_on_odd_tables():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(80), rng.integers(0, 2, 80), np.r_[np.zeros(79), 1.0], rng.normal(size=80)])
    y = np.where(np.arange(80) < 30, X[:, 1] + X[:, 3], np.nan)
    for rows, targets in ((X, y), (X[:1], y[:1])):
        model = AutoSFRRegressor(random_state=0).fit(rows, targets)
        assert np.isfinite(model.predict(rows)).all()
    with pytest.warns(UserWarning, match="27 of 30 rows are duplicates"):
        model = AutoSFRRegressor(random_state=0).fit(np.repeat(X[:3], 10, axis=0), np.repeat(y[:3], 10))
    assert np.isfinite(model.predict(X)).all()
    constant = AutoSFRRegressor(random_state=0).fit(X, np.where(np.isnan(y), np.nan, 7.0))
    np.testing.assert_allclose(constant.predict(X), 7.0)


@pytest.mark.parametrize("seed", [0, 7, 9])
def test_auto_works_on_labels_without_noise(seed):
    X = np.random.default_rng(seed).normal(size=(120, 4))
    y = np.where(np.arange(120) < 40, X[:, 0], np.nan)
    model = AutoSFRRegressor(random_state=0).fit(X, y)
    assert dsfr.nrmse(X[:, 0], model.predict(X)) < 0.5


@pytest.mark.parametrize("n_models", ["auto", 1])
def test_irrelevant_features_are_remembered_as_wide_as_they_are(tmp_path, n_models):
    rng = np.random.default_rng(0)
    X = rng.random((600, 10))  # Friedman's function depends on the first five
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    model = dsfr.load(
        AutoSFRRegressor(ensemble=Ensemble(n_models=n_models), random_state=0).fit(X, y).save(tmp_path / "m.dsfr")
    )
    remembered = model.rule_base.synthetic_rows().std(axis=0)
    np.testing.assert_allclose(remembered, X.std(axis=0), rtol=0.15)
