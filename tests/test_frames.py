"""Frames of polars and tables of Arrow: the same columns, categories and predictions as with pandas."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsfr import LabeledKFold, RuleRegressor, SFRRegressor


def houses(n=150):
    """Numbers, a category, a boolean and an integer, with gaps."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"area": rng.normal(size=n), "rooms": rng.integers(1, 30, n)})
    X["region"], X["garden"] = rng.choice(["east", "north", "south"], n), rng.random(n) < 0.5
    y = pd.Series(2.0 * X["area"] + 3.0 * (X["region"] == "north"), name="price").where(np.arange(n) < 60)
    X.loc[3, "area"] = np.nan
    X.loc[5, "region"] = None
    return X, y


def enum_of(X):
    return pl.from_pandas(X).with_columns(pl.col("region").cast(pl.Enum(["east", "north", "south"])))


FRAMES = {
    "polars": pl.from_pandas,
    "polars categorical": lambda X: pl.from_pandas(X).with_columns(pl.col("region").cast(pl.Categorical)),
    "polars enum": enum_of,
    "polars small integers": lambda X: pl.from_pandas(X).with_columns(pl.col("rooms").cast(pl.Int8)),
    "polars float32": lambda X: pl.from_pandas(X).with_columns(pl.col("rooms").cast(pl.Float32)),
    "arrow": pa.Table.from_pandas,
    "arrow batch": pa.RecordBatch.from_pandas,
    "arrow dictionary": lambda X: pa.Table.from_pandas(X.astype({"region": "category"})),
}


@pytest.fixture(scope="module")
def fitted():
    X, y = houses()
    return SFRRegressor(3, random_state=0).fit(X, y), X, y


@pytest.mark.parametrize("kind", sorted(FRAMES))
def test_a_frame_of_any_package_gives_the_model_of_pandas(fitted, kind):
    model, X, y = fitted
    rows = FRAMES[kind](X)
    other = SFRRegressor(3, random_state=0).fit(rows, pl.Series("price", y.to_numpy()))
    assert other.model_.columns == model.model_.columns
    assert list(other.feature_names_in_) == list(X.columns)
    assert other.model_.target_name == "price"
    expected = model.predict(X)
    for estimator, given in ((other, rows), (other, X), (model, rows), (model.model_, rows)):
        np.testing.assert_allclose(estimator.predict(given), expected, rtol=1e-12)
    std = {"area": 0.1}
    np.testing.assert_allclose(model.predict(rows, X_std=std), model.predict(X, X_std=std), rtol=1e-12)
    assert model.score(rows, y) == pytest.approx(model.score(X, y))


def test_columns_of_a_polars_frame_may_come_in_any_order(fitted):
    model, X, _ = fitted
    rows = pl.from_pandas(X).select(["garden", "region", "rooms", "area"])
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))
    with pytest.raises(ValueError, match=r"X lacks the column\(s\) region"):
        model.predict(rows.drop("region"))


def test_a_frame_of_numbers_and_null_targets(fitted):
    _, X, y = fitted
    rows = pl.from_pandas(X[["area", "rooms"]])
    null = pl.Series("price", [None if np.isnan(value) else value for value in y])
    one = SFRRegressor(3, random_state=0).fit(rows, null)
    other = SFRRegressor(3, random_state=0).fit(X[["area", "rooms"]], y)
    np.testing.assert_array_equal(one.predict(rows), other.predict(X[["area", "rooms"]]))


def test_declared_levels_of_an_enum_are_kept_in_order():
    X, y = houses()
    rows = pl.from_pandas(X).with_columns(pl.col("region").cast(pl.Enum(["south", "east", "north", "moon"])))
    model = SFRRegressor(3, random_state=0).fit(rows, y.to_numpy())
    declared = X.assign(region=pd.Categorical(X["region"], ["south", "east", "north", "moon"]))
    assert model.model_.columns == SFRRegressor(3, random_state=0).fit(declared, y).model_.columns


