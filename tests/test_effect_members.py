"""Models with members that are sums of effects: everything that shows, exports or stores a model knows them."""

import json
import re
from dataclasses import replace
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, ModelFileError, plot
from dsfr.cli import main
from dsfr.core.explain.contributions import contributions
from dsfr.core.explain.effect_words import CROOKED, CURVE_ERROR, MOST_KNOTS
from dsfr.core.features.effects import FARTHEST, Effects
from dsfr.core.features.quantile_curves import quantile_curves
from dsfr.core.prediction.bounds import MAX_CURVE
from dsfr.core.prediction.mixture import Member, Mixture
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.scaling.affine import Ranges
from dsfr.export import to_fml, to_onnx
from dsfr.model.model import Model
from dsfr.report import write_report
from dsfr.storage import bundles
from tests.browser import chromium, open_page
from tests.tables import make_table
from tests.test_explain import predictor_of
from tests.test_modelfile import forge

mpl.use("Agg")

seeds = st.integers(0, 10_000)
few = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def effects_of(seed, n_features=3, n_knots=5, n_curves=2, *, with_products=True):
    """Random effects; some knots are repeated, as those of features with few values."""
    rng = np.random.default_rng(seed)
    knots = np.sort(rng.uniform(-1.2, 1.2, (n_knots, n_features)), axis=0)
    knots[n_knots // 2 + 1 :, seed % n_features] = knots[n_knots // 2, seed % n_features]
    curves = rng.standard_normal((n_knots, n_features, n_curves))
    curves[n_knots // 2 + 1 :, seed % n_features] = curves[n_knots // 2, seed % n_features]
    terms = np.array([(j, term) for j in range(n_features) for term in range(n_curves + 1)])
    singles = terms[rng.random(len(terms)) < 0.8].astype(np.int64)
    products = (products_of(rng, terms, n) if with_products else none(n) for n in (2, 3))
    return Effects(knots, curves, singles, *products, levels_of(rng, knots))


def levels_of(rng, knots):
    """Runs of knots of some features, with gaps; equal knots are in one run."""
    found = []
    for j in np.flatnonzero(rng.random(knots.shape[1]) < 0.5).tolist():
        starts = [*np.flatnonzero(np.diff(knots[:, j], prepend=-np.inf) > 0), len(knots)]
        ends = np.sort(rng.choice(starts, 2 * rng.integers(1, len(starts) // 2 + 1), replace=False))
        found += [(j, first, last - 1) for first, last in ends.reshape(-1, 2).tolist()]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def none(n_factors):
    return np.empty((0, 2 * n_factors), dtype=np.int64)


def products_of(rng, terms, n_factors):
    """Some products of terms of different features, in any order."""
    found = [
        factors for factors in combinations(terms.tolist(), n_factors) if len({j for j, _ in factors}) == n_factors
    ]
    turned = [np.concatenate([factors[i] for i in rng.permutation(n_factors)]) for factors in found]
    kept = [factors for factors in turned if rng.random() < 0.6]
    return np.array(kept, dtype=np.int64).reshape(-1, 2 * n_factors)


def mixture_of(seed, n_rule_bases=2, n_effects=2, n_features=3, *, limited=None):
    """A random average of rule bases and effects over the same columns."""
    rng = np.random.default_rng(seed)
    first = predictor_of(seed, n_features=n_features)
    low, high = first.ranges.low, first.ranges.high
    limits = Ranges(low + 0.1 * (high - low), high) if (seed % 2 if limited is None else limited) else None
    bases = [predictor_of(seed + m, 3 + m, n_features) for m in range(n_rule_bases)]
    predictors = [replace(base, ranges=first.ranges, limits=limits) for base in bases]
    for m in range(n_effects):
        basis = effects_of(seed + m, n_features, 2 + (seed + m) % 5, (seed + m) % 3, with_products=m > 0)
        ranges = Ranges(low - m * (high - low) / 40, high)
        weights = rng.standard_normal(basis.n_outputs)
        predictors.append(Predictor(ranges, basis, weights, first.target_mean, first.target_scale, np.empty(0), limits))
    predictors = [replace(p, target_mean=first.target_mean, target_scale=first.target_scale) for p in predictors]
    shares = rng.dirichlet(np.ones(len(predictors))).tolist()
    return Model(Mixture(tuple(map(Member, predictors, shares))), tuple(f"x{j}" for j in range(n_features)))


def rows_of(seed, model, n_rows=100, far=1.0):
    rng = np.random.default_rng(seed + 1)
    ranges = model.predictor.ranges
    return ranges.low + (ranges.high - ranges.low) * far * rng.uniform(-0.3, 1.3, (n_rows, len(ranges.low)))


def size_of(model, expected):
    return model.predictor.target_scale + np.abs(expected)


kinds = {"n_rule_bases": st.integers(0, 2), "n_effects": st.integers(0, 2), "n_features": st.integers(1, 4)}
anything = st.fixed_dictionaries(kinds).filter(lambda kind: kind["n_rule_bases"] + kind["n_effects"] > 0)


@given(seed=seeds, kind=anything, far=st.sampled_from([1.0, 50.0]))
def test_contributions_add_up_to_the_prediction(seed, kind, far):
    model = mixture_of(seed, **kind)
    for x in rows_of(seed, model, 4, far):
        expected = model.predict(x[None])[0]
        parts = contributions(model.structure, x)
        explained = model.explain_prediction(x)
        total = explained.start + explained.firing + sum(explained.contributions.values())
        size = abs(expected) + abs(parts.start) + np.abs(parts.parts).sum() + np.abs(parts.effects).sum()
        size += np.abs(parts.together).sum()
        assert abs(parts.prediction - expected) <= 1e-9 * size
        assert abs(total + sum(explained.together.values()) - expected) <= 1e-9 * size
        assert parts.strengths.sum() == pytest.approx(
            sum(member.share for member in model.members if member.predictor.basis.n_rules)
        )
        table = explained.to_frame()
        assert abs(explained.start + table.drop(columns="strength").to_numpy().sum() - expected) <= 1e-9 * size
        assert table["strength"].sum() == pytest.approx(1.0)


@given(seed=seeds, kind=anything)
def test_at_the_typical_row_features_and_pairs_add_nothing(seed, kind):
    model = mixture_of(seed, **kind)
    parts = contributions(model.structure, model.structure.typical_row)
    scale = 1e-9 * model.predictor.target_scale
    np.testing.assert_allclose(parts.by_feature, 0.0, atol=scale)
    np.testing.assert_allclose(parts.together, 0.0, atol=scale)


@given(seed=seeds)
def test_a_group_does_what_its_features_do_together_beyond_fewer_of_them(seed):
    """Features at their typical values drop out: what is left of a row with one to three moved ones is theirs."""
    model = mixture_of(seed, 0, 2, 4, limited=False)
    typical, x = model.structure.typical_row, rows_of(seed, model, 1)[0]

    def moved(features):
        return model.predict(np.where(np.isin(np.arange(4), features), x, typical)[None])[0]

    alone, at_typical = [moved([j]) for j in range(4)], moved([])
    together = model.explain_prediction(x).together
    unit = 1e-9 * (model.predictor.target_scale + sum(map(abs, [*alone, *together.values()])))
    for group in combinations(range(4), 2):
        names = tuple(f"x{j}" for j in group)
        beyond = moved(group) - alone[group[0]] - alone[group[1]] + at_typical
        assert together.get(names, 0.0) == pytest.approx(beyond, abs=unit)
    for group in combinations(range(4), 3):
        parts = [together.get(tuple(f"x{j}" for j in pair), 0.0) for pair in combinations(group, 2)]
        beyond = moved(group) - sum(alone[j] for j in group) + 2.0 * at_typical - sum(parts)
        assert together.get(tuple(f"x{j}" for j in group), 0.0) == pytest.approx(beyond, abs=unit)


@given(seed=seeds, n_effects=st.integers(1, 2), n_features=st.integers(1, 4))
def test_curves_and_pairs_are_the_effects_and_have_mean_zero(seed, n_effects, n_features):
    model = mixture_of(seed, 0, n_effects, n_features)
    X = rows_of(seed, model)
    found = model.explain(X).effects
    base = model.structure.effects
    origins = base.mean_terms(X)
    singles, together = base.parts(X, origins)
    expected = model.predict(X)
    unit = 1e-9 * (size_of(model, expected).max() + np.abs(singles).max() + np.abs(together).max(initial=0.0))
    np.testing.assert_allclose(found.start + singles.sum(axis=1) + together.sum(axis=1), expected, atol=unit, rtol=0)
    np.testing.assert_allclose(np.concatenate([singles.mean(axis=0)]), 0.0, atol=unit)
    domain = model.structure.domain
    for effect in found.features:
        j = effect.feature
        inside = (X[:, j] >= domain.low[j]) & (X[:, j] <= domain.high[j])
        along = np.interp(X[inside, j], effect.knots, effect.values)
        np.testing.assert_allclose(along, singles[inside, j], atol=unit, rtol=0)
        assert effect.size == pytest.approx(singles[:, j].std(), abs=unit)
        assert (effect.knots[0], effect.knots[-1]) == (domain.low[j], domain.high[j])
    assert sorted((effect.size for effect in found.features), reverse=True) == [e.size for e in found.features]
    assert [group.largest for group in found.groups] == pytest.approx(
        np.abs(together).max(axis=0)[np.argsort(-together.std(axis=0), kind="stable")].tolist()
    )
    assert sum(e.variation for e in (*found.features, *found.groups)) == pytest.approx(1.0)


@given(seed=seeds)
def test_a_sentence_shows_the_curve_to_a_twentieth_or_with_all_its_knots_or_says_that_it_jumps(seed):
    for effect in mixture_of(seed, 0, 2).explain().effects.features:
        chosen = effect.shown_knots()
        said = np.interp(effect.knots, effect.knots[chosen], effect.values[chosen])
        if len(chosen) < MOST_KNOTS:
            assert np.abs(said - effect.values).max() <= CURVE_ERROR * np.ptp(effect.values) + 1e-12
        jumps = np.abs(said - effect.values).max() > CROOKED * np.ptp(effect.values)
        assert str(effect).count("about ") == (2 if jumps else len(chosen))
        assert ("jumps from value to value" in str(effect)) == jumps


def test_an_explanation_names_effects_then_the_share_of_the_rules_then_rules():
    model = mixture_of(5)
    explained = model.explain()
    text = str(explained)
    share = sum(member.share for member in model.members if member.predictor.basis.n_rules)
    assert text.index("of the variation)") < text.index(f"Rules have {share:.0%} of the prediction") < text.index("IF ")
    assert "together: up to ±" in text
    assert list(explained.to_frame().index) == [rule.number for rule in explained]
    assert {"effect", "about", "adds", "size", "variation"} == set(explained.effects.to_records()[0])
    assert " and " in str(model.explain_prediction(rows_of(3, model)[0]))
    assert model.explain(all_models=True).effects.share == pytest.approx(1.0 - share)


def test_effects_alone_have_no_rule_base_but_everything_else(tmp_path):
    model = mixture_of(4, 0, 2)
    with pytest.raises(ValueError, match="effects of single features and pairs, not rules"):
        _ = model.rule_base
    assert len(model.explain()) == 0
    assert "Rules have" not in str(model.explain())
    assert "rules that fired" not in str(model.explain_prediction(rows_of(4, model)[0]))
    assert model.simplify().model is model
    assert write_report(model, tmp_path / "r.html").stat().st_size > 1000
    with pytest.raises(ValueError, match="not rules"):
        plot.memberships(model, 0)


def test_a_rule_base_without_a_share_does_not_count():
    model = mixture_of(4, 1, 1)
    members = tuple(replace(m, share=0.0 if m.predictor.basis.n_rules else 1.0) for m in model.members)
    assert len(replace(model, mixture=Mixture(members)).explain()) == 0


@few
@given(seed=seeds, kind=anything, far=st.sampled_from([1.0, 1e6]))
def test_onnx_is_the_model(seed, kind, far):
    onnxruntime = pytest.importorskip("onnxruntime")
    model = mixture_of(seed, **kind)
    X = rows_of(seed, model, far=far)
    session = onnxruntime.InferenceSession(to_onnx(model, double=True), providers=["CPUExecutionProvider"])
    expected = model.predict(X)
    assert (np.abs(session.run(["prediction"], {"X": X})[0] - expected) <= 1e-9 * size_of(model, expected)).all()


def test_fml_refuses_effects():
    with pytest.raises(ValueError, match=r"FML describes rules of clusters: export to \.onnx"):
        to_fml(mixture_of(0, 0, 1))


@few
@given(seed=seeds)
def test_simplifying_leaves_effects_as_they_are(seed):
    model = mixture_of(seed)
    result = model.simplify(rows_of(seed, model), similarity=0.3)
    assert result.sets[1] < result.sets[0]
    for before, after in zip(model.members, result.model.members, strict=True):
        if not before.predictor.basis.n_rules:
            assert after.predictor is before.predictor


def test_plots_show_a_model_with_effects():
    model = mixture_of(6)
    X = rows_of(6, model)
    plot.memberships(model, 0, X)
    plot.rule_map(model, X)
    x, y = plot.response(model, "x1").lines[-1].get_xydata().T
    rows = np.tile(model.structure.typical_row, (len(x), 1))
    rows[:, 1] = x
    np.testing.assert_allclose(y, model.predict(rows))
    plot.response(mixture_of(6, 0, 1), 0)


@few
@given(seed=seeds, kind=anything)
def test_a_loaded_model_predicts_the_same_bits(tmp_path, seed, kind):
    model = mixture_of(seed, **kind)
    loaded = dsfr.load(model.save(tmp_path / "m.dsfr"))
    np.testing.assert_array_equal(loaded.predict(rows_of(seed, model)), model.predict(rows_of(seed, model)))


def _with(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


FORGERIES = {
    "a feature that does not exist": lambda e: {"singles": _with(e.singles, (0, 0), 3)},
    "a negative feature": lambda e: {"singles": _with(e.singles, (0, 0), -1)},
    "a curve that does not exist": lambda e: {"pairs": _with(e.pairs, (0, 1), 9)},
    "a feature of a pair that does not exist": lambda e: {"pairs": _with(e.pairs, (0, 2), 2**40)},
    "a pair of one feature": lambda e: {"pairs": _with(e.pairs, (0, 2), e.pairs[0, 0])},
    "floats as features": lambda e: {"singles": e.singles.astype(float)},
    "small integers": lambda e: {"pairs": e.pairs.astype(np.int32)},
    "flat effects": lambda e: {"singles": e.singles.ravel()},
    "effects of three numbers": lambda e: {"pairs": e.pairs[:, :3]},
    "a triple of two features": lambda e: {"triples": _with(e.triples, (0, 4), e.triples[0, 0])},
    "a feature of a triple that does not exist": lambda e: {"triples": _with(e.triples, (0, 4), 3)},
    "a curve of a triple that does not exist": lambda e: {"triples": _with(e.triples, (0, 5), 9)},
    "triples of two factors": lambda e: {"triples": e.triples[:, :4]},
    "triples that are pairs": lambda e: {"pairs": e.triples},
    "fewer triples than weights": lambda e: {"triples": e.triples[1:]},
    "fewer effects than weights": lambda e: {"singles": e.singles[1:]},
    "curves of other knots": lambda e: {"curves": e.curves[1:]},
    "curves of other features": lambda e: {"curves": e.curves[:, 1:], "knots": e.knots[:, 1:]},
    "flat curves": lambda e: {"curves": e.curves[:, :, 0]},
    "no knots": lambda e: {"curves": e.curves[:0], "knots": e.knots[:0]},
    "knots in descending order": lambda e: {"knots": e.knots[::-1].copy()},
    "descending knots of flat curves": lambda e: {"knots": e.knots[::-1].copy(), "curves": np.zeros_like(e.curves)},
    "two values at a knot": lambda e: {"knots": np.zeros_like(e.knots)},
    "knots that are no numbers": lambda e: {"knots": _with(e.knots, (0, 0), np.nan)},
    "infinite curves": lambda e: {"curves": _with(e.curves, (0, 0, 0), np.inf)},
    "huge curves": lambda e: {"curves": _with(e.curves, (0, 0, 0), 2 * MAX_CURVE)},
    "knots far away": lambda e: {"knots": _with(e.knots, (-1, slice(None)), 1e101)},
    "knots too near": lambda e: {"knots": _with(_with(e.knots, 0, 0.0), 1, 1e-290)},
    "rules as well": lambda e: {"centers": e.knots},
}


@pytest.fixture(scope="module")
def effects_model():
    basis = effects_of(0, n_knots=2)
    basis = replace(basis, knots=np.sort(basis.knots, axis=0), pairs=effects_of(1).pairs, triples=effects_of(1).triples)
    weights = np.ones(basis.n_outputs)
    ranges = Ranges(-np.ones(3), np.ones(3))
    return Model(Mixture.of(Predictor(ranges, basis, weights, 0.0, 1.0, np.empty(0))), ("a", "b", "c"))


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_effects_are_refused(tmp_path, monkeypatch, effects_model, name):
    dsfr.load(effects_model.save(tmp_path / "m.dsfr"))
    arrays = FORGERIES[name](effects_model.predictor.basis)
    named = {f"member0_{key}": array for key, array in arrays.items()}
    with monkeypatch.context() as patched:
        patched.setattr(bundles, "check_bundle", lambda bundle: None)  # a forger does not check what is written
        path = forge(tmp_path, effects_model, **named)
    with pytest.raises(ModelFileError):
        dsfr.load(path)


def test_effects_at_their_bounds_can_be_computed_with(tmp_path, effects_model):
    predictor = effects_model.predictor
    basis = predictor.basis
    rise = np.where(np.arange(len(basis.knots)) > 0, MAX_CURVE, -MAX_CURVE)[:, None, None]
    forged = {
        "member0_curves": np.broadcast_to(rise, basis.curves.shape).copy(),
        "member0_knots": np.where(np.arange(len(basis.knots)) > 0, 1e-269, 0.0)[:, None] * np.ones(3),
        "member0_weights": np.full_like(predictor.weights, 1e40),
        "member0_target": np.array([0.0, 1e101]),
    }
    model = dsfr.load(forge(tmp_path, effects_model, **forged))
    X = np.array([[0.0, 1e-269, 5e-270], [1e300, -1e300, 0.0]])
    assert np.isfinite(model.predict(X)).all()
    assert "inf" not in str(model.explain(X))
    assert "nan" not in str(model.explain(X)) + str(model.explain_prediction(X[1]))
    write_report(model, tmp_path / "r.html")


@pytest.mark.parametrize("near", [0.0, 1e-310])
def test_knots_that_scaling_makes_nearly_equal_have_one_value(near):
    knots, ranks = np.array([[-1.0], [0.0], [near], [1.0]]), np.array([[0.1], [0.4], [0.6], [0.9]])
    curves = quantile_curves(knots, ranks, 2)
    np.testing.assert_array_equal(curves[1], curves[2])
    np.testing.assert_array_equal(curves[[0, 1, 3]], quantile_curves(knots[[0, 1, 3]], ranks[[0, 1, 3]], 2))


@pytest.fixture(scope="module")
def browser():
    with chromium() as opened:
        yield opened


@pytest.mark.parametrize(("n_rule_bases", "n_effects"), [(2, 2), (0, 1)])
def test_the_page_computes_what_the_model_computes(browser, tmp_path, n_rule_bases, n_effects):
    model = mixture_of(3, n_rule_bases, n_effects)
    X = np.vstack([rows_of(3, model), 1e5 * FARTHEST * rows_of(3, model, 5)])
    browser.get_log("browser")
    open_page(browser, write_report(model, tmp_path / "r.html", X[:100], model.predict(X[:100])).as_uri())
    found = browser.execute_script("return arguments[0].map(row => predict(model, row))", X.tolist())
    expected = model.predict(X)
    assert (np.abs(found - expected) <= 1e-9 * size_of(model, expected)).all()
    parts = browser.execute_script("return arguments[0].map(row => contributions(model, row))", X.tolist())
    for row, part in zip(X, parts, strict=True):
        explained = model.explain_prediction(row)
        unit = 1e-9 * (model.predictor.target_scale + np.abs(explained.parts.parts).sum())
        assert part["start"] == pytest.approx(explained.start, rel=1e-12)
        assert part["firing"] == pytest.approx(explained.firing, abs=unit)
        np.testing.assert_allclose(part["features"], explained.parts.by_feature, atol=unit, rtol=1e-9)
        np.testing.assert_allclose(part["together"], explained.parts.together, atol=unit, rtol=1e-9)
    shown = "return [...document.querySelectorAll(arguments[0])].map(e => e.innerText)"
    titles = browser.execute_script(shown, "#effect-charts h3")
    assert [title.split(" (")[0] for title in titles] == [
        e.feature_name for e in model.explain(X[:100]).effects.features
    ]
    assert len(browser.find_elements("css selector", "#effect-charts svg")) == 3
    assert browser.execute_script("return byId('rules').hidden") == (n_rule_bases == 0)
    assert "Effects" in browser.execute_script(shown, "nav a")
    assert browser.get_log("browser") == []


def test_the_command_explains_effects(tmp_path):
    X, _, _ = make_table(0)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    y = scaled[:, 0] + np.abs(scaled[:, 1])  # a sum of effects: these must have a share
    model = AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects="pairs"), random_state=0).fit(X, y).model_
    assert model.structure.effects is not None
    path = model.save(tmp_path / "m.dsfr")

    def run(*arguments):
        result = CliRunner().invoke(main, ["explain", str(path), *map(str, arguments)])
        assert result.exit_code == 0, result.output
        return result.output

    assert str(model.explain()) in run()
    assert re.search(r"average of .*\d sums? of effects", run())
    records = json.loads(run("--format", "json"))
    assert [record["rule"] for record in records if "rule" in record] == [rule.number for rule in model.explain()]
    assert sum("adds" in record for record in records) == sum(len(e.knots) for e in model.explain().effects.features)
    assert run("--format", "csv").splitlines()[0].startswith("effect,size,variation,about,adds")
