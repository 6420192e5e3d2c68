"""Categories: one model from frames and files, in words that are the model, over owners, in its file and exports."""

import json
from xml.etree import ElementTree

import numpy as np
import onnxruntime
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, RuleRegressor, SFRRegressor
from dsfr.export import to_fml, to_onnx
from dsfr.model.frames import encode_frame
from dsfr.model.kinds import ColumnSurvey
from dsfr.model.schema import Column, Schema
from dsfr.report import write_report
from tests import card_reader
from tests.test_cli import refused, run
from tests.test_rule_card import teacher

LEVELS = ["north", "east", "a or b", "not so", "7", "3.5", 'quo"te', "is", "x, y", "ü"]


def houses(seed=0, n=120, levels=("east", "north", "south", "west"), name="region"):
    """Prices that depend on a category, on a number within one of its levels, and on a boolean."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"rooms": rng.integers(1, 8, n), "area": rng.uniform(20, 200, n).round(1)})
    X[name] = rng.permutation(np.resize(np.array(levels, dtype=object), n))
    X["garden"] = rng.random(n) < 0.4
    y = 2.0 * X["area"] + 60.0 * (X[name] == levels[1]) * X["rooms"] + 40.0 * X["garden"] + rng.normal(0, 3, n)
    return X, y.rename("price")


def as_read(X):
    """Columns as a reader of the printed rules has them."""
    return {
        name: column.to_numpy(float) if name in ("rooms", "area") else column.astype(str) for name, column in X.items()
    }


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 10_000),
    st.lists(st.sampled_from(LEVELS), min_size=2, max_size=5, unique=True),
    st.sampled_from(["region", "is it", "a, b", "1st"]),
    st.fixed_dictionaries(
        {
            "max_rules": st.integers(1, 6),
            "max_conditions": st.integers(0, 3),
            "max_terms": st.one_of(st.none(), st.integers(0, 3)),
            "n_agents": st.integers(1, 3),
        }
    ),
)
def test_the_printed_rules_predict_what_the_model_predicts(seed, levels, name, hyper):
    X, y = houses(seed, levels=levels, name=name)
    X = X.astype({name: "category"})  # levels that are numbers are no category by themselves
    model = RuleRegressor(teacher=teacher(), random_state=seed, **hyper).fit(X, y.where(np.arange(len(y)) < 60))
    read = card_reader.predict(str(model.rules_), as_read(X)) + np.zeros(len(X))
    np.testing.assert_allclose(read, model.predict(X), rtol=1e-9, atol=1e-9 * float(np.abs(y).max()))
    strengths = model.rules_.rules.strengths(encode_frame(X, model.model_.columns))
    np.testing.assert_allclose(strengths.sum(axis=1), 1.0, atol=1e-12)


def test_rules_name_levels_and_lines_read_well():
    X, y = houses(n=400)
    text = str(RuleRegressor(tolerance=0.005, random_state=0).fit(X, y.where(np.arange(400) < 150)).rules_)
    assert "AND region is north" in text or "IF region is north" in text
    assert "region is one of east, north, south, west" in text
    assert " if garden is True" in text
    assert "if region is south" not in text  # beside north, levels do not matter


def test_conditions_on_several_levels_are_one_group():
    X, _ = houses(n=600)
    wanted = X["region"].isin(["north", "east"])
    y = np.where(wanted, 30.0 * X["rooms"], 400.0 - 20.0 * X["rooms"])
    text = str(RuleRegressor(random_state=0).fit(X, y).rules_)
    assert "region is east or north" in text or "region is south or west" in text


@pytest.fixture(scope="module")
def fitted():
    X, y = houses()
    return X, y, SFRRegressor(3, random_state=0).fit(X, y)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.assign(region=X["region"].astype("category")),
        lambda X: X.assign(region=X["region"].astype("string")),
        lambda X: X.assign(region=X["region"].astype(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))),
        lambda X: X.assign(garden=X["garden"].astype("boolean")),
        lambda X: X.assign(garden=X["garden"].astype(str)),
        lambda X: X.set_index(X.index + 7),
    ],
)
def test_the_type_of_a_column_does_not_matter(fitted, change):
    X, y, model = fitted
    other = SFRRegressor(3, random_state=0).fit(change(X), y.to_numpy())
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(model.predict(change(X)), model.predict(X))


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_files_give_the_model_of_the_frame(fitted, tmp_path, ending):
    X, y, model = fitted
    path, table = tmp_path / f"rows.{ending}", X.assign(price=y)
    if ending == "parquet":
        table.astype({"region": "category"}).to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    rows = dsfr.scan(path, target="price")
    assert rows.feature_names == model.model_.feature_names
    streamed = SFRRegressor(3, random_state=0).fit(rows)
    np.testing.assert_allclose(streamed.predict(X), model.predict(X), rtol=1e-9)
    np.testing.assert_allclose(model.predict(dsfr.scan(path)), model.predict(X), rtol=1e-9)


def test_the_command_line_keeps_categories(tmp_path):
    X, y = houses(n=200)
    X.assign(price=y.where(np.arange(200) < 80)).to_csv(tmp_path / "rows.csv", index=False)
    model, told = tmp_path / "m.dsfr", ("--target", "price", "-o")
    assert "region is" in run("fit", tmp_path / "rows.csv", *told, model).stdout
    predicted = run("predict", model, tmp_path / "rows.csv", "-o", tmp_path / "out.parquet")
    assert predicted.exit_code == 0, predicted.output
    kept = pd.read_parquet(tmp_path / "out.parquet")
    assert (kept["rooms"].dtype, kept["area"].dtype, kept["price"].dtype) == (np.int64, np.float64, np.float64)
    assert kept["region"].tolist() == X["region"].tolist()
    np.testing.assert_allclose(kept["prediction"], dsfr.load(model).predict(X), rtol=1e-9)
    shown = run("explain", model, "--row", f"{tmp_path / 'rows.csv'}:3").stdout
    assert f"{X['region'][2]}, typical is" in shown
    assert run("report", model, tmp_path / "rows.csv", "-o", tmp_path / "page.html").exit_code == 0
    declared = run(
        "fit", tmp_path / "rows.csv", *told, model, "--category", "region=north,other", "--method", "sfr-icr"
    )
    assert declared.exit_code == 0, declared.output
    assert dsfr.load(model).columns.categories["region"] == ("north", "other")
    assert "must be a list of two or more" in refused(
        "fit", tmp_path / "rows.csv", *told, model, "--category", "region=a"
    )


def test_owners_of_files_agree_on_levels_by_their_sum(tmp_path):
    X, y = houses(n=90, levels=("east", "north"))
    table = X.assign(price=y)
    table.loc[30:59, "region"], table.loc[0, "region"] = "south", "nowhere"
    for number in range(3):
        table[30 * number : 30 * number + 30].to_csv(tmp_path / f"site-{number}.csv", index=False)
    fit = ("fit", "--engine", "in-process", tmp_path / "site-*.csv", "--target", "price", "--method", "sfr-icr")
    result = run(*fit, "-o", tmp_path / "m.dsfr")
    assert result.exit_code == 0, result.output
    assert dsfr.load(tmp_path / "m.dsfr").columns.categories["region"] == ("east", "north", "south", "other")
    said = refused(*fit, "--policy", "default", "-o", tmp_path / "m.dsfr")
    assert "under a policy nobody counts their levels: declare them, --category COL=LEVEL,LEVEL" in said


def test_owners_do_not_change_the_sums():
    X, y = houses(3)
    owners = np.resize(["a", "b", "c"], len(X))
    one, three = (
        SFRRegressor(3, solver="sums", unlabeled=None, random_state=0).fit(X, y, agents=who) for who in (None, owners)
    )
    assert one.model_.feature_names == three.model_.feature_names
    assert three.agents_ == ["a", "b", "c"]


def test_rare_levels_are_other_and_unknown_ones_are_missing():
    X, _ = houses(n=100)
    X.loc[:3, "region"] = "moon"
    (region,) = (
        column for column in Schema(SFRRegressor().fit(X, X["area"])._schema.columns).columns if column.name == "region"
    )
    assert region.levels == ("east", "north", "south", "west", "other")
    known, unknown = Schema((region,)), Schema((Column("region", ("east", "north", "south")),))
    rows = pd.DataFrame({"region": ["mars", None, "north"]})
    np.testing.assert_array_equal(encode_frame(rows, known), [[0, 0, 0, 0, 1], [np.nan] * 5, [0, 1, 0, 0, 0]])
    np.testing.assert_array_equal(encode_frame(rows, unknown), [[np.nan] * 3, [np.nan] * 3, [0, 1, 0]])


def test_the_file_keeps_columns_and_refuses_others(fitted, tmp_path):
    X, _, model = fitted
    kept = dsfr.load(model.save(tmp_path / "m.dsfr"))
    np.testing.assert_array_equal(kept.predict(X), model.predict(X))
    assert kept.columns == model.model_.columns
    plain = Schema.from_json(json.loads(json.dumps(kept.columns.to_json())))
    assert plain == kept.columns
    for wrong in (
        [{"name": "a", "levels": ["x", "x"]}],
        [{"name": 3}],
        [{"name": "a", "levels": []}],
        {},
        [{"name": "a"}] * 2,
    ):
        with pytest.raises(ValueError, match=r"columns|several"):
            Schema.from_json(wrong)


def test_exports_and_page_agree(tmp_path):
    X, y = houses(n=200)
    model = RuleRegressor(random_state=0).fit(X, y.where(np.arange(200) < 80))
    rows = encode_frame(X, model.model_.columns)
    session = onnxruntime.InferenceSession(to_onnx(model.model_, double=True), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"X": rows})[0], model.predict(X), rtol=1e-9)
    names = [
        entry.get("name") for entry in ElementTree.fromstring(to_fml(model.model_)).iter() if entry.get("domainleft")
    ]
    assert len(names) == rows.shape[1]
    page = write_report(model.model_, tmp_path / "page.html", X, y).read_text()
    payload = json.loads(page.split('id="model">')[1].split("</script>")[0])
    assert payload["categories"][0] == {
        "name": "region",
        "levels": ["east", "north", "south", "west"],
        "features": {"2": 0, "3": 1, "4": 2, "5": 3},
    }
    assert payload["columns"][0]["step"] == 1
    assert str(model.rules_.condition(0)).removeprefix("IF ") in page.replace("&quot;", '"')


def test_explanations_of_clusters_and_effects_name_levels():
    X, y = houses(n=200)
    model = AutoSFRRegressor(random_state=0).fit(X.set_index(X.index + 1000), y.to_numpy())
    text = str(model.explain(X.set_index(X.index + 1000)))
    assert "is very high (about 1" not in text
    assert "region is north (" in text
    assert ", else " in text
    shown = str(model.explain_prediction(X.iloc[5]))
    assert f"{X['region'][5]}, typical is" in shown
    assert model.explain_prediction(X.iloc[5]).prediction == pytest.approx(model.predict(X.iloc[[5]])[0])
    for row in (X.iloc[5].tolist(), X.iloc[5].to_dict()):
        with pytest.raises(ValueError, match=r"the model has categories: give a row of a data frame, such as"):
            model.explain_prediction(row)


def test_rows_are_named_by_the_index_and_rules_are_among_those_shown():
    X, y = houses(n=200)
    X.index = [f"house {n}" for n in range(200)]
    model = AutoSFRRegressor(random_state=0).set_params(ensemble__effects=None).fit(X, y.to_numpy())
    text = str(model.explain(X))
    assert "like row house " in text
    n_shown = text.count("\nRule ") + text.startswith("Rule ")
    said = str(model.explain_prediction(X.iloc[0]))
    numbers = [int(part.split(":")[0]) for part in said.split("rule ")[1:]]
    assert max(numbers) <= n_shown < len(model.explain(X, all_models=True))


def test_edits_hold_for_all_levels():
    X, y = houses(n=200)
    model = RuleRegressor(edits={"region": {"condition": False, "slope": "0"}}, random_state=0).fit(X, y)
    assert "region" not in str(model.rules_)
    with pytest.raises(ValueError, match=r"edits\['region'\]: it is a category"):
        RuleRegressor(edits={"region": {"thresholds": [[0, 1]]}}).fit(X, y)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(min_size=1, max_size=5), st.integers(1, 30), max_size=30), st.booleans())
def test_every_column_has_one_verdict(counts, explicit):
    survey = ColumnSurvey("c")
    survey.add({text.strip(): count for text, count in counts.items()})
    found = survey.verdict(explicit=explicit)
    assert sum(map(bool, (found.column, found.left_out, found.problem))) == 1
    if found.column is not None and found.column.levels is not None:
        assert 2 <= len(found.column.levels) <= 21
        assert all(survey.counts[level] >= 5 for level in found.column.levels if level != "other")
