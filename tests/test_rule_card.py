"""The printed rules are the model: a reader that knows the text alone predicts the same."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import RuleRegressor, SFRRegressor, load
from dsfr.core.distillation.rounded_rules import as_predictor
from dsfr.core.distillation.tree import Leaf, bounds_of, keeps_terms, ramps_by_feature, rules_of
from dsfr.core.explain.card import Card, term_names
from dsfr.core.explain.words import quoted
from dsfr.core.scaling.affine import Ranges
from tests import card_reader

seeds = st.integers(0, 10_000)
odd_names = ["age", "mean radius", "x.1", "a is b", "1st", 'quo"te', "or", "a\nb", "a + 2*b"]
names = st.lists(
    st.one_of(st.sampled_from(odd_names), st.text(min_size=1, max_size=8)), min_size=3, max_size=3, unique=True
)


def random_tree(rng, n_rules, n_features):
    """Conditions of a random tree over shared terms."""
    leaves = [Leaf({})]
    for _ in range(200):
        if len(leaves) == n_rules:
            break
        place, feature = int(rng.integers(len(leaves))), int(rng.integers(n_features))
        start, end = np.sort(rng.uniform(-5, 5, 2)).round(int(rng.integers(1, 4))).tolist()
        used = ramps_by_feature([leaf.bounds for leaf in leaves]).get(feature, [])
        ramp = used[int(rng.integers(len(used)))] if used and rng.random() < 0.5 else (start, end)
        is_short = len({*leaves[place].bounds, feature}) <= 3
        if ramp[0] < ramp[1] and keeps_terms(ramp, used) and leaves[place].admits(feature, ramp) and is_short:
            leaves[place : place + 1] = map(Leaf, leaves[place].parts(feature, ramp))
    return [leaf.bounds for leaf in leaves]


def random_card(seed, n_rules, feature_names, target="y", *, with_limits=True):
    rng = np.random.default_rng(seed)
    rules = rules_of(random_tree(rng, n_rules, len(feature_names)), len(feature_names))
    k, d = rules.n_rules, rules.n_features
    weights = rng.normal(size=(k, d + 1)) * 10.0 ** rng.integers(-8, 8, (k, d + 1)) * (rng.random((k, d + 1)) < 0.7)
    shared = np.flatnonzero(rng.random(d) < 0.3) + 1
    weights[:, shared] = weights[0, shared]
    limits = Ranges(np.full(d, -6.25), np.full(d, 5.75)) if with_limits else None
    predictor = as_predictor(rules, weights.ravel(), np.full(k, 1.0 / k), limits)
    terms = tuple(map(tuple, term_names(rules, {}, ())))
    return Card(predictor, tuple(feature_names), target, terms, (0.0,) * k)


@settings(max_examples=300)
@given(seeds, st.integers(1, 9), names, st.booleans())
def test_the_text_of_any_rules_predicts_what_they_predict(seed, n_rules, feature_names, with_limits):
    card = random_card(seed, n_rules, feature_names, with_limits=with_limits)
    X = np.random.default_rng(seed).uniform(-9, 9, (60, 3))
    read = card_reader.predict(str(card), dict(zip(feature_names, X.T, strict=True))) + np.zeros(len(X))
    scale = np.abs(card.lines).max(initial=1.0)
    np.testing.assert_allclose(read, card.predictor.predict(X), rtol=1e-9, atol=1e-9 * scale)


@given(seeds, st.integers(2, 9))
def test_a_part_that_all_rules_share_is_printed_once(seed, n_rules):
    card = random_card(seed, n_rules, ["a", "b", "c"])
    weights = card.lines.copy()
    weights[:, [1, 3]] = [2.5, -0.125]
    weights[:, 2] = np.arange(len(card)) + 1.0
    card = replace(card, predictor=replace(card.predictor, weights=weights.ravel()))
    if len(card) == 1:
        return
    assert str(card).count("*a") == str(card).count("*c") == 1
    assert "Shared part, the same in every rule\n  + 2.5*a - 0.125*c" in str(card)
    assert str(card).count("+ shared part") == len(card)
    assert card.complexity()["terms"] == 2 + len(card)
    assert card.complexity()["shared_terms"] == 2
    assert card.complexity()["terms_per_rule"] == 3
    assert all("+ 2.5*a" in record["line"] for record in card.to_records())
    assert "+ 2.5*a - 0.125*c" in card._repr_html_()


@given(seeds, st.integers(1, 9))
def test_distinguishability_is_that_of_the_most_similar_terms(seed, n_rules):
    card = random_card(seed, n_rules, ["a", "b"])
    assert 0.0 <= card.distinguishability() <= 1.0
    assert card.distinguishability() == card.complexity()["distinguishability"]
    rules = rules_of([{0: (None, (4.0, 6.0))}, {0: ((4.0, 6.0), None)}], 1)
    predictor = as_predictor(rules, np.zeros(4), np.full(2, 0.5), Ranges(np.zeros(1), np.full(1, 10.0)))
    two = Card(predictor, ("a",), "y", (("low", "high"),), (0.0, 0.0))
    # Two sets of area 5 that share a triangle of area 0.5.
    assert two.distinguishability() == pytest.approx(1 - 0.5 / 9.5, abs=1e-3)


@given(seeds, st.integers(1, 12))
def test_strengths_of_any_tree_sum_to_one_everywhere(seed, n_rules):
    rng = np.random.default_rng(seed)
    bounds = random_tree(rng, n_rules, 3)
    rules = rules_of(bounds, 3)
    strengths = rules.strengths(np.append(rng.uniform(-9, 9, (60, 3)), [[1e100] * 3, [-1e100] * 3], axis=0))
    np.testing.assert_allclose(strengths.sum(axis=1), 1.0, atol=1e-12)
    assert (strengths >= 0.0).all()
    assert [dict(entry) for entry in bounds_of(rules)] == [dict(entry) for entry in bounds]


hyperparameters = st.fixed_dictionaries(
    {
        "max_rules": st.integers(1, 6),
        "max_conditions": st.integers(0, 3),
        "max_terms": st.one_of(st.none(), st.integers(0, 3)),
        "tolerance": st.sampled_from([0.0, 0.01, 0.1]),
        "n_agents": st.integers(1, 3),
    }
)


def table(seed, n=120, n_labels=30):
    """A bent function of two features, a two-valued one and one without effect."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.uniform(-2, 8, n), rng.normal(50, 12, n), rng.integers(1, 3, n), rng.normal(size=n)])
    y = 2.0 * X[:, 0] + np.maximum(X[:, 1] - 50.0, 0.0) * X[:, 2] + rng.normal(0, 0.5, n)
    known = np.full(n, np.nan)
    known[:n_labels] = y[:n_labels]
    return X, y, known


