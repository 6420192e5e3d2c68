"""The recipe of a membership function carried out: a class, and training, files, pages, ONNX and plots know it."""

import json
import re
import shutil
import subprocess
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, Decentralized, Ensemble, FuzzyRules, InProcess, ModelFileError, SFRRegressor, plot
from dsfr.core.features import membership
from dsfr.core.relevance.slopes import slopes
from dsfr.core.scaling.affine import scale_features
from dsfr.export import to_fml, to_onnx
from dsfr.report import render
from tests.tables import make_table, owners_of
from tests.test_explain import average_of, model_of, predictor_of, rows_of

mpl.use("Agg")
seeds = st.integers(0, 10_000)


class Laplace:
    """``exp(-|z|)``."""

    name, compiled, javascript = "laplace", False, "-Math.abs(z)"

    def log(self, z):
        return -np.abs(z)

    def slope(self, z):
        return -np.sign(z)

    def onnx(self, graph, z):
        return graph.do("Neg", graph.do("Abs", z))


@pytest.fixture(autouse=True, scope="module")
def registered():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(membership.MEMBERSHIPS, "laplace", Laplace())
        yield


def laplacian(predictor):
    return replace(predictor, basis=replace(predictor.basis, membership="laplace"))


def laplacian_average(seed):
    model = average_of(seed)
    first = model.members[0].predictor
    unit = {"target_mean": first.target_mean, "target_scale": first.target_scale}  # a file has one unit of the target
    members = tuple(replace(member, predictor=replace(laplacian(member.predictor), **unit)) for member in model.members)
    return replace(model, mixture=replace(model.mixture, members=members))


@given(seed=seeds)
def test_a_file_keeps_the_membership_function(tmp_path_factory, seed):
    model = laplacian_average(seed)
    X = rows_of(seed, model.predictor)
    loaded = dsfr.load(model.save(tmp_path_factory.mktemp("model") / "m.dsfr"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert all(member.predictor.basis.membership == "laplace" for member in loaded.members)


def test_a_file_with_an_unknown_membership_function_is_refused(tmp_path, monkeypatch):
    path = laplacian_average(0).save(tmp_path / "m.dsfr")
    monkeypatch.delitem(membership.MEMBERSHIPS, "laplace")
    with pytest.raises(ModelFileError, match="membership='laplace' must be one of 'gaussian'"):
        dsfr.load(path)


def test_onnx_computes_it():
    runtime = pytest.importorskip("onnxruntime")
    model = laplacian_average(1)
    X = rows_of(1, model.predictor)
    session = runtime.InferenceSession(to_onnx(model, double=True))
    np.testing.assert_allclose(session.run(None, {"X": X})[0], model.predict(X), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("make", [average_of, laplacian_average])
def test_the_page_computes_it(make):
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine")
    model = make(3)
    X = rows_of(3, model.predictor)
    page = render(model)
    data = re.search(r'id="model">(.*?)</script>', page, flags=re.DOTALL)[1]
    script = page[page.index('"use strict"') : page.index("// Plots in SVG")]
    asked = f"const rows = {json.dumps(X.tolist())}; const model = {data};"
    told = "console.log(JSON.stringify([rows.map((x) => predict(model, x)), rows.map((x) => strengths(model, x))]))"
    done = subprocess.run([node, "-"], input=f"{script}\n{asked}\n{told}", capture_output=True, text=True, check=True)
    predictions, strengths = json.loads(done.stdout)
    np.testing.assert_allclose(predictions, model.predict(X), rtol=1e-9)
    np.testing.assert_allclose(strengths, model.rule_base.strengths(X), atol=1e-12)


def test_plots_draw_it():
    model = model_of(laplacian(predictor_of(0)))
    axes = plot.memberships(model, 0)
    base = model.rule_base
    for line in axes.get_lines():
        k = int(line.get_label().split()[1]) - 1
        grid, degree = line.get_data()
        np.testing.assert_allclose(degree, np.exp(-np.abs(grid - base.centers[k, 0]) / base.widths[k, 0]))


def test_fuzzy_markup_refuses_it():
    with pytest.raises(ValueError, match="membership='laplace' has no shape in FML"):
        to_fml(model_of(laplacian(predictor_of(0))))


@pytest.mark.parametrize("solver", ["sums", "conjugate", "admm", "few-rounds", Decentralized()])
def test_training_uses_it_over_agents(solver):
    X, _, y = make_table(0)
    owners = owners_of(0, len(y), 3, skew=10.0)
    rules = FuzzyRules(membership="laplace", width_scale=2.0)
    told = {"rules": rules, "ridge": 1.0, "unlabeled": None, "random_state": 0}
    found = SFRRegressor(solver=solver, engine=InProcess(topology="ring"), **told).fit(X, y, agents=owners)
    predictor = found.model_.predictor
    assert predictor.basis.membership == "laplace"
    Z = scale_features(X, predictor.ranges)
    phi = np.exp(-np.abs((Z[:, None, :] - predictor.basis.centers) / predictor.basis.widths).sum(axis=2))
    strengths = phi / phi.sum(axis=1, keepdims=True)
    H = (strengths[:, :, None] * np.concatenate([np.ones((len(Z), 1)), Z], axis=1)[:, None, :]).reshape(len(Z), -1)
    known = ~np.isnan(y)
    targets = (y[known] - predictor.target_mean) / predictor.target_scale
    weights = np.linalg.solve(H[known].T @ H[known] + np.eye(H.shape[1]), H[known].T @ targets)
    np.testing.assert_allclose(
        found.predict(X), predictor.target_mean + predictor.target_scale * (H @ weights), rtol=1e-3
    )


def test_the_automatic_mode_and_slopes_use_it():
    X, _, y = make_table(1)
    model = AutoSFRRegressor(ensemble=Ensemble(n_models=2), rules=FuzzyRules(membership="laplace"), random_state=0).fit(
        X, y
    )
    assert {member.predictor.basis.membership for member in model.model_.members} == {"laplace"}
    assert model.score(X, y) > 0.5
    predictor = model.model_.predictor
    Z, step = scale_features(X[:20], predictor.ranges), 1e-6
    found = slopes(Z, predictor.basis, predictor.weights)
    for j in range(X.shape[1]):
        up, down = Z.copy(), Z.copy()
        up[:, j] += step
        down[:, j] -= step
        numeric = (predictor.basis.features(up) - predictor.basis.features(down)) @ predictor.weights / (2 * step)
        np.testing.assert_allclose(found[:, j], numeric, rtol=1e-4, atol=1e-4)


def test_an_unknown_one_is_refused():
    with pytest.raises(ValueError, match="membership='magic' must be the name of a membership function"):
        FuzzyRules(membership="magic")
