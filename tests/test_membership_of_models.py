"""Another membership function than the Gaussian one, in everything that is done with a trained model."""

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
from dsfr import ModelFileError, plot
from dsfr.core.features import membership
from dsfr.export import to_fml, to_onnx
from dsfr.report import render
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
