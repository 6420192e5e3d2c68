"""Rules in words and predictions taken apart: parts add up, words fit, simpler models cost what they say."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, SFRRegressor
from dsfr.cli import main
from dsfr.core.explain.contributions import contributions
from dsfr.core.explain.rule_base import RuleBase
from dsfr.core.explain.rules import SET_THRESHOLD, TERM_THRESHOLD, discrimination
from dsfr.core.explain.simplification import n_sets, set_similarity, simplify_predictor
from dsfr.core.explain.structure import Structure
from dsfr.core.explain.words import LABELS, label
from dsfr.core.features.takagi_sugeno import Rules, firing_strengths
from dsfr.core.prediction.mixture import Member, Mixture
from dsfr.core.prediction.predictor import Predictor
from dsfr.core.prediction.scores import Scores
from dsfr.core.scaling.affine import Ranges, scale_features
from dsfr.model.model import Model
from tests.tables import make_table

seeds = st.integers(0, 10_000)


def predictor_of(seed, n_rules=4, n_features=3, width=0.5):
    """A predictor with random rules, in raw units that differ from column to column."""
    rng = np.random.default_rng(seed)
    low = 10.0 ** np.arange(n_features) * rng.uniform(-2, 2, n_features)
    return Predictor(
        ranges=Ranges(low, low + 10.0 ** np.arange(n_features)),
        basis=Rules(rng.uniform(-1, 1, (n_rules, n_features)), rng.uniform(0.05, width, (n_rules, n_features))),
        weights=rng.standard_normal(n_rules * (n_features + 1)),
        target_mean=100 * rng.standard_normal(),
        target_scale=10.0 ** rng.uniform(-2, 3),
        shares=rng.dirichlet(np.ones(n_rules)),
    )


def average_of(seed, n_members=3, n_rules=4):
    """An average of several random rule bases over the same columns."""
    first = predictor_of(seed, n_rules)
    others = [replace(predictor_of(seed + m, n_rules + m), ranges=first.ranges) for m in range(1, n_members)]
    rng = np.random.default_rng(seed)
    low, high = first.ranges.low, first.ranges.high
    limits = Ranges(low + 0.1 * (high - low), high) if seed % 2 else None
    members = [replace(predictor, limits=limits) for predictor in (first, *others)]
    scores = Scores(np.sort(rng.exponential(size=30)), np.arange(1.0, 31.0))
    mixture = Mixture(tuple(map(Member, members, rng.dirichlet(np.ones(n_members)).tolist())), scores)
    return Model(mixture, ("x0", "x1", "x2"))


def rows_of(seed, predictor, n_rows=200):
    rng = np.random.default_rng(seed + 1)
    low, high = predictor.ranges.low, predictor.ranges.high
    return low + (high - low) * rng.uniform(-0.2, 1.2, (n_rows, len(low)))


def model_of(predictor):
    return Model(Mixture.of(predictor), tuple(f"x{j}" for j in range(predictor.n_features)))


@given(seed=seeds, n_members=st.integers(1, 3), n_rules=st.integers(1, 6), far=st.sampled_from([1.0, 30.0]))
def test_contributions_add_up_to_the_prediction(seed, n_members, n_rules, far):
    model = average_of(seed, n_members, n_rules)
    structure = Structure.of(model.members)
    for x in far * rows_of(seed, model.predictor, 5):
        parts = contributions(structure, x)
        expected = model.predict(x[None])[0]
        size = abs(parts.start) + np.abs(parts.parts).sum() + abs(expected)
        assert abs(parts.prediction - expected) <= 1e-12 * size
        assert abs(parts.start + parts.by_rule.sum() - expected) <= 1e-12 * size
        assert abs(parts.start + parts.firing + parts.by_feature.sum() - expected) <= 1e-12 * size
        assert parts.strengths.sum() == pytest.approx(1.0)


def test_at_the_typical_row_features_add_nothing():
    structure = Structure.of([Member(predictor_of(3), 1.0)])
    parts = contributions(structure, structure.typical_row)
    np.testing.assert_allclose(parts.by_feature, 0.0, atol=1e-9)


@given(seed=seeds)
def test_labels_follow_the_order_of_the_centers(seed):
    predictor = predictor_of(seed, n_rules=6)
    rules = model_of(predictor).explain(rows_of(seed, predictor))
    for j in range(3):
        in_order = sorted(rules, key=lambda rule: rule.centers[j])
        ranks = [LABELS.index(rule.labels[j]) for rule in in_order]
        assert ranks == sorted(ranks)


def test_labels_say_where_a_set_lies_among_the_rows():
    X = np.arange(1000.0)[:, None]
    edges = {50: "very low", 200: "low", 500: "medium", 800: "high", 950: "very high"}
    ranges = Ranges(np.array([0.0]), np.array([999.0]))
    centers = (np.array([*edges])[:, None] - 499.5) / 499.5
    predictor = Predictor(ranges, Rules(centers, np.full((5, 1), 0.1)), np.ones(10), 0.0, 1.0, np.full(5, 0.2))
    rules = model_of(predictor).explain(X)
    assert [rule.labels[0] for rule in rules] == list(edges.values())
    assert [int(rule.typical_rows[0, 0]) for rule in rules] == list(edges)
    assert [int(rule.typical_names[0]) for rule in rules] == [value + 1 for value in edges]
    assert label(0.1) == "low"


def test_the_two_values_of_a_column_have_two_names():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.where(np.arange(300) < 160, 1.0, 2.0), rng.random(300)])
    rules = SFRRegressor(n_rules=2, random_state=0).fit(X, X[:, 0] + X[:, 1]).model_.explain(X)
    assert sorted(rule.labels[0] for rule in rules) == ["1", "2"]


@given(seed=seeds)
def test_a_feature_with_the_same_set_in_every_rule_is_left_out_of_all(seed):
    predictor = predictor_of(seed)
    predictor.basis.centers[:, 1], predictor.basis.widths[:, 1] = 0.2, 0.4
    rules = model_of(predictor).explain(rows_of(seed, predictor))
    assert not any(rule.matters[1] for rule in rules)
    assert "x1 is" not in "".join(line for rule in rules for line in rule.conditions())


def test_a_feature_that_tells_rules_apart_is_named():
    predictor = predictor_of(0, n_rules=2)
    predictor.basis.centers[:] = [[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]
    predictor.basis.widths[:] = 0.4
    rules = model_of(predictor).explain(rows_of(0, predictor))
    assert [rule.matters for rule in rules] == [(True, False, False)] * 2
    assert rules[0].labels[0] in ("very low", "low")
    assert rules[1].labels[0] in ("high", "very high")


@given(seed=seeds)
def test_what_is_left_out_of_a_line_moves_it_by_less_than_the_threshold(seed):
    predictor = predictor_of(seed)
    predictor.weights[1::4] *= 1e-4
    for rule in model_of(predictor).explain():
        told = np.asarray(rule.terms)
        said = rule.constant + np.where(told, rule.coefficients, 0.0) @ (rule.centers + rule.widths)
        full = rule.intercept + rule.coefficients @ (rule.centers + rule.widths)
        assert abs(said - full) <= 3 * TERM_THRESHOLD * predictor.target_scale + 1e-9 * abs(full)
        assert not rule.terms[0]


@given(seed=seeds, width_scale=st.sampled_from([1.0, 2.0]))
def test_synthetic_rows_have_the_model_s_mean_and_spread_and_lie_within_its_ranges(seed, width_scale):
    predictor = predictor_of(seed, width=0.2)
    predictor.basis.centers[:] *= 0.3
    base = RuleBase.of([Member(predictor, 1.0)], [width_scale])
    rows = base.synthetic_rows()
    assert (rows >= predictor.ranges.low).all()
    assert (rows <= predictor.ranges.high).all()
    spread = predictor.ranges.high - predictor.ranges.low
    assert np.abs(rows.mean(axis=0) - base.typical_row).max() <= 0.02 * spread.max()
    np.testing.assert_array_equal(rows, base.synthetic_rows())
    within = base.shares @ (base.widths / width_scale) ** 2 + base.shares @ (base.centers - base.typical_row) ** 2
    np.testing.assert_allclose(rows.std(axis=0), np.sqrt(within), rtol=0.1)


@given(seed=seeds)
def test_of_several_models_the_strongest_is_explained_unless_all_are_asked_for(seed):
    model = average_of(seed)
    alone = model_of(model.predictor)
    shown = model.explain()
    assert [rule.number for rule in shown] == list(range(1, len(shown) + 1))
    for rule, own in zip(shown, alone.explain(), strict=True):
        np.testing.assert_array_equal(rule.centers, own.centers)
        assert (rule.consequent(), rule.share) == (own.consequent(), pytest.approx(own.share))
    every = model.explain(all_models=True)
    assert [rule.member for rule in every] == sorted(rule.member for rule in every)
    assert len(every) == sum(len(member.predictor.shares) for member in model.members)
    assert sum(rule.share for rule in every) == pytest.approx(3.0)


@given(seed=seeds)
@settings(max_examples=15)
def test_an_average_is_simplified_member_by_member(seed):
    model = average_of(seed)
    X = rows_of(seed, model.predictor)
    result = model.simplify(X, similarity=0.3)
    assert result.sets[1] < result.sets[0]
    moved = result.model.predict(X) - model.predict(X)
    assert result.change == pytest.approx(np.sqrt(np.mean(moved**2)) / model.predictor.target_scale)
    assert [member.share for member in result.model.members] == [member.share for member in model.members]
    assert result.model.half_widths([0.9]) == {}  # it has other errors than the ones that were counted
    assert model.simplify(X, similarity=1.0, min_strength=0.0).model is model


def test_an_interval_is_told_where_the_model_knows_it():
    model = average_of(0)
    explained = model.explain_prediction(rows_of(0, model.predictor)[0])
    assert explained.half_width == model.half_width(0.9)
    assert "90% interval (jackknife): " in str(explained)
    assert model.half_widths([0.5, 0.999]) == {0.5: model.half_width(0.5)}


@given(seed=seeds, n_features=st.integers(1, 12), n_rules=st.integers(1, 8))
def test_without_all_features_that_a_rule_leaves_out_it_fires_nearly_alike(seed, n_features, n_rules):
    predictor = predictor_of(seed, n_rules, n_features, width=3.0)
    X = rows_of(seed, predictor)
    fired, Z = RuleBase.of(Mixture.of(predictor).members).strengths(X), scale_features(X, predictor.ranges)
    for k, rule in enumerate(model_of(predictor).explain(X)):
        seen = np.where(rule.matters, predictor.basis.widths, 1e9)  # a set as wide as this tells no row from another
        alike = firing_strengths(Z, Rules(predictor.basis.centers, seen))[:, k]
        assert np.abs(alike - fired[:, k]).mean() <= SET_THRESHOLD * fired[:, k].mean() + 1e-12
        assert ("ALWAYS" in str(rule)) == (not any(rule.matters))


def test_a_rule_that_many_features_hold_together_is_not_said_to_fire_always():
    rng = np.random.default_rng(0)
    centers = rng.choice([-1.0, 1.0], size=(4, 30))
    X = np.repeat(centers, 50, axis=0) + 0.1 * rng.normal(size=(200, 30))
    y = X[:, 0]
    rules = SFRRegressor(n_rules=4, random_state=0).fit(X, y).model_.explain(X)
    assert max(rule.importance.max() for rule in rules) < SET_THRESHOLD  # of any one, the others take the place
    assert all(any(rule.matters) for rule in rules)


def test_discrimination_of_a_single_rule_is_zero():
    base = RuleBase.of([Member(predictor_of(0, n_rules=1), 1.0)])
    X = rows_of(0, base.members[0].predictor)
    assert discrimination(base, X, base.strengths(X)).max() < SET_THRESHOLD
    assert "ALWAYS" in str(model_of(base.members[0].predictor).explain(X)[0])


def test_names_cannot_break_a_line():
    X, _, y = make_table(0)
    model = SFRRegressor(n_rules=2, random_state=0).fit(X, y).model_.renamed(["a\nb", "\x1b[31m", "<b>"], "t\r")
    text = str(model.explain(X)) + str(model.explain_prediction(X[0]))
    assert "\x1b" not in text
    assert "\r" not in text
    assert "a\\nb" in text
    assert "<b>" in text


def test_frames_hold_the_rules_and_the_parts():
    X, _, y = make_table(0)
    model = SFRRegressor(n_rules=3, random_state=0).fit(X, y).model_
    frame = model.explain(X).to_frame()
    assert list(frame.index) == [1, 2, 3]
    assert frame["share"].sum() == pytest.approx(1.0)
    assert {"x0 is", "x0 center", "x0 width", "x0 slope", "mean_output", "text"} <= set(frame.columns)
    parts = model.explain_prediction(pd.DataFrame(X[:1], columns=["x0", "x1", "x2"]))
    table = parts.to_frame()
    total = parts.start + table.drop(columns="strength").to_numpy().sum()
    assert total == pytest.approx(model.predict(X[:1])[0], rel=1e-12)
    with pytest.raises(ValueError, match="one row"):
        model.explain_prediction(X[:2])


@given(seed=seeds, copies=st.integers(2, 3))
@settings(max_examples=25)
def test_a_rule_base_in_copies_becomes_one_and_predicts_the_same(seed, copies):
    predictor = predictor_of(seed)
    rules, weights = predictor.basis, predictor.weights.reshape(4, -1)
    doubled = Predictor(
        predictor.ranges,
        Rules(np.tile(rules.centers, (copies, 1)), np.tile(rules.widths, (copies, 1))),
        np.tile(weights, (copies, 1)).ravel(),
        predictor.target_mean,
        predictor.target_scale,
        np.tile(predictor.shares, copies) / copies,
    )
    X = rows_of(seed, predictor)
    joined = simplify_predictor(doubled, X, similarity=1.0, min_strength=0.0)
    assert len(joined.basis.centers) == 4
    np.testing.assert_allclose(joined.predict(X), predictor.predict(X), rtol=1e-9, atol=1e-9 * predictor.target_scale)
    np.testing.assert_allclose(joined.shares, predictor.shares)


@given(seed=seeds)
@settings(max_examples=25)
def test_nothing_alike_and_nothing_silent_changes_not_a_bit(seed):
    predictor = predictor_of(seed)
    assert simplify_predictor(predictor, rows_of(seed, predictor), similarity=1.0, min_strength=0.0) is predictor


@given(seed=seeds, similarity=st.floats(0.3, 0.95))
@settings(max_examples=25)
def test_after_sharing_no_sets_are_as_alike_as_asked(seed, similarity):
    predictor = predictor_of(seed, n_rules=8)
    X = rows_of(seed, predictor)
    simple = simplify_predictor(predictor, X, similarity=similarity, min_strength=0.0)
    assert n_sets(simple.basis) <= n_sets(predictor.basis)
    for j in range(3):
        sets = np.unique(np.stack([simple.basis.centers[:, j], simple.basis.widths[:, j]], axis=1), axis=0)
        alike = set_similarity(sets[:, 0], sets[:, 1]) - 2 * np.eye(len(sets))
        assert alike.max() < similarity


def test_rules_that_never_fire_are_dropped_and_the_cost_is_told():
    predictor = predictor_of(1, n_rules=3)
    predictor.basis.centers[2] = 50.0
    X = predictor.ranges.low + np.random.default_rng(0).random((300, 3)) * (
        predictor.ranges.high - predictor.ranges.low
    )
    result = model_of(predictor).simplify(X, predictor.predict(X))
    assert result.rules[1] <= 2
    assert result.measured_on == "the 300 rows given"
    moved = result.model.predict(X) - predictor.predict(X)
    assert result.change == pytest.approx(np.sqrt(np.mean(moved**2)) / predictor.target_scale)
    assert result.nrmse[1] == pytest.approx(dsfr.nrmse(predictor.predict(X), result.model.predict(X)))
    assert result.model.predictor.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("given", "message"), [({"similarity": 0.0}, "similarity=0"), ({"min_strength": 1}, "min_str")]
)
def test_thresholds_out_of_range_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        model_of(predictor_of(0)).simplify(**given)


def test_targets_must_fit_the_rows():
    with pytest.raises(ValueError, match="one target for each"):
        model_of(predictor_of(0)).simplify(np.ones((3, 3)), np.ones(2))


@pytest.fixture
def files(tmp_path):
    X, y, hidden = make_table(0)
    table = pd.DataFrame(X, columns=["speed", "angle", "depth"]).assign(noise=y)
    table.to_csv(tmp_path / "t.csv", index=False)
    model = SFRRegressor(random_state=0).fit(table[["speed", "angle", "depth"]], pd.Series(hidden, name="noise")).model_
    return model, model.save(tmp_path / "m.dsfr"), tmp_path / "t.csv", table


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_a_row_is_explained_on_the_command_line(files):
    model, path, data, table = files
    result = run("explain", path, "--row", f"{data}:17")
    assert result.exit_code == 0, result.output
    assert str(model.explain_prediction(table.iloc[16, :3].to_list())) in result.output
    parts = json.loads(run("explain", path, "--row", f"{data}:17", "--format", "json").output)
    prediction = model.predict(table.iloc[16:17, :3])[0]
    assert parts[-1] == {"part": "prediction", "value": pytest.approx(prediction)}
    assert sum(part["value"] for part in parts[:-1]) == pytest.approx(prediction, rel=1e-12)


def test_rules_with_data_name_typical_rows(files):
    model, path, data, table = files
    assert str(model.explain(table.set_index(table.index + 1))) in run("explain", path, data).output  # numbers from 1
    assert "like row" in run("explain", path, data).output
    frame = pd.read_csv(pd.io.common.StringIO(run("explain", path, data, "--format", "csv").output))
    np.testing.assert_allclose(frame["speed center"], [rule.centers[0] for rule in model.explain()])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("t.csv", "must be a table and the number of a row"),
        ("t.csv:0", "has rows 1 to 120"),
        ("t.csv:121", "has rows 1 to"),
        ("t.csv:x", "such as"),
        ("nowhere.csv:1", "there is no file"),
    ],
)
def test_bad_rows_are_refused(files, row, message):
    _, path, data, _ = files
    result = run("explain", path, "--row", data.parent / row)
    assert result.exit_code == 2
    assert message in result.output
    assert "leave out DATA" in run("explain", path, data, "--row", "a:1").output


def test_a_simpler_model_is_written_and_its_cost_printed(files, tmp_path):
    _, path, data, table = files
    out = tmp_path / "simple.dsfr"
    result = run("simplify", path, data, "--similarity", "0.3", "-o", out)
    assert result.exit_code == 0, result.output
    assert "NRMSE" in result.output
    assert "the 120 rows given" in result.output
    simple = dsfr.load(out)
    assert n_sets(simple.predictor.basis) < 15
    assert "drawn from the model itself" in run("simplify", path, "-o", out).output
    assert "is an input file" in run("simplify", path, "-o", path).output
    assert len(simple.predict(table)) == 120


@pytest.mark.parametrize("n_models", [1, 2])
def test_a_simplified_model_has_no_uncertainty_and_one_that_stays_the_same_keeps_it(n_models):
    X, _, y = make_table(0)
    ensemble = Ensemble(n_models=n_models, relevance=None)
    told = {"ensemble": ensemble, "scaling": "range", "unlabeled": "icr", "rules": "gaussian"}
    model = AutoSFRRegressor(random_state=0, n_rules=6, **told).fit(X, y).model_
    simple = model.simplify(X, similarity=0.05).model
    assert simple is not model
    with pytest.raises(ValueError, match="simplifying a model discards its uncertainty"):
        simple.deviations(X)
    with pytest.raises(ValueError, match="the model has no uncertainty"):
        simple.half_width(0.5)
    same = model.simplify(X, similarity=1.0, min_strength=0.0).model
    np.testing.assert_array_equal(same.deviations(X), model.deviations(X))