def teacher(**arguments):
    return SFRRegressor(**{"n_rules": 3, "tune": "evidence", "scaling": "robust", "uncertainty": True, **arguments})


@settings(max_examples=25)
@given(seeds, hyperparameters, st.booleans())
def test_the_text_of_a_trained_model_predicts_what_it_predicts(seed, hyper, uncertainty):
    X, _, known = table(seed)
    model = RuleRegressor(teacher=teacher(uncertainty=uncertainty), random_state=seed, **hyper).fit(X, known)
    rows = np.append(X, X[:9] * 3.0, axis=0)
    read = card_reader.predict(str(model.rules_), {f"x{j}": rows[:, j] for j in range(4)})
    np.testing.assert_allclose(read + np.zeros(len(rows)), model.predict(rows), rtol=1e-10, atol=1e-9)
    read = model.complexity_
    assert read["rules"] <= hyper["max_rules"]
    assert max(len(model.rules_.rules.conditions(k)) for k in range(read["rules"])) <= hyper["max_conditions"]
    if hyper["max_terms"] is not None:
        assert np.count_nonzero(model.rules_.lines[:, 1:], axis=1).max() <= hyper["max_terms"]


@settings(max_examples=15)
@given(seeds, hyperparameters)
def test_the_model_file_keeps_predictions_text_and_intervals(tmp_path_factory, seed, hyper):
    X, _, known = table(seed)
    model = RuleRegressor(teacher=teacher(), random_state=seed, **hyper).fit(X, known)
    kept = load(model.save(tmp_path_factory.mktemp("card") / "m.dsfr"))
    np.testing.assert_array_equal(kept.predict(X), model.predict(X))
    assert str(kept.explain()) == str(model.rules_)
    assert kept.half_width(0.8) == model.model_.half_width(0.8)
    for found, expected in zip(kept.interval(3.0 * X, 0.8), model.predict_interval(3.0 * X, 0.8), strict=True):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=15)