def test_rules_explanations_and_owners_take_polars(fitted):
    _, X, y = fitted
    rows, known = pl.from_pandas(X), pl.Series("price", y.to_numpy())
    model = RuleRegressor(random_state=0).fit(rows, known, agents=rows["garden"])
    assert "region" in str(model.explain(rows))
    explained = model.explain_prediction(rows[5])
    assert explained.prediction == pytest.approx(model.predict(rows[5])[0])
    assert "unknown" in str(explained)


def test_what_cannot_be_learnt_from_is_named_as_with_pandas():
    X, y = houses()
    rows = pl.from_pandas(X)
    dates = pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 1) + pl.duration(days=len(X) - 1), eager=True)
    with pytest.raises(ValueError, match="column 'seen' holds dates"):
        SFRRegressor().fit(rows.with_columns(seen=dates), y.to_numpy())
    with pytest.raises(ValueError, match="column 'list' holds"):
        SFRRegressor().fit(rows.with_columns(list=pl.Series([[1, 2]] * len(X))), y.to_numpy())
    with pytest.raises(ValueError, match=r"lazy frame of polars, which has no rows yet: give X\.collect\(\)"):
        SFRRegressor().fit(rows.lazy(), y.to_numpy())
    infinite = rows.with_columns(area=pl.lit(float("inf")))
    with pytest.raises(ValueError, match="infinity"):
        SFRRegressor().fit(infinite, y.to_numpy())


def test_set_output_of_transformers_before_the_model_gives_the_model_of_plain_columns():
    """`set_output` is for transformers: the model takes what they give, and `predict` returns an array."""
    X, y = houses()
    numbers, names = X[["area", "rooms"]], ["area", "rooms"]
    plain = make_pipeline(StandardScaler(), SFRRegressor(3, random_state=0)).fit(numbers.to_numpy(), y)
    for kind in ("pandas", "polars"):
        scaled = make_column_transformer((StandardScaler(), names), verbose_feature_names_out=False)
        model = make_pipeline(scaled.set_output(transform=kind), SFRRegressor(3, random_state=0))
        rows = numbers if kind == "pandas" else pl.from_pandas(numbers)
        predicted = model.fit(rows, y.to_numpy()).predict(rows)
        assert isinstance(predicted, np.ndarray)
        assert list(model[-1].feature_names_in_) == names
        np.testing.assert_allclose(predicted, plain.predict(numbers.to_numpy()), rtol=1e-9)


def test_searches_over_polars_frames_work(fitted):
    _, X, y = fitted
    rows, known = pl.from_pandas(X), y.to_numpy()
    folds = LabeledKFold(3)
    scores = cross_val_score(SFRRegressor(3, random_state=0), rows, known, cv=folds)
    np.testing.assert_allclose(scores, cross_val_score(SFRRegressor(3, random_state=0), X, y, cv=folds))
    search = GridSearchCV(SFRRegressor(random_state=0), {"n_rules": [2, 3]}, cv=folds).fit(rows, known)
    assert np.isfinite(search.best_score_)
    held = cross_val_predict(SFRRegressor(3, random_state=0), rows, known, cv=LabeledKFold(3, partition=True))
    assert np.isfinite(held).all()


def test_several_targets_take_several_estimators():
    X, y = houses()
    numbers = X[["area", "rooms"]].to_numpy()
    both = np.stack([y, -2.0 * y], axis=1)
    with pytest.raises(
        ValueError, match=r"y has 2 columns, .*\[clone\(model\)\.fit\(X, y\[:, j\]\) for j in range\(2\)\]"
    ):
        SFRRegressor().fit(numbers, both)
    model = SFRRegressor(3, random_state=0)
    each = [clone(model).fit(numbers, both[:, j]) for j in range(2)]
    np.testing.assert_allclose(each[1].predict(numbers), -2.0 * each[0].predict(numbers), rtol=1e-6)
    for one, other in zip(each[0].model_.members, each[1].model_.members, strict=True):
        np.testing.assert_array_equal(one.predictor.basis.centers, other.predictor.basis.centers)
    # Where every row has both labels, scikit-learn's own way works; it refuses NaN in y.
    labeled = np.nan_to_num(both)
    several = MultiOutputRegressor(model).fit(numbers, labeled).predict(numbers)
    np.testing.assert_array_equal(several[:, 0], clone(model).fit(numbers, labeled[:, 0]).predict(numbers))
