"""Targets that are learnt as logarithms, held near their labels, bounded or few-valued."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, RuleRegressor
from dsfr.core.prediction.link import Link, held_link, log_link, mean_factor, reach_of, rounded_hold
from dsfr.core.prediction.scores import Scores
from dsfr.export import to_onnx
from dsfr.export.fml import to_fml
from dsfr.report.data import ReportData
from dsfr.report.notes import notes_of, notes_of_student
from dsfr.training.changed_rows import LogRows
from dsfr.training.ensemble import effect_member
from dsfr.training.ensemble.rule_bases import Weighed
from dsfr.training.rows import ArrayRows
from tests import card_reader
from tests.tables import owners_of

few = settings(max_examples=12, deadline=None)
seeds = st.integers(0, 2**32 - 1)
QUICK = Ensemble(n_models=0, effects="single")


def long_tailed(seed, n_rows=120, n_labels=50, noise=0.3):
    """A product of exponentials with multiplicative noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n_rows, 3))
    y = np.exp(2.0 * X[:, 0] + X[:, 1] + noise * rng.standard_normal(n_rows))
    hidden = y.copy()
    hidden[rng.permutation(n_rows)[n_labels:]] = np.nan
    return X, y, hidden


@st.composite
def links(draw):
    low = draw(st.floats(1e-3, 10.0))
    high, deviation = low * draw(st.floats(1.5, 1e3)), draw(st.floats(0.1, 10.0))
    link = draw(st.sampled_from([held_link(low, high, deviation), log_link(low, high, deviation, 0.5), Link()]))
    return Link(link.is_log, draw(st.floats(0.5, 2.0)) if link.is_log else 1.0, *(link.low, link.high, link.floor))


@few
@given(link=links(), seed=seeds, scale=st.floats(0.1, 100.0))
def test_a_link_is_monotone_and_an_interval_holds_its_prediction(link, seed, scale):
    rng = np.random.default_rng(seed)
    values, half = np.sort(scale * rng.standard_normal(40)), rng.uniform(0.0, 2.0, 40)
    predictions, (low, high) = link.predictions(values), link.interval(values, half)
    assert (np.diff(predictions) >= 0.0).all()
    assert (low <= np.maximum(predictions, link.floor)).all()
    assert (np.minimum(predictions, link.ceiling) <= high).all()
    wider = link.interval(values, half + 0.5)
    assert (wider[0] <= low).all()
    assert (wider[1] >= high).all()
    assert (link.deviations(values, half) >= 0.0).all()


@few
@given(low=st.floats(0.0, 0.4), high=st.floats(0.5, 1.0), deviation=st.floats(0.6, 2.0), seed=seeds)
def test_shares_are_held_between_0_and_1(low, high, deviation, seed):
    link = held_link(low, high, deviation)
    values = 3.0 * np.random.default_rng(seed).standard_normal(50)
    for found in (link.predictions(values), *link.interval(values, np.full(50, 1.0))):
        assert found.min() >= 0.0
        assert found.max() <= 1.0


@few
@given(low=st.floats(-1e6, 1e6), width=st.floats(1e-3, 1e6), is_log=st.booleans())
def test_readable_limits_are_just_beyond_the_limits(low, width, is_log):
    link = (
        log_link(abs(low) + 1.0, abs(low) + 1.0 + width, width, 1.0) if is_log else held_link(low, low + width, width)
    )
    found = rounded_hold(link)
    ends = (0.0, np.exp(link.high)) if is_log else (link.low, link.high)
    assert not found.is_log
    assert found.low <= ends[0] * (1.0 + 1e-12 * np.sign(ends[0]))
    assert found.high >= ends[1] * (1.0 - 1e-12 * np.sign(ends[1]))
    room = 0.0101 * max(map(abs, ends))
    assert found.low >= ends[0] - room
    assert found.high <= ends[1] + room


@few
@given(seed=seeds, n=st.integers(5, 60), factor=st.floats(0.7, 1.5))
def test_the_factor_minimises_the_squared_error_and_is_shrunk_towards_1(seed, n, factor):
    e = np.random.default_rng(seed).uniform(0.5, 2.0, n)
    y = factor * e
    found = mean_factor(float(y @ e), float(e @ e), n)
    assert min(1.0, factor) - 1e-12 <= found <= max(1.0, factor) + 1e-12
    expected = (n * factor + 20.0) / (n + 20.0)  # twenty labels speak for 1
    assert found == pytest.approx(expected)
    assert mean_factor(0.0, 0.0, 5.0) == 1.0


