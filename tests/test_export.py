"""Models in other formats give the model's predictions."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import AutoSFRRegressor, Ensemble, LapWNNRegressor, Model, RuleRegressor, SFRRegressor
from dsfr.cli import main
from dsfr.core.prediction.mixture import Mixture
from dsfr.export import export, to_fml, to_onnx
from tests.tables import make_table
from tests.test_explain import average_of, model_of, predictor_of, rows_of
from tests.test_rule_card import random_card

onnxruntime = pytest.importorskip("onnxruntime")

seeds = st.integers(0, 10_000)
few = settings(max_examples=20)


def run_onnx(data, X):
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return session.run(["prediction"], {"X": X})[0]


def far_rows(seed, predictor, far):
    X = rows_of(seed, predictor)
    return np.vstack([X, far * X[:20], predictor.ranges.low[None], predictor.ranges.high[None]])


@few
@given(seed=seeds, n_rules=st.integers(1, 8), n_features=st.integers(1, 6), far=st.sampled_from([1.0, 1e6]))
def test_onnx_in_double_precision_is_the_model(seed, n_rules, n_features, far):
    model = model_of(predictor_of(seed, n_rules, n_features))
    X = far_rows(seed, model.predictor, far)
    expected = model.predict(X)
    size = model.predictor.target_scale + np.abs(expected)
    assert np.max(np.abs(run_onnx(to_onnx(model, double=True), X) - expected) / size) <= 1e-9


@few
@given(seed=seeds, n_rules=st.integers(1, 8), n_features=st.integers(1, 6))
def test_onnx_in_single_precision_is_the_model_to_a_ten_thousandth(seed, n_rules, n_features):
    model = model_of(predictor_of(seed, n_rules, n_features))
    X = rows_of(seed, model.predictor).astype(np.float32)
    found = run_onnx(to_onnx(model), X)
    assert found.dtype == np.float32
    expected = model.predict(X.astype(np.float64))
    # float32 itself has seven digits: a target of 1e6 +/- 1 cannot be told to a ten thousandth of its deviation.
    room = 1e-4 * model.predictor.target_scale + 6e-8 * np.abs(expected)
    assert (np.abs(found - expected) <= room).all()


@few
@given(seed=seeds, n_members=st.integers(2, 4))
def test_averages_of_several_rule_bases_too(seed, n_members):
    model = average_of(seed, n_members)
    X = rows_of(seed, model.predictor)
    expected = model.predict(X)
    size = max(member.predictor.target_scale for member in model.members) + np.abs(expected)
    assert np.max(np.abs(run_onnx(to_onnx(model, double=True), X) - expected) / size) <= 1e-9
    with pytest.raises(ValueError, match="FML describes one"):
        to_fml(model)


@few
@given(seed=seeds, n_nodes=st.integers(1, 30))
def test_wavelets_too(seed, n_nodes):
    X, _, y = make_table(seed)
    model = LapWNNRegressor(n_nodes=n_nodes, random_state=seed).fit(X, y).model_
    found = run_onnx(to_onnx(model, double=True), np.vstack([X, 1e9 * X]))
    np.testing.assert_allclose(found, model.predict(np.vstack([X, 1e9 * X])), rtol=1e-9, atol=1e-9)


def test_onnx_takes_any_number_of_rows_and_says_what_it_is(tmp_path):
    onnx = pytest.importorskip("onnx")
    X, _, y = make_table(0)
    model = SFRRegressor(random_state=0).fit(X, y).model_.renamed(["a", "<b>", "ü\n"], "t")
    path = export(model, tmp_path / "m.onnx", double=True)
    for n_rows in (0, 1, 5000):
        rows = np.resize(X, (n_rows, 3))
        np.testing.assert_allclose(run_onnx(path.read_bytes(), rows), model.predict(rows), rtol=1e-9)
    described = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert described["target_name"] == "t"
    assert to_onnx(model, double=True) == path.read_bytes()


def predict_fml(data, X):
    """Predictions by a reader of the standard: product of memberships, weighted average of first-order lines."""
    ns = {"f": "http://www.ieee1855.org"}
    root = ET.fromstring(data)
    shapes, order = {}, []
    for variable in root.findall("f:knowledgeBase/f:fuzzyVariable", ns):
        order.append(variable.get("name"))
        for term in variable.findall("f:fuzzyTerm", ns):
            shape = term.find("f:gaussianShape", ns)
            shapes[variable.get("name"), term.get("name")] = float(shape.get("param1")), float(shape.get("param2"))
    lines = {
        term.get("name"): [float(value.text) for value in term.findall("f:tskValue", ns)]
        for term in root.findall("f:knowledgeBase/f:tskVariable/f:tskTerm", ns)
    }
    weights, outputs = [], []
    for rule in root.findall("f:tskRuleBase/f:tskRule", ns):
        log_weight = np.zeros(len(X))
        for clause in rule.findall("f:antecedent/f:clause", ns):
            name, term = clause.find("f:variable", ns).text, clause.find("f:term", ns).text
            center, deviation = shapes[name, term]
            log_weight -= (X[:, order.index(name)] - center) ** 2 / (2 * deviation**2)
        line = lines[rule.find("f:tskConsequent/f:tskThen/f:tskClause/f:term", ns).text]
        weights.append(log_weight)
        outputs.append(line[0] + X @ np.array(line[1:]))
    strengths = np.exp(np.array(weights) - np.max(weights, axis=0))
    return (strengths * np.array(outputs)).sum(axis=0) / strengths.sum(axis=0)


@few
@given(seed=seeds, n_rules=st.integers(1, 6))
def test_fml_read_by_the_standard_is_the_model(seed, n_rules):
    model = model_of(predictor_of(seed, n_rules))
    X = rows_of(seed, model.predictor)
    scale = model.predictor.target_scale
    assert np.abs(predict_fml(to_fml(model), X) - model.predict(X)).max() <= 1e-9 * (
        scale + abs(model.predict(X)).max()
    )


def degree_of(shape, x):
    """Membership of the shapes that rules over shared terms use, as the standard has them."""
    numbers = [float(shape.get(f"param{i + 1}")) for i in range(len(shape.attrib))]
    rise = lambda start, end: np.clip((x - start) / (end - start), 0.0, 1.0)  # noqa: E731
    return {
        "rectangularShape": lambda a, b: np.ones_like(x),
        "leftLinearShape": lambda a, b: 1.0 - rise(a, b),
        "rightLinearShape": lambda a, b: rise(a, b),
        "trapezoidShape": lambda a, b, c, d: rise(a, b) - rise(c, d),
    }[shape.tag.partition("}")[2]](*numbers)


def predict_linguistic_fml(data, X):
    """Predictions by a reader of the standard: product of memberships, weighted average of first-order lines."""
    ns = {"f": "http://www.ieee1855.org"}
    root = ET.fromstring(data)
    variables = root.findall("f:knowledgeBase/f:fuzzyVariable", ns)
    order = [variable.get("name") for variable in variables]
    X = np.column_stack(
        [
            np.clip(x, float(v.get("domainleft")), float(v.get("domainright")))
            for x, v in zip(X.T, variables, strict=True)
        ]
    )
    shapes = {term.get("name"): term[0] for variable in variables for term in variable}
    lines = {
        term.get("name"): [float(value.text) for value in term]
        for term in root.findall("f:knowledgeBase/f:tskVariable/f:tskTerm", ns)
    }
    total, weight = 0.0, 0.0
    for rule in root.findall("f:tskRuleBase/f:tskRule", ns):
        strength = 1.0
        for clause in rule.findall("f:antecedent/f:clause", ns):
            x = X[:, order.index(clause.find("f:variable", ns).text)]
            strength = strength * degree_of(shapes[clause.find("f:term", ns).text], x)
        line = lines[rule.find("f:tskConsequent/f:tskThen/f:tskClause/f:term", ns).text]
        total, weight = total + strength * (line[0] + X @ np.array(line[1:])), weight + strength
    return total / weight


@few
@given(seed=seeds, n_rules=st.integers(1, 8), with_limits=st.booleans())
def test_rules_over_shared_terms_are_the_same_in_onnx_and_fml(seed, n_rules, with_limits):
    names = ("a", "b", "c")
    card = random_card(seed, n_rules, names, with_limits=with_limits)
    model = Model(Mixture.of(card.predictor), names)
    X = np.random.default_rng(seed).uniform(-9, 9, (50, 3))
    size = np.abs(card.lines).max(initial=1.0)
    np.testing.assert_allclose(run_onnx(to_onnx(model, double=True), X), model.predict(X), rtol=1e-9, atol=1e-9 * size)
    np.testing.assert_allclose(predict_linguistic_fml(to_fml(model), X), model.predict(X), rtol=1e-9, atol=1e-9 * size)


def test_fml_names_sets_in_words_and_survives_odd_names():
    X, _, y = make_table(0)
    model = SFRRegressor(n_rules=8, random_state=0).fit(X, y).model_.renamed(["a", "a", "<&\x00\n"], "a")
    data = to_fml(model)
    root = ET.fromstring(data)
    names = [element.get("name") for element in root.iter() if element.get("name")]
    assert len(set(names)) == len(names)  # the schema's identifiers
    assert all(re.fullmatch(r"[A-Za-z_][\w.-]*", name, flags=re.ASCII) for name in names)
    assert any("medium" in term.get("name") for term in root.iter("{http://www.ieee1855.org}fuzzyTerm"))
    np.testing.assert_allclose(predict_fml(data, X), model.predict(X), rtol=1e-9)


def test_shared_sets_are_written_once():
    model = model_of(predictor_of(0, n_rules=6)).simplify(similarity=0.3).model
    root = ET.fromstring(to_fml(model))
    sets = list(root.iter("{http://www.ieee1855.org}fuzzyTerm"))
    assert len(sets) < model.predictor.basis.centers.size
    X = rows_of(0, model.predictor)
    assert math.isclose(predict_fml(to_fml(model), X)[0], model.predict(X)[0], rel_tol=1e-9)


def test_the_command_exports_and_refuses(tmp_path):
    X, _, y = make_table(0)
    path = SFRRegressor(random_state=0).fit(X, y).save(tmp_path / "m.dsfr")

    def run(*arguments):
        return CliRunner().invoke(main, ["export", str(path), *map(str, arguments)])

    for name in ("m.onnx", "m.fml", "m.xml"):
        assert run("-o", tmp_path / name).exit_code == 0
        assert (tmp_path / name).stat().st_size > 500
    for arguments, message in (
        (("-o", tmp_path / "m.pmml"), "its ending must be .onnx"),
        (("-o", tmp_path / "m.fml", "--double"), "--double is for ONNX"),
        (("-o", tmp_path / "nowhere" / "m.onnx"), "does not exist"),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 2
        assert message in refused.output


@pytest.mark.parametrize("kind", ["auto", "rules", "sfr"])
def test_a_missing_value_is_nan_in_onnx_and_never_a_wrong_number(kind):
    X, _, y = make_table(3, n_rows=90, n_features=3, n_labels=40)
    estimators = {
        "auto": AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects="pairs"), random_state=0),
        "rules": RuleRegressor(4, teacher=AutoSFRRegressor(ensemble=Ensemble(n_models=0)), random_state=0),
        "sfr": SFRRegressor(3, random_state=0),
    }
    model = estimators[kind].fit(X, y).model_
    rows = np.where(np.eye(3, dtype=bool), np.nan, X[:3])
    assert np.isnan(run_onnx(to_onnx(model, double=True), rows)).all()
    filled = run_onnx(to_onnx(model, double=True), model.completed(rows))
    np.testing.assert_allclose(filled, model.predict(model.completed(rows)), rtol=1e-9)
