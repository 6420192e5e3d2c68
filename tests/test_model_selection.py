"""Folds of labelled rows: scores exist, labels are divided, unlabelled rows always train."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsfr import LabeledKFold, SFRRegressor, nrmse_scorer
from tests.tables import make_table

seeds = st.integers(0, 10_000)


@settings(max_examples=15)
@given(
    seed=seeds, n_splits=st.integers(2, 6), shuffle=st.booleans(), partition=st.booleans(), n_groups=st.integers(0, 12)
)
def test_every_label_is_tested_once_and_every_unlabelled_row_always_trains(
    seed, n_splits, shuffle, partition, n_groups
):
    X, _, y = make_table(seed, n_rows=60, n_labels=40)
    groups = np.random.default_rng(seed).permutation(len(y)) % n_groups if n_groups > n_splits else None
    folds = LabeledKFold(n_splits, shuffle=shuffle, random_state=seed if shuffle else None, partition=partition)
    pairs = list(folds.split(X, y, groups))
    labeled, unlabeled = np.flatnonzero(~np.isnan(y)), np.flatnonzero(np.isnan(y))
    tested = np.sort(np.concatenate([test for _, test in pairs]))
    np.testing.assert_array_equal(tested, np.arange(len(y)) if partition else labeled)
    sizes = []
    for train, test in pairs:
        own = np.intersect1d(test, labeled)
        np.testing.assert_array_equal(train, np.setdiff1d(np.arange(len(y)), own))
        assert np.isin(unlabeled, train).all()
        sizes.append(len(own))
        if groups is not None:
            assert not np.isin(groups[own], groups[np.intersect1d(train, labeled)]).any()
    assert len(pairs) == folds.get_n_splits() == n_splits
    assert max(sizes) - min(sizes) <= (1 if groups is None else 40 // n_groups + 10)
    for first, second in zip(pairs, folds.split(X, y, groups), strict=True):
        np.testing.assert_array_equal(first[1], second[1])


@pytest.fixture(scope="module")
def few_labels():
    return make_table(0, n_rows=300, n_labels=20)


def test_scores_exist_with_few_labels_of_many_rows(few_labels):
    X, _, y = few_labels
    folds = LabeledKFold(5, shuffle=True, random_state=0)
    model = SFRRegressor(2, random_state=0)
    for scoring in (None, "r2", "neg_mean_absolute_error", nrmse_scorer):
        assert np.isfinite(cross_val_score(model, X, y, cv=folds, scoring=scoring, error_score="raise")).all()
    search = GridSearchCV(make_pipeline(StandardScaler(), model), {"sfrregressor__ridge": [1e-3, 10.0]}, cv=folds)
    assert search.fit(pd.DataFrame(X), pd.Series(y)).best_params_ == {"sfrregressor__ridge": 1e-3}


def test_owners_are_tested_one_by_one_and_train_as_agents(few_labels):
    X, _, y = few_labels
    owners = np.array(["north", "east", "south"])[np.arange(len(y)) % 3]
    model = SFRRegressor(2, solver="sums", random_state=0)
    found = cross_validate(
        model, X, y, groups=owners, cv=LabeledKFold(3), params={"agents": owners}, return_estimator=True
    )
    assert np.isfinite(found["test_score"]).all()
    assert [trained.agents_ for trained in found["estimator"]] == [["east", "north", "south"]] * 3


def test_all_rows_can_be_predicted_out_of_their_fold(few_labels):
    X, _, y = few_labels
    model = SFRRegressor(2, random_state=0)
    folds = LabeledKFold(4, partition=True)
    predictions = cross_val_predict(model, X, y, cv=folds)
    train, test = next(folds.split(X, y))
    np.testing.assert_array_equal(predictions[test], clone(model).fit(X[train], y[train]).predict(X[test]))
    assert np.isfinite(cross_val_score(model, X, y, cv=folds, scoring=nrmse_scorer)).all()
    with pytest.raises(ValueError, match="only works for partitions"):
        cross_val_predict(model, X, y, cv=LabeledKFold(4))


@pytest.mark.parametrize("kind", ["pandas", "polars", "list"])
def test_targets_of_any_kind_are_divided_alike(few_labels, kind):
    X, _, y = few_labels
    frames = pytest.importorskip(kind) if kind != "list" else None
    given = list(y) if frames is None else frames.Series(y)
    for (train, test), (own_train, own_test) in zip(
        LabeledKFold(3).split(X, y), LabeledKFold(3).split(X, given), strict=True
    ):
        np.testing.assert_array_equal(train, own_train)
        np.testing.assert_array_equal(test, own_test)


def test_groups_and_weights_are_routed(few_labels):
    X, _, y = few_labels
    groups, weights = np.arange(len(y)) % 7, np.linspace(0.5, 2.0, len(y))
    model = SFRRegressor(2, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        given = {"groups": groups, "sample_weight": weights}
        weighted = cross_val_score(model, X, y, cv=LabeledKFold(3), params=given)
        plain = cross_val_score(model, X, y, cv=LabeledKFold(3), params={"groups": groups})
    assert np.isfinite(weighted).all()
    assert not np.allclose(weighted, plain)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"n_splits": 1}, "n_splits=1 must be a whole number >= 2"),
        ({"n_splits": 2.5}, "n_splits=2.5 must be"),
        ({"random_state": 0}, "has no effect with shuffle=False"),
    ],
)
def test_arguments_that_make_no_folds_are_refused(told, message):
    with pytest.raises(ValueError, match=message):
        LabeledKFold(**told)


def test_folds_without_a_score_are_refused(few_labels):
    X, _, y = few_labels
    with pytest.raises(ValueError, match=r"leaves a test fold with 1 of 20 labels.*take n_splits=10 or fewer"):
        cross_val_score(SFRRegressor(), X, y, cv=LabeledKFold(15))
    with pytest.raises(ValueError, match="test fold of whole groups with 0 of 20 labels"):
        next(LabeledKFold(3).split(X, y, np.arange(len(y)) % 2))
    with pytest.raises(ValueError, match="needs y"):
        next(LabeledKFold(3).split(X))
    with pytest.raises(ValueError, match="groups contains missing values"):
        next(LabeledKFold(3).split(X, y, [None] * len(y)))
    with pytest.raises(ValueError, match="score needs at least two labelled rows, got 1 of 300"):
        SFRRegressor(2).fit(X, y).score(X, np.where(np.arange(len(y)) == 0, 1.0, np.nan))