@few
@given(seed=seeds, n=st.integers(1, 30))
def test_rows_on_a_log_scale_keep_what_is_unlabelled(seed, n):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, np.nan, rng.uniform(-1.0, 3.0, n))
    ((_, found),) = LogRows(ArrayRows(np.zeros((n, 1)), y)).batches()
    assert (np.isnan(found) == np.isnan(y)).all()
    np.testing.assert_allclose(np.exp(found[y > 0.0]), y[y > 0.0])
    assert (found[y <= 0.0] < -1e300).all()


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 99), n_agents=st.integers(2, 5), target=st.sampled_from(["auto", "log"]))
def test_agents_learn_what_the_pooled_rows_say(seed, n_agents, target):
    X, _, y = long_tailed(seed)
    told = {"ensemble": QUICK, "target": target, "random_state": 0}
    pooled = AutoSFRRegressor(**told).fit(X, y)
    shared = AutoSFRRegressor(**told).fit(X, y, agents=owners_of(seed, len(y), n_agents))
    assert shared.model_.mixture.link.is_log == pooled.model_.mixture.link.is_log
    np.testing.assert_allclose(shared.predict(X), pooled.predict(X), rtol=1e-5)
    np.testing.assert_allclose(shared.predict_interval(X), pooled.predict_interval(X), rtol=1e-2)


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 99), power=st.integers(-20, 20))
def test_a_logarithm_does_not_depend_on_the_unit_of_the_target(seed, power):
    X, _, y = long_tailed(seed)
    unit = 10.0**power
    told = {"ensemble": QUICK, "random_state": 0}
    plain, scaled = (AutoSFRRegressor(**told).fit(X, of) for of in (y, unit * y))
    assert plain.model_.mixture.link.is_log == scaled.model_.mixture.link.is_log
    np.testing.assert_allclose(scaled.predict(X), unit * plain.predict(X), rtol=1e-5)


def test_a_long_tailed_target_is_learnt_as_its_logarithm_and_a_plain_one_is_not():
    errors = []
    for seed in range(3):
        X, truth, y = long_tailed(seed, n_rows=300)
        hidden = np.isnan(y)
        models = [AutoSFRRegressor(ensemble=QUICK, target=to, random_state=0).fit(X, y) for to in ("auto", None)]
        assert models[0].model_.mixture.link.is_log
        errors.append([np.mean((model.predict(X) - truth)[hidden] ** 2) for model in models])
        linear = AutoSFRRegressor(ensemble=QUICK, random_state=0).fit(X, 10.0 + 0.3 * np.log(y) + 5.0 * X[:, 2])
        assert not linear.model_.mixture.link.is_log
    assert np.mean(errors, axis=0)[0] < 0.9 * np.mean(errors, axis=0)[1]


def test_what_choosing_costs_is_estimated_once_for_each_member_that_is_weighed(monkeypatch):
    """A scale that is given up has members too, whose shares nobody asks for."""
    asked = []
    monkeypatch.setattr(effect_member, "optimism", lambda rows, *_: asked.append(rows.rest.tobytes()) or 1.0)
    for power in (0.4, 0.7):  # no label is far off, which would be another question
        X, _, y = long_tailed(0)
        asked.clear()
        model = AutoSFRRegressor(ensemble=Ensemble(n_models=0), random_state=0).fit(X, y**power)
        with_effects = [member for member in model.model_.mixture.members if member.predictor.basis.n_rules == 0]
        assert 0 < len(asked) <= len(with_effects)
        assert len(set(asked)) == len(asked)


def test_predictions_of_a_logarithm_are_means_and_its_intervals_hold_what_they_promise():
    held, ratios, medians = [], [], []
    for seed in range(4):
        X, truth, y = long_tailed(seed, n_rows=900, n_labels=400, noise=0.6)
        model = AutoSFRRegressor(ensemble=QUICK, target="log", random_state=0).fit(X, y)
        hidden = np.isnan(y)
        low, high = model.predict_interval(X[hidden], 0.8)
        held.append(np.mean((low <= truth[hidden]) & (truth[hidden] <= high)))
        ratios.append(model.predict(X)[hidden].mean() / truth[hidden].mean())
        medians.append(ratios[-1] / model.model_.mixture.link.factor)
        assert (low > 0.0).all()
    assert 0.74 <= np.mean(held) <= 0.86
    # A median is 0.84 of the mean of a lognormal distribution with this noise.
    assert 0.92 <= np.mean(ratios) <= 1.08
    assert np.mean(medians) < 0.9