@given(seeds)
def test_the_parts_of_a_prediction_add_up_to_it(seed):
    X, _, known = table(seed)
    model = RuleRegressor(teacher=teacher(), random_state=seed).fit(X, known)
    explained = model.explain_prediction(X[0])
    assert explained.prediction == pytest.approx(model.predict(X[:1])[0], rel=1e-9)


def test_no_signal_is_one_rule_without_terms_and_says_so():
    X, _, known = table(3)
    texts = []
    for seed in range(12):
        known[~np.isnan(known)] = np.random.default_rng(seed).normal(size=30)
        model = RuleRegressor(teacher=teacher(), random_state=0).fit(X, known)
        if "no signal" in str(model.rules_):
            texts.append(str(model.rules_))
            assert model.complexity_["rules"] == 1
            assert model.complexity_["terms"] == 0
            np.testing.assert_allclose(model.predict(X), np.nanmean(known), atol=0.1 * np.nanstd(known))
            printed = texts[-1].split("THEN y = ")[1].split()[0]
            assert len(printed.lstrip("-0.")) <= 3, "only digits that matter are printed"
    assert len(texts) >= 3


def test_a_plane_is_one_rule():
    X, _, known = table(0)
    known = np.where(np.isnan(known), np.nan, 3.0 * X[:, 0] - X[:, 1])
    model = RuleRegressor(random_state=0).fit(X, known)
    assert model.complexity_["rules"] == 1
    assert "one rule without conditions" in str(model.rules_)
    np.testing.assert_allclose(model.predict(X), 3.0 * X[:, 0] - X[:, 1], atol=0.5)


def levelling_off():
    """A table whose target levels off along the first feature."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 3))
    y = 3.0 * np.clip(X[:, 0], -0.5, 0.7) + X[:, 1] + rng.normal(0, 0.5, 800)
    return X, np.where(np.arange(800) < 150, y, np.nan)


def test_a_line_that_levels_off_takes_limits_and_no_conditions():
    X, known = levelling_off()
    model = RuleRegressor(random_state=0).fit(X, known)
    limits = model.model_.predictor.limits
    assert model.complexity_["rules"] == 1
    assert limits.low[0] == pytest.approx(-0.5, abs=0.2)
    assert limits.high[0] == pytest.approx(0.7, abs=0.2)
    assert limits.high[1] > X[:, 1].max()
    beyond = X[(X[:, 0] < limits.low[0]) | (X[:, 0] > limits.high[0])]
    np.testing.assert_array_equal(model.in_domain(beyond), model.teacher_.in_domain(beyond))
    assert model.in_domain(beyond).all(), "rows beyond a limit of lines are among those of training"


def test_thresholds_that_no_rule_has_are_said_to_be_unused(tmp_path):
    X, known = levelling_off()
    unused = RuleRegressor(random_state=0, edits={"x1": {"thresholds": [[-0.2, 0.2]]}}).fit(X, known)
    said = [note for note in unused.rules_.notes if note.startswith("No rule has a condition on x1, for which")]
    assert len(said) == 1
    unused.save(tmp_path / "m.dsfr")
    assert said[0] in str(load(tmp_path / "m.dsfr").explain())
    turning = np.where(np.isnan(known), np.nan, 3.0 * np.abs(X[:, 0]) + X[:, 1])
    used = RuleRegressor(random_state=0, edits={"x0": {"thresholds": [[-0.2, 0.2]]}}).fit(X, turning)
    assert used.complexity_["rules"] > 1
    assert not [note for note in used.rules_.notes if note.startswith("No rule has a condition")]


def test_limits_are_at_quantiles_whatever_thresholds_are_prescribed():
    X, known = levelling_off()
    edited = RuleRegressor(random_state=0, edits={"x0": {"thresholds": [[-0.2, 0.2]]}}).fit(X, known)
    limits = edited.model_.predictor.limits
    assert limits.low[0] == pytest.approx(-0.5, abs=0.3)
    assert limits.high[0] == pytest.approx(0.7, abs=0.3)


@pytest.mark.parametrize("seed", [2, 3])
def test_no_ramp_is_beyond_the_limits_of_its_feature(seed):
    """Conditions hold to the degrees that the text says, whether values count as limits or not."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 3))
    steep = np.clip(X[:, 0], -1.0, 0.3) * np.where(X[:, 0] > 0.0, 1.0, 3.0)
    y = steep + X[:, 1] * np.clip(X[:, 0], -0.3, 0.8) + rng.normal(0, 0.2, 500)
    model = RuleRegressor(random_state=seed).fit(X, np.where(np.arange(500) < 100, y, np.nan))
    rules, within = model.rules_.rules, model.model_.predictor.within_limits(X)
    assert len(model.rules_) > 1
    np.testing.assert_array_equal(rules.strengths(within), rules.strengths(X))


