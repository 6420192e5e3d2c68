"""Laws of rows whose level of a category is missing, and of explanations of rows with missing and noisy values."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, FuzzyRules, RuleRegressor, SFRRegressor
from dsfr.cli import main
from dsfr.core.prediction.levels import MOST_ALTERNATIVES, alternatives

seeds = st.integers(0, 1)
ESTIMATORS = {
    "sfr": lambda: SFRRegressor(3, tune="evidence", uncertainty=True, random_state=0),
    "bell": lambda: SFRRegressor(3, rules=FuzzyRules(membership="bell"), random_state=0),
    "auto": lambda: AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects="pairs"), random_state=0),
    "rules": lambda: RuleRegressor(4, teacher=AutoSFRRegressor(ensemble=Ensemble(n_models=0)), random_state=0),
}
KINDS = st.sampled_from(sorted(ESTIMATORS))
LEVELS = {"region": ["east", "north", "south"], "sex": ["f", "m"]}


def frame_of(seed, n=90):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    X["c"] = X.a + 0.3 * rng.normal(size=n)
    for name, levels in LEVELS.items():
        X[name] = pd.Categorical(rng.choice(levels, n), categories=levels)
    y = 2.0 * X.a + X.b**2 + 3.0 * (X.region == "north") - (X.sex == "m") + 0.1 * rng.normal(size=n)
    return X, y.where(np.arange(n) < 45), rng


def gappy(X, rng, share):
    return X.mask(rng.random(X.shape) < share)


@cache
def model_of(kind, seed, share):
    X, y, rng = frame_of(seed)
    return ESTIMATORS[kind]().fit(gappy(X, rng, share) if share else X, y)


def fitted(kind, seed, *, share=0.0):
    X, _, rng = frame_of(seed)
    return model_of(kind, seed, share), X, rng


@settings(max_examples=6, deadline=None)
@given(kind=KINDS, seed=seeds)
def test_a_missing_level_is_an_average_over_the_levels(kind, seed):
    model, X, _ = fitted(kind, seed)
    rows = X[:4]
    for name, levels in LEVELS.items():
        each = np.stack([model.predict(rows.assign(**{name: level})) for level in levels])
        mean = model.predict(rows.assign(**{name: None}))
        assert (mean >= each.min(axis=0) - 1e-9).all()
        assert (mean <= each.max(axis=0) + 1e-9).all()
    both = [rows.assign(region=region, sex=sex) for region in LEVELS["region"] for sex in LEVELS["sex"]]
    each, mean = np.stack(list(map(model.predict, both))), model.predict(rows.assign(region=None, sex=None))
    assert (mean >= each.min(axis=0) - 1e-9).all()
    assert (mean <= each.max(axis=0) + 1e-9).all()


def test_an_unknown_level_is_a_missing_one():
    model, X, _ = fitted("auto", 1)
    np.testing.assert_array_equal(
        model.predict(X[:9].assign(region="west")), model.predict(X[:9].assign(region=np.nan))
    )


def test_what_levels_change_counts_in_the_deviation_of_the_inputs():
    model, X, _ = fitted("sfr", 2)
    each = np.stack([model.predict(X.assign(region=level)) for level in LEVELS["region"]])
    inputs = model.deviation_parts(X.assign(region=None)).inputs
    assert (inputs <= np.ptp(each, axis=0) / 2.0 + 1e-9).all()
    assert (inputs >= 0.2 * np.ptp(each, axis=0)).all()


@settings(max_examples=4, deadline=None)
@given(kind=KINDS, seed=seeds)
def test_the_order_of_rows_and_the_size_of_a_block_do_not_matter(kind, seed):
    model, X, rng = fitted(kind, seed, share=0.2)
    rows = gappy(X, rng, 0.3)
    order = rng.permutation(len(rows))
    predictions = model.predict(rows)
    np.testing.assert_array_equal(model.predict(rows.iloc[order]), predictions[order])
    alone = np.concatenate([model.predict(rows[i : i + 1]) for i in range(12)])
    np.testing.assert_allclose(alone, predictions[:12], rtol=1e-12, atol=1e-12)


@settings(max_examples=8, deadline=None)
@given(kind=KINDS, seed=seeds, share=st.sampled_from([0.0, 0.3]), noise=st.sampled_from([None, {"b": 0.4}, 0.1]))
def test_contributions_add_up_to_the_prediction_whatever_is_unknown(kind, seed, share, noise):
    model, X, rng = fitted(kind, seed, share=share)
    rows = gappy(X, rng, 0.4)[:4]
    predictions = model.predict(rows, X_std=noise)
    for i, expected in enumerate(predictions):
        explained = model.explain_prediction(rows[i : i + 1], X_std=noise)
        assert explained.prediction == pytest.approx(expected, rel=1e-9, abs=1e-9)
        parts = sum(explained.contributions.values()) + sum(explained.together.values())
        assert explained.start + explained.firing + parts == pytest.approx(explained.value, rel=1e-9, abs=1e-9)
        if explained.half_width is not None:
            low, high = model.predict_interval(rows[i : i + 1], 0.9, X_std=noise)
            assert (
                explained.half_width == pytest.approx((high[0] - low[0]) / 2.0, rel=1e-6) or explained.link.low > -1e9
            )
        shown = [line for line in str(explained).splitlines() if " unknown" in line]
        assert len(shown) == rows.iloc[i].isna().sum()


def test_the_text_of_a_prediction_says_what_is_unknown():
    model, X, _ = fitted("sfr", 3)
    row = X[:1].assign(a=np.nan, region=None)
    expected = model.model_.completed(row)[0]
    assert f"unknown, {expected[0]:.4g} ±" in str(model.explain_prediction(row))
    text = str(model.explain_prediction(row, X_std={"b": 0.2}))
    a = next(line for line in text.splitlines() if line.startswith("a "))
    assert "unknown, " in a
    region = next(line for line in text.splitlines() if line.startswith("region"))
    assert "expected, typical is" in region
    assert "y is an expectation over a, b, region: they move it by" in text
    exact = str(model.explain_prediction(X[:1]))
    assert "unknown" not in exact
    assert "expectation" not in exact


def test_a_file_without_a_density_explains_what_it_can(tmp_path):
    X, y, _ = frame_of(4)
    model = SFRRegressor(3, random_state=0).fit(X[["a", "b"]], y).model_
    bare = replace(model, mixture=replace(model.mixture, density=None))
    explained = bare.explain_prediction([np.nan, 0.5])
    assert explained.prediction == pytest.approx(bare.predict([[np.nan, 0.5]])[0])
    assert "unknown, typical" in str(explained)


def test_many_missing_categories_have_a_bounded_number_of_alternatives():
    rng = np.random.default_rng(0)
    n, groups = 60, tuple(tuple(range(5 * g, 5 * g + 5)) for g in range(4))
    codes = rng.integers(5, size=(n, 4))
    frame = pd.DataFrame({f"k{g}": np.array(list("abcde"))[codes[:, g]] for g in range(4)})
    model = SFRRegressor(2, random_state=0).fit(frame.assign(x=rng.normal(size=n)), rng.normal(size=n))
    assert np.isfinite(model.predict(frame.assign(x=1.0, k0=None, k1=None, k2=None, k3=None))).all()
    density = model.model_.mixture.density
    assert model.model_.mixture.categories == groups
    gone = np.full((3, 21), np.nan)
    found = alternatives(density, groups, gone, np.zeros_like(gone))
    assert len(found.X) <= 3 * MOST_ALTERNATIVES
    np.testing.assert_allclose(np.bincount(found.owners, found.weights), 1.0)
    np.testing.assert_allclose(np.bincount(found.owners, found.probabilities), 1.0)


def test_a_saved_model_explains_a_row_with_gaps_on_the_command_line(tmp_path):
    X, y, _ = frame_of(5)
    model = SFRRegressor(3, tune="evidence", uncertainty=True, random_state=0).fit(X, y)
    path = model.save(tmp_path / "m.dsfr")
    rows = X[:3].assign(region=None, a=np.nan)
    rows.to_csv(tmp_path / "new.csv", index=False)
    done = CliRunner().invoke(
        main, ["explain", str(path), "--row", f"{tmp_path / 'new.csv'}:2", "--input-std", "b=0.3"]
    )
    assert done.exit_code == 0, done.output
    loaded = dsfr.load(path)
    assert done.output.strip() == str(loaded.explain_prediction(rows[1:2], X_std={"b": 0.3})).strip()
    refused = CliRunner().invoke(main, ["explain", str(path), "--input-std", "b=0.3"])
    assert refused.exit_code == 2
    assert "--input-std is for --row" in refused.output