def test_predictions_are_held_near_the_labels_unless_asked_otherwise():
    X, _, y = long_tailed(1)
    noise = 2.0 * np.random.default_rng(0).standard_normal(len(y))
    y = np.where(np.isnan(y), np.nan, 5.0 * X[:, 0] + X[:, 1] - 20.0 + noise)
    far = 50.0 * np.sign(X)
    held, free = (
        AutoSFRRegressor(ensemble=QUICK, target=target, random_state=0, scaling="range").fit(X, y)
        for target in ("auto", None)
    )
    beyond = np.nanstd(y) * 1.001
    assert held.predict(far).max() <= np.nanmax(y) + beyond
    assert held.predict(far).min() >= np.nanmin(y) - beyond
    assert free.predict(far).max() > np.nanmax(y) + 5.0 * beyond
    assert "held at its limit" in str(held.explain_prediction(far[0]))
    np.testing.assert_allclose(held.predict(X), free.predict(X))


def test_what_is_explained_without_error_is_followed_beyond_the_labels():
    X, _, y = long_tailed(1)
    y = np.where(np.isnan(y), np.nan, 5.0 * X[:, 0] + X[:, 1] - 20.0)
    model = AutoSFRRegressor(ensemble=QUICK, random_state=0, scaling="range").fit(X, y)
    assert model.predict(3.0 * X).max() > np.nanmax(y) + 2.0 * np.nanstd(y)