def test_two_valued_features_are_named_by_their_values():
    X, _, known = table(1, n=400, n_labels=150)
    known[:150] = 30.0 * (X[:150, 2] == 2) * X[:150, 0] + X[:150, 0]
    model = RuleRegressor(random_state=0).fit(X, known)
    assert "x2 is 1: below 1 fully, above 2 not at all" in str(model.rules_)
    limits = model.model_.predictor.limits
    assert (limits.low[2], limits.high[2]) == (1.0, 2.0)  # and not a little beyond, as of other features


def test_rules_are_true_alone_and_lines_pass_through_the_mean_of_their_rows():
    X, _, known = table(2, n=600, n_labels=80)
    model = RuleRegressor(random_state=0).fit(X, known)
    rules, lines = model.rules_.rules, model.rules_.lines
    strengths = rules.strengths(X)
    taught = model.teacher_.predict(X)
    means = strengths.T @ taught / strengths.sum(axis=0)
    values = lines[:, 0] + model.model_.predictor.within_limits(X) @ lines[:, 1:].T
    outputs = np.einsum("nk,nk->k", strengths, values) / strengths.sum(axis=0)
    np.testing.assert_allclose(outputs, means, atol=0.05 * taught.std())
    np.testing.assert_allclose(model.rules_.outputs, outputs, rtol=1e-6)
    # Prices are parts of the teacher's error, which may be tiny: what the strongest rule adds is measured in variances.
    strongest = values[np.arange(len(X)), strengths.argmax(axis=1)]
    distance, alone = (np.mean((found - taught) ** 2) / taught.var() for found in (model.predict(X), strongest))
    assert alone - distance < 0.002
    assert model.complexity_["strongest_price"] >= model.complexity_["price"]
    assert model.complexity_["fidelity"] == pytest.approx(1.0 - distance, abs=1e-6)


def test_names_are_quoted_only_where_needed():
    assert quoted("mean radius") == "mean radius"
    assert quoted("a\u202eb") == '"a\\u202eb"'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_rules": 0}, "max_rules=0 must be a whole number from 1"),
        ({"max_conditions": -1}, "max_conditions=-1 must be"),
        ({"max_terms": 1.5}, "max_terms=1.5 must be"),
        ({"tolerance": -1.0}, "tolerance=-1.0 must be"),
        ({"teacher": SFRRegressor(n_agents=3)}, "teacher has n_agents=3: give n_agents to RuleRegressor"),
        ({"teacher": "auto"}, "teacher='auto' must be an AutoSFRRegressor"),
        ({"edits": {"nobody": {}}}, "edits: there is no feature 'nobody'; there are x0, x1"),
        ({"edits": {"x0": {"slope": "up"}}}, r"edits\['x0'\]: slope='up' must be"),
        ({"edits": {"x0": {"thresholds": [[2, 1]]}}}, "must ascend"),
        ({"edits": {"x0": {"color": 1}}}, "'color' is not known"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    X, _, known = table(0)
    with pytest.raises(ValueError, match=message):
        RuleRegressor(**arguments).fit(X, known)


def test_edits_hold_in_the_model():
    X, _, known = table(4, n=500, n_labels=80)
    edits = {
        "x0": {"condition": False},
        "x1": {"thresholds": [[45, 55]], "words": ["small", "large"]},
        "x3": {"slope": "0"},
        "x2": {"slope": "-"},
    }
    model = RuleRegressor(edits=edits, random_state=0).fit(X, known)
    rules, lines = model.rules_.rules, model.rules_.lines
    assert all(0 not in rules.conditions(k) for k in range(len(model.rules_)))
    assert rules.ramps_of(1) in ([], [(45.0, 55.0)])
    assert not lines[:, 4].any()
    assert (lines[:, 3] <= 0).all()
    assert "x1 is small: below 45 fully, above 55 not at all" in str(model.rules_)