def test_a_file_an_onnx_graph_and_the_words_are_the_model(tmp_path):
    X, _, y = long_tailed(2)
    model = AutoSFRRegressor(target="log", ensemble=Ensemble(n_models=2, effects="single"), random_state=0).fit(X, y)
    loaded = dsfr.load(model.save(tmp_path / "m.dsfr"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.interval(X), model.predict_interval(X))
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(to_onnx(loaded, double=True), providers=["CPUExecutionProvider"])
    far = np.vstack([X, 9.0 * X])
    np.testing.assert_allclose(session.run(["prediction"], {"X": far})[0], model.predict(far), rtol=1e-9)
    assert "Learnt is log(y)" in str(loaded.explain())
    assert "THEN log(y) =" in str(loaded.explain())
    explained = loaded.explain_prediction(X[0])
    assert explained.prediction == pytest.approx(model.predict(X[:1])[0])
    parts = sum(explained.contributions.values()) + sum(explained.together.values())
    assert explained.start + explained.firing + parts == pytest.approx(explained.value)
    single = AutoSFRRegressor(target="log", ensemble=Ensemble(n_models=1), random_state=0).fit(X, y).model_
    with pytest.raises(ValueError, match="predicts the exponential of its rules, which FML cannot express"):
        to_fml(single)


@pytest.mark.parametrize(
    "numbers",
    [[2, 1, 0, 1, 0, 1], [1, 100, 0, 1, 0, 1], [1, 1, 2, 1, 0, 1], [0, 1.5, 0, 1, 0, 1], [1, 1, 0, 800, 0, 1], [1, 1]],
)
def test_a_file_with_an_impossible_link_is_refused(tmp_path, numbers, monkeypatch):
    X, _, y = long_tailed(3)
    model = AutoSFRRegressor(target="log", ensemble=QUICK, random_state=0).fit(X, y).model_
    written = dsfr.model.file._to_arrays
    forged = {"target_link": np.array(numbers, dtype=np.float64)}
    monkeypatch.setattr("dsfr.model.file._to_arrays", lambda mixture: written(mixture) | forged)
    path = model.save(tmp_path / "m.dsfr")
    with pytest.raises(dsfr.ModelFileError):
        dsfr.load(path)


def test_short_rules_of_a_share_are_held_by_the_text_that_is_the_model(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (300, 2))
    y = 1.0 / (1.0 + np.exp(-3.0 * X[:, 0]))
    y[60:] = np.nan
    model = RuleRegressor(random_state=0, teacher=AutoSFRRegressor(ensemble=QUICK)).fit(X, y)
    assert "A result below 0 counts as 0, above 1 as 1" in str(model.rules_)
    far = np.vstack([X, 5.0 * X])
    expected = card_reader.predict(str(model.rules_), {"x0": far[:, 0], "x1": far[:, 1]})
    np.testing.assert_allclose(model.predict(far), expected, rtol=1e-9, atol=1e-12)
    assert 0.0 <= model.predict(far).min() <= model.predict(far).max() <= 1.0
    assert b"A result below 0.0 counts as 0.0, above 1.0 as 1.0." in to_fml(model.model_)
    assert dsfr.load(model.save(tmp_path / "m.dsfr")).mixture.link == model.model_.mixture.link


def test_short_rules_of_a_logarithm_are_in_the_units_of_the_target():
    covered = []
    for seed in (4, 5, 6):
        X, truth, y = long_tailed(seed, n_rows=400, n_labels=80)
        teacher = AutoSFRRegressor(target="log", ensemble=QUICK)
        model = RuleRegressor(random_state=0, teacher=teacher).fit(X, y)
        assert model.teacher_.model_.mixture.link.is_log
        assert not model.model_.mixture.link.is_log
        assert model.score(X, truth) > 0.6
        hidden = np.isnan(y)
        actual = np.sqrt(np.mean((model.teacher_.predict(X) - truth)[hidden] ** 2))
        assert 0.6 <= model.model_.training["student"]["teacher_error"] / actual <= 1.6
        low, high = model.predict_interval(X, 0.8)
        covered.append(np.mean((low <= truth) & (truth <= high)))
    assert min(covered) >= 0.6
    assert 0.7 <= np.mean(covered) <= 0.95


def test_few_valued_targets_are_said_to_be_few_valued():
    X, _, y = long_tailed(5)
    for values, expected in ((np.where(X[:, 0] > 0.0, 1.0, 0.0), 2), (np.round(2.0 * X[:, 0]), 5), (y, None)):
        of = np.where(np.isnan(y), np.nan, values)
        model = AutoSFRRegressor(ensemble=QUICK, random_state=0).fit(X, of).model_
        assert model.training.get("n_target_values") == expected
        said = f"labels of y have {expected} different values"
        assert (said in str(model.explain())) == (expected is not None)


def test_a_logarithm_needs_positive_targets():
    X, _, y = long_tailed(6)
    y[np.flatnonzero(~np.isnan(y))[0]] = 0.0
    with pytest.raises(ValueError, match=r'target="log" needs targets > 0, and the lowest label is 0'):
        AutoSFRRegressor(target="log", ensemble=QUICK).fit(X, y)
    assert not AutoSFRRegressor(ensemble=QUICK).fit(X, y).model_.mixture.link.is_log
    with pytest.raises(ValueError, match="target='sqrt' must be one of 'auto', 'log', None"):
        AutoSFRRegressor(target="sqrt").fit(X, y)
    with pytest.raises(ValueError, match="target='log' does not go with tune=None"):
        AutoSFRRegressor(target="log", tune=None, ensemble=Ensemble(n_models=1), uncertainty=False).fit(X, y)


def test_a_logarithm_streams(tmp_path):
    X, _, y = long_tailed(7)
    table = np.column_stack([X, y])
    lines = [",".join("" if np.isnan(value) else repr(float(value)) for value in row) for row in table]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,y", *lines]) + "\n")
    told = {"ensemble": QUICK, "target": "log", "random_state": 0}
    streamed = AutoSFRRegressor(**told).fit(dsfr.scan(tmp_path / "table.csv", target="y"))
    np.testing.assert_allclose(
        streamed.model_.predict_rows(X), AutoSFRRegressor(**told).fit(X, y).predict(X), rtol=1e-9
    )


def far_group(seed, n_rows=200, n_labels=60):
    """A line; one row in twelve is far off in a feature, and so in the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    X[::12, 0] += rng.uniform(80.0, 120.0)
    y = 5.0 * X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(n_rows)
    hidden = y.copy()
    hidden[rng.permutation(n_rows)[n_labels:]] = np.nan
    hidden[:36:12] = y[:36:12]
    return X, y, hidden


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 99), n_agents=st.integers(1, 4))
def test_labels_far_off_that_others_predict_count_as_they_are(seed, n_agents):
    X, y, hidden = far_group(seed)
    pooled = AutoSFRRegressor(ensemble=QUICK, random_state=0).fit(X, hidden)
    assert dsfr.nrmse(y, pooled.predict(X)) < 0.02
    shared = AutoSFRRegressor(ensemble=QUICK, random_state=0).fit(X, hidden, agents=owners_of(seed, len(y), n_agents))
    np.testing.assert_allclose(shared.predict(X), pooled.predict(X), rtol=1e-5, atol=1e-5)


def skewed_plane(seed, n_rows=516, n_labels=200):
    """A sum of skewed amounts, nearly without noise: some rows are far beyond most others."""
    rng = np.random.default_rng(seed)
    X = np.exp(1.4 * rng.standard_normal((n_rows, 7)))
    y = X @ np.array([9.0, 4.0, 4.0, 2.0, 0.0, 0.0, 1.0]) + 0.3 * rng.standard_normal(n_rows)
    return X, y, np.where(np.arange(n_rows) < n_labels, y, np.nan)


@pytest.mark.parametrize("n_agents", [1, 3])
def test_features_of_labels_that_others_predict_are_followed_far(n_agents):
    X, y, hidden = skewed_plane(3)
    owners = owners_of(3, len(y), n_agents)
    model = AutoSFRRegressor(ensemble=QUICK, random_state=0).fit(X, hidden, agents=owners)
    assert dsfr.nrmse(y, model.predict(X)) < 0.02


@pytest.mark.filterwarnings("ignore:a target of")
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 99), times=st.sampled_from([-1e6, 30.0, 1e3]), copies=st.integers(1, 3))
def test_a_mistaken_label_does_not_count_as_it_is(seed, times, copies):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 3))
    y = X[:, 0] + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(200)
    hidden = np.where(np.arange(200) < 60, y, np.nan)
    hidden[0] = times * np.ptp(y)
    X[:copies], hidden[:copies] = X[0], hidden[0]
    model = AutoSFRRegressor(ensemble=QUICK, random_state=0).fit(X, hidden)
    assert dsfr.nrmse(y[60:], model.predict(X[60:])) < 1.0


def test_a_few_large_errors_do_not_end_what_is_followed_beyond_the_labels():
    beyond = []
    for n_odd in (0, 3):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1.0, 1.0, (400, 3))
        y = 5.0 * X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(400)
        y[:n_odd] += 6.0
        model = AutoSFRRegressor(ensemble=QUICK, random_state=0).fit(X, np.where(np.arange(400) < 100, y, np.nan))
        link = model.model_.mixture.link
        beyond.append((link.high - y[:100].max()) / y[:100].std())
    assert beyond[0] > beyond[1] > 2.0


@few
@given(seed=seeds, n=st.integers(20, 200), share=st.floats(0.02, 0.3))
def test_a_target_that_is_nearly_always_0_and_not_predicted_is_not_followed(seed, n, share):
    y = np.where(np.random.default_rng(seed).random(n) < share, 1.0, 0.0)
    y[0] = 1.0
    errors = np.sort(np.abs(y - y.mean()))
    scores = Scores(errors, np.arange(1.0, n + 1.0))
    typical = Weighed(np.ones(1)).typical_error(scores, float(y.std()))
    assert reach_of(typical, float(y.std()), is_log=False) == 1.0


PAIRS = Ensemble(n_models=0, effects="pairs")


def mostly_nothing(seed, n_rows=800, n_labels=200):
    """An amount that 0.85 of the rows do not have, times a price: targets are 0 but for rounding, or far off that."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    X[:, 0] = np.where(rng.random(n_rows) < 0.15, 1.0 + rng.exponential(size=n_rows), 0.0)
    y = 20.0 * X[:, 0] * (1.0 + 0.3 * X[:, 1]) + 0.01 * rng.standard_normal(n_rows)
    return X, y, np.where(np.arange(n_rows) < n_labels, y, np.nan)


@pytest.mark.parametrize("seed", range(4))
def test_a_tail_that_other_labels_predict_is_followed(seed):
    X, y, hidden = mostly_nothing(seed)
    model = AutoSFRRegressor(ensemble=PAIRS, random_state=0).fit(X, hidden)
    assert dsfr.nrmse(y[200:], model.predict(X[200:])) < 0.05
    if seed == 0:
        shared = AutoSFRRegressor(ensemble=PAIRS, random_state=0).fit(X, hidden, agents=owners_of(seed, len(y), 3))
        np.testing.assert_allclose(shared.predict(X), pooled := model.predict(X), atol=1e-6 * np.ptp(pooled))


@pytest.mark.filterwarnings("ignore:a target of")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("deviations", [-30.0, 100.0, 1e4])
def test_a_typing_mistake_in_a_label_moves_nobody(seed, deviations):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((600, 4))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(600)
    hidden = np.where(np.arange(600) < 200, y, np.nan)
    mistaken = hidden.copy()
    mistaken[seed] = deviations * y.std()
    errors = [
        dsfr.nrmse(y[200:], AutoSFRRegressor(ensemble=PAIRS, random_state=0).fit(X, of).predict(X[200:]))
        for of in (hidden, mistaken)
    ]
    assert errors[1] < errors[0] + 0.3


def report_notes(model, data):
    return notes_of_student(model, model.predictor.domain, data) if model.is_student else notes_of(model, data)


def test_a_line_is_followed_beyond_all_rows_by_three_times_their_range_at_most(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (200, 2))
    hidden = np.where(np.arange(200) < 50, 3.0 * X[:, 0] + X[:, 1], np.nan)
    model = AutoSFRRegressor(ensemble=QUICK, random_state=0).fit(X, hidden)
    beyond = np.array([[1.5, 0.5], [1.9, 0.5], [5.0, 0.5], [50.0, 0.5]])
    near, nearer_to_2, far, farther = model.predict(beyond)
    assert near == pytest.approx(5.0, abs=0.02)
    assert nearer_to_2 == pytest.approx(6.2, abs=0.02)
    assert far == farther == pytest.approx(12.5, abs=0.2)
    assert not model.in_domain(beyond).any()
    for shown in (model, RuleRegressor(random_state=0, teacher=AutoSFRRegressor(ensemble=QUICK)).fit(X, hidden)):
        grid, _ = shown.model_.partial_dependence(0)
        assert -0.11 <= grid[0] < grid[-1] <= 1.11  # what is shown spans the rows
        data = ReportData(np.array([[1.6, 0.5]]), None)
        assert any("extrapolates, up to its limits" in note["text"] for note in report_notes(shown.model_, data))
        clipped = report_notes(shown.model_, ReportData(np.array([[9.0, 0.5]]), None))
        assert any("clipped to the limits" in note["text"] for note in clipped)
        assert dsfr.load(shown.save(tmp_path / "m.dsfr")).predictor.domain.high[0] <= 1.11


@pytest.mark.parametrize("seed", range(4))
def test_a_nearly_exact_model_follows_targets_below_zero_where_no_label_was(seed):
    """Labels are positive by chance: a normal target of mean 2 deviations."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(800, 3))
    truth = 2.4 + X @ np.array([0.9, 0.3, 0.1]) + 0.02 * rng.normal(size=800)
    order = np.argsort(truth[:60])
    chosen = order[truth[order] > 0.2][:40]
    y = np.full(800, np.nan)
    y[chosen] = truth[chosen]
    predictions = AutoSFRRegressor(random_state=0).fit(X, y).predict(X)
    negative = truth < -0.1
    assert negative.any()
    assert (predictions[negative] < 0.0).all()


def test_a_target_that_is_never_negative_is_predicted_so_however_exact_the_model_is():
    rng = np.random.default_rng(0)
    X = rng.exponential(size=(800, 2))
    y = np.where(np.arange(800) < 60, X[:, 0] + 0.01 * X[:, 1], np.nan)
    model = AutoSFRRegressor(random_state=0).fit(X, y)
    assert model.predict(X - 3.0).min() >= 0.0


def test_shares_stay_between_0_and_1_however_exact_the_model_is():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, size=(400, 2))
    y = np.where(np.arange(400) < 50, 0.5 + 0.3 * X[:, 0] + 0.12 * X[:, 1], np.nan)
    predictions = AutoSFRRegressor(random_state=0).fit(X, y).predict(5.0 * X)
    assert 0.0 <= predictions.min() <= predictions.max() <= 1.0
