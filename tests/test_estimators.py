"""Estimators: who owns which row, what is unlabelled, what is kept, what is refused."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dsfr import (
    Absence,
    Faults,
    InProcess,
    InProcessEngine,
    LapWNNRegressor,
    SFRRegressor,
    load,
    nrmse,
    nrmse_scorer,
    plot,
    train,
)
from dsfr.engines import EngineError
from dsfr.report import write_report
from dsfr.training import ADMM, ICR, TASKS, Conjugate, Decentralized, Graph, RangeScaling, make_shards
from tests.tables import make_settings, make_table, owners_of

ESTIMATORS = [
    SFRRegressor(random_state=0),
    SFRRegressor(unlabeled="graph", random_state=0),
    SFRRegressor(unlabeled=Graph(kernel="full"), random_state=0),
    SFRRegressor(unlabeled=None, random_state=0),
    LapWNNRegressor(random_state=0),
]
NAMES = ["icr", "graph", "full-graph", "none", "lapwnn"]


@pytest.fixture(params=ESTIMATORS, ids=NAMES)
def estimator(request):
    return clone(request.param)


@pytest.fixture
def table():
    return make_table(0)


@pytest.mark.parametrize("solver", ["conjugate", "sums"])
@pytest.mark.parametrize("n_agents", [1, 2, 7])
def test_every_method_learns_centralised_and_distributed(estimator, table, n_agents, solver):
    X, truth, y = table
    estimator.set_params(n_agents=n_agents, solver=solver, ridge=0.01).fit(X, y)
    assert estimator.termination_ == "converged"
    assert len(estimator.agents_) == n_agents
    assert nrmse(truth, estimator.predict(X)) < (0.5 if isinstance(estimator, SFRRegressor) else 1.0)


def test_fitted_attributes_tell_what_happened(table):
    X, _, y = table
    model = SFRRegressor(n_agents=3, random_state=0).fit(X, y)
    assert model.n_rounds_ == model.ledger_.rounds > len(model.history_) > 2
    assert {info.stage for info in model.history_} == {"clusters", "weights"}
    assert model.history_[-1].error_bound <= 1e-4
    assert model.history_[-1].objective < next(i for i in model.history_ if i.stage == "weights").objective
    assert len(model.rules_) == 5
    assert sum(rule.share for rule in model.rules_) == pytest.approx(1.0)
    assert model.ledger_.bytes > 0
    assert model.model_.training["n_labeled"] == 30
    assert model.model_.settings["ridge"] is None


def test_rules_in_the_data_s_units_give_the_predictions(table):
    X, _, y = table
    model = SFRRegressor(random_state=0).fit(X, y)
    sets = np.stack([-(((X - rule.centers) / rule.widths) ** 2).sum(axis=1) for rule in model.rules_])
    strengths = np.exp(sets - sets.max(axis=0))
    strengths /= strengths.sum(axis=0)
    lines = np.stack([rule.intercept + X @ rule.coefficients for rule in model.rules_])
    np.testing.assert_allclose((strengths * lines).sum(axis=0), model.predict(X), rtol=1e-9)


def test_rules_read_as_sentences(table):
    X, _, y = table
    frame = pd.DataFrame(X, columns=["speed", "angle", "[bold]x"])
    model = SFRRegressor(n_rules=2, random_state=0).fit(frame, pd.Series(y, name="noise"))
    text = str(model.rules_[0])
    assert text.startswith("Rule 1 (")
    assert re.search(r"^IF   \[bold\]x is (very )?(low|medium|high) \(about ", text, flags=re.MULTILINE)
    assert "·speed" in text
    assert "THEN noise = " in text


def test_data_frames_keep_their_names_and_columns_are_checked(table):
    X, _, y = table
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = SFRRegressor(random_state=0).fit(frame, y)
    assert list(model.feature_names_in_) == ["a", "b", "c"] == list(model.model_.feature_names)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])
    np.testing.assert_array_equal(model.model_.predict(frame[["c", "a", "b"]]), model.predict(frame))
    with pytest.raises(ValueError, match=r"lacks the column\(s\) b"):
        model.model_.predict(frame[["a", "c"]])


def test_owners_decide_the_agents_and_any_names_will_do(table):
    X, _, y = table
    numbers = np.arange(len(y)) % 3
    by_number = SFRRegressor(random_state=0).fit(X, y, agents=numbers)
    by_text = SFRRegressor(random_state=0).fit(X, y, agents=[str(n) for n in numbers])
    by_series = SFRRegressor(n_agents=3, random_state=0).fit(X, y, agents=pd.Series(numbers))
    assert by_number.agents_ == ["0", "1", "2"]
    np.testing.assert_array_equal(by_number.predict(X), by_text.predict(X))
    np.testing.assert_array_equal(by_number.predict(X), by_series.predict(X))


def test_a_random_split_is_even_and_follows_the_seed(table):
    X, _, y = table
    first, again, other = (SFRRegressor(n_agents=4, random_state=s).fit(X, y).predict(X) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("solver", ["conjugate", "sums"])
def test_agents_may_be_as_unequal_as_they_like(estimator, solver):
    X, _, y = make_table(3, n_rows=80, n_labels=40)
    labeled = np.flatnonzero(~np.isnan(y))
    owners = np.full(80, "big", dtype=object)
    owners[labeled[:5]] = "only labelled"
    owners[np.flatnonzero(np.isnan(y))[:10]] = "no labels"
    owners[labeled[5]] = "one labelled row"
    owners[np.flatnonzero(np.isnan(y))[10]] = "one unlabelled row"
    model = estimator.set_params(solver=solver).fit(X, y, agents=owners)
    assert np.isfinite(model.predict(X)).all()
    assert len(model.agents_) == 5


@pytest.mark.parametrize("solver", ["conjugate", "sums"])
@pytest.mark.parametrize(
    ("X", "y"),
    [
        pytest.param(np.array([[1.0, 2.0]]), np.array([3.0]), id="one row"),
        pytest.param(np.array([[1.0], [2.0]]), np.array([3.0, np.nan]), id="one label"),
        pytest.param(np.ones((20, 2)), np.arange(20.0), id="all rows equal"),
        pytest.param(np.column_stack([np.ones(20), np.arange(20.0)]), np.arange(20.0), id="a constant column"),
        pytest.param(np.arange(20.0)[:, None], np.full(20, 7.0), id="a constant target"),
        pytest.param(np.repeat(np.arange(4.0)[:, None], 5, axis=0), np.repeat(np.arange(4.0), 5), id="duplicate rows"),
        pytest.param(np.arange(20.0)[:, None] * 1e98, np.arange(20.0) * 1e-300, id="extreme units"),
        pytest.param(np.arange(20.0)[:, None], 1e9 + np.arange(20.0), id="far from zero"),
    ],
)
def test_small_and_degenerate_tables_work(estimator, X, y, solver):
    n_agents = min(2, len(y))
    model = estimator.set_params(n_agents=n_agents, solver=solver).fit(X, y)
    predictions = model.predict(X)
    assert np.isfinite(predictions).all()
    known = y[~np.isnan(y)]
    slack = np.ptp(known) + 1e-9 * abs(known).max()
    assert (predictions >= known.min() - slack).all()
    assert (predictions <= known.max() + slack).all()


def test_a_constant_target_is_predicted_exactly():
    X = np.random.default_rng(0).uniform(size=(30, 2))
    assert (SFRRegressor(random_state=0).fit(X, np.full(30, 4.25)).predict(X) == 4.25).all()


def test_predictions_far_outside_stay_finite(table):
    X, _, y = table
    model = SFRRegressor(random_state=0).fit(X, y)
    assert np.isfinite(model.predict(1e6 * X)).all()
    assert np.isfinite(model.predict(1e200 * X)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X, np.full(len(y), np.nan)), "no row is labelled"),
        (lambda X, y: (X, np.where(np.isnan(y), np.inf, y)), "Input y contains infinity"),
        (
            lambda X, y: (np.column_stack([X, np.full(len(y), np.nan)]), y),
            r"too few values in x3 \(0 values\): a feature needs at least 3 that are not missing\. Drop it",
        ),
        (lambda X, y: (np.where(X[5, 0] < X, np.inf, X), y), "contains infinity"),
        (lambda X, y: (X[:50], y), "inconsistent numbers of samples"),
        (lambda X, y: (X, None), "requires y to be passed"),
        (lambda X, y: (X[:0], y[:0]), "minimum of 1 is required"),
        (lambda X, y: (X.astype(str), np.array(["a"] * len(y))), "y has 'a' in row 0"),
    ],
)
def test_bad_data_are_refused_with_a_remedy(estimator, table, change, message):
    X, _, y = table
    X, y = change(X, y)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_rules": 0}, r"n_rules=0 must be a whole number >= 1"),
        ({"n_rules": 2.5}, r"n_rules=2.5 must be a whole number"),
        ({"n_rules": True}, r"n_rules=True must be"),
        ({"unlabeled": "magic"}, r"unlabeled='magic' must be one of 'graph', 'icr', or an object of dsfr: Graph, ICR"),
        ({"unlabeled__weight": -1.0}, r"weight=-1.0 must be a number >= 0"),
        ({"unlabeled": "graph", "unlabeled__weight": float("nan")}, r"weight=nan must be"),
        ({"unlabeled": None, "unlabeled__weight": 1.0}, r"unlabeled=None has no arguments weight"),
        ({"unlabeled__n_neighbors": 3}, r"unlabeled=ICR\(\) has no argument 'n_neighbors'; it has weight, n_pairs"),
        ({"ridge": 0.0}, r"ridge=0.0 must be a number > 0"),
        ({"ridge": "big"}, r"ridge='big' must be a number"),
        ({"rules__fuzzifier": 1.0}, r"fuzzifier=1.0 must be a number > 1 \(1 is hard clustering\)"),
        ({"rules__width_scale": float("inf")}, r"width_scale=inf must be"),
        ({"rules__width_pooling": "none"}, r"width_pooling='none' must be one of"),
        ({"unlabeled__n_pairs": 0}, r"n_pairs=0 must be a whole number >= 1"),
        ({"unlabeled__mix_concentration": 0}, r"mix_concentration=0 must be a number > 0"),
        ({"solver": "admm", "solver__refresh_pairs": 1}, r"refresh_pairs=1 must be True or False"),
        (
            {"solver": "admm", "solver__refresh_pairs": True, "unlabeled": "graph"},
            r"solver=ADMM\(refresh_pairs=True\) does not go with unlabeled=Graph\(\) .*draws them again",
        ),
        ({"solver": "sums", "solver__refresh_pairs": True}, r"solver=Sums\(\) has no argument 'refresh_pairs'"),
        ({"unlabeled": Graph, "unlabeled__kernel": "full"}, r"unlabeled=.*Graph.* must be one of 'graph', 'icr'"),
        ({"unlabeled": "graph", "unlabeled__kernel": "sparse"}, r"kernel='sparse' must be one of 'neighbors', 'full'"),
        ({"unlabeled": "graph", "unlabeled__n_neighbors": 0}, r"n_neighbors=0 must be"),
        ({"solver": "sgd"}, r"solver='sgd' must be one of 'admm', 'auto', 'conjugate', .*ADMM, Conjugate"),
        ({"solver": "admm", "solver__cluster_penalty": 0.0}, r"cluster_penalty=0.0 must be a number > 0 .*or None"),
        ({"solver": "admm", "solver__penalty": -1}, r"penalty=-1 must be a number > 0"),
        ({"solver__tol": 0}, r"tol=0 must be a number > 0"),
        ({"solver__max_rounds": 0}, r"max_rounds=0 must be"),
        ({"rules": "htsk"}, r"rules='htsk' must be one of 'gaussian', or an object of dsfr: FuzzyRules"),
        ({"engine": "mpi"}, r"engine='mpi' must be one of 'dask', 'in-process'"),
        ({"n_agents": 0}, r"n_agents=0 must be a whole number >= 1"),
        ({"n_agents": 1.5}, r"n_agents=1.5 must be a whole number"),
        ({"n_agents": 121}, r"n_agents=121 must be 1 to n_samples=120"),
        ({"scaling__lower": [0.0, 0.0, 0.0]}, r"lower=\[0.0, 0.0, 0.0\] and upper=None must be .*or both None"),
        ({"scaling__lower": [0.0], "scaling__upper": [1.0]}, r"declares the ranges of 1 features, and there are 3"),
        ({"scaling__lower": [2.0] * 3, "scaling__upper": [1.0] * 3}, r"lowest <= highest"),
        ({"scaling__lower": ["a"] * 3, "scaling__upper": [1.0] * 3}, r"finite"),
        ({"scaling": "robust", "scaling__lower": 1}, r"scaling=RobustScaling\(\) has no argument 'lower'; it has none"),
    ],
)
def test_bad_parameters_are_refused_by_name_value_and_rule(table, parameters, message):
    X, _, y = table
    with pytest.raises(ValueError, match=message):
        SFRRegressor().set_params(**parameters).fit(X, y)


def test_single_precision_rounds_the_features_and_little_else(table):
    X, _, y = table
    double, single = (
        SFRRegressor(precision=name, random_state=0).fit(X, y).predict(X) for name in ("double", "single")
    )
    assert 0.0 < np.abs(double - single).max() < 1e-3 * np.std(double)
    with pytest.raises(ValueError, match="precision='half' must be 'double' or 'single'"):
        SFRRegressor(precision="half").fit(X, y)


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        (["a", "b"], "2 entries for 120 rows"),
        ([None] * 120, "missing values"),
        ([np.nan] * 120, "missing values"),
        (pd.array([1, None] * 60, dtype="Int64"), "missing values"),
        ([[1, 2]] * 60, "1d array"),
    ],
)
def test_bad_owners_are_refused(table, agents, message):
    X, _, y = table
    with pytest.raises(ValueError, match=message):
        SFRRegressor().fit(X, y, agents=agents)


def test_a_number_of_agents_that_contradicts_the_owners_is_refused(table):
    X, _, y = table
    with pytest.raises(ValueError, match="n_agents=4 but agents names 3 owners"):
        SFRRegressor(n_agents=4).fit(X, y, agents=np.arange(len(y)) % 3)


def test_a_singular_system_says_what_to_do(table):
    X, _, _ = table
    with pytest.raises(ValueError, match=r"singular.*ridge is too small"):
        SFRRegressor(ridge=1e-300, unlabeled=None).fit(X[:4], np.arange(4.0))


def test_the_wrong_width_at_predict_is_refused(estimator, table):
    X, _, y = table
    estimator.fit(X, y)
    with pytest.raises(ValueError, match=r"2 features, but .* is expecting 3"):
        estimator.predict(X[:, :2])
    with pytest.raises(ValueError, match=r"Input X contains infinity, in x1 \(1 of 2 rows\)"):
        estimator.predict([[0.0, np.inf, 0.0], [0.0, 0.0, 0.0]])


def test_an_unfitted_estimator_says_so(estimator, tmp_path):
    with pytest.raises(NotFittedError):
        estimator.predict([[0.0]])
    with pytest.raises(NotFittedError):
        estimator.save(tmp_path / "x.dsfr")


def test_not_converging_is_a_warning_and_a_usable_model(table):
    X, _, y = table
    model = SFRRegressor(n_agents=3, solver=Conjugate(max_rounds=3), random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"max_rounds=3 .*solver=\"sums\"") as caught:
        model.fit(X, y)
    assert len(caught) == 2  # clusters and weights
    assert model.termination_ == "max_rounds"
    assert len(model.history_) == 6
    assert np.isfinite(model.predict(X)).all()


def test_agents_without_a_coordinator_may_run_out_of_rounds(table):
    X, _, y = table
    solver, engine = Decentralized(max_rounds=1), InProcess(topology="ring")
    model = SFRRegressor(n_agents=5, solver=solver, engine=engine, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"the clusters did not reach tol=0.0001.*for a better one raise max_r"):
        model.fit(X, y)
    assert model.termination_ == "max_rounds"


def test_an_agent_that_never_returns_is_told_of_also_without_a_coordinator(table):
    X, _, y = table
    engine = InProcess(topology="ring", faults=Faults(absences=[Absence("2", 2, task="statistics")]))
    model = SFRRegressor(n_agents=5, solver="decentralized", engine=engine, random_state=0)
    with pytest.warns(UserWarning, match=r"were missing in the last round: 2\. The model is that of the others"):
        model.fit(X, y)
    assert model.present_ == ["0", "1", "3", "4"]
    assert model.termination_ == "converged"


@pytest.mark.slow
def test_many_small_agents_agree_because_the_penalty_rises_when_they_circle(table):
    X, _, y = table
    told = {"unlabeled": None, "ridge": 1.0, "solver": ADMM(max_rounds=1000)}
    free = SFRRegressor(n_agents=20, random_state=0, **told).fit(X, y)
    assert free.termination_ == "converged"
    start = len(y) / (20 * 5)  # where the default starts; a number stays
    with pytest.warns(ConvergenceWarning, match="clusters"):
        free.set_params(solver__cluster_penalty=start).fit(X, y)


class PenaltyRecorder(InProcessEngine):
    """Keeps the penalties that agents are told while they cluster."""

    def sum(self, task, broadcast):
        if task == "cluster_consensus":
            self.__dict__.setdefault("penalties", []).append(float(broadcast["penalty"]))
        return super().sum(task, broadcast)


@pytest.mark.parametrize(("told", "doubles"), [(None, True), (1.2, False)])
def test_a_cluster_penalty_doubles_if_it_was_left_open_and_a_number_stays(table, told, doubles):
    X, _, y = table
    engine = PenaltyRecorder(list(make_shards(X, y, np.arange(len(y)) % 20).values()), TASKS)
    solver = ADMM(cluster_penalty=told, max_rounds=100, tol=1e-6)
    train(engine, make_settings(solver=solver, unlabeled=None, ridge=1.0))
    assert engine.penalties[0] == len(y) / (20 * 5) == 1.2
    assert set(np.divide(engine.penalties[1:], engine.penalties[:-1])) == ({1.0, 2.0} if doubles else {1.0})


def test_refreshed_pairs_follow_algorithm_2_and_end_near_the_fixed_ones(table):
    X, truth, y = table
    fixed = SFRRegressor(n_agents=3, unlabeled=ICR(n_pairs=2000), random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="weights"):
        fresh = clone(fixed).set_params(solver=ADMM(refresh_pairs=True, max_rounds=150)).fit(X, y)
    np.testing.assert_allclose(fresh.predict(X), fixed.predict(X), atol=0.1 * truth.std())
    assert (fresh.predict(X) != fixed.predict(X)).any()
    bounds = [info.error_bound for info in fresh.history_ if info.stage == "weights"]
    assert min(bounds[20:]) > 1e-4  # the target moves every round


def test_refreshing_the_pairs_of_a_single_agent_is_a_warning(table):
    X, _, y = table
    with pytest.warns(UserWarning, match="refresh_pairs=True had no effect: a single agent"):
        asked = SFRRegressor(solver=ADMM(refresh_pairs=True), random_state=0).fit(X, y)
    np.testing.assert_array_equal(asked.predict(X), SFRRegressor(random_state=0).fit(X, y).predict(X))


@pytest.mark.parametrize("estimator", [SFRRegressor, LapWNNRegressor])
def test_a_warning_points_at_the_call_of_fit(table, estimator):
    X, _, y = table
    with pytest.warns(ConvergenceWarning) as caught:
        estimator(n_agents=3, solver=Conjugate(max_rounds=3), random_state=0).fit(X, y)
    assert {warning.filename for warning in caught} == {__file__}


def test_declared_ranges_are_used_and_not_asked_for(table):
    X, _, y = table
    low, high = X.min(axis=0), X.max(axis=0)
    asked = SFRRegressor(random_state=0).fit(X, y)
    told = SFRRegressor(scaling=RangeScaling(lower=low, upper=high), random_state=0).fit(X, y)
    np.testing.assert_array_equal(asked.predict(X), told.predict(X))

    def entry(model):
        return model.set_params(n_agents=2).fit(X, y).ledger_.entries["measure", "max"].bytes_up

    assert entry(SFRRegressor()) - entry(SFRRegressor(scaling=RangeScaling(lower=low, upper=high))) == 2 * 2 * 3 * 8
    wide = SFRRegressor(scaling=RangeScaling(lower=low - 10, upper=high + 10), random_state=0).fit(X, y)
    assert (wide.predict(X) != asked.predict(X)).any()
    np.testing.assert_array_equal(wide.model_.predictor.ranges.low, low - 10)


def test_on_round_is_told_every_round(table):
    X, _, y = table
    seen = []
    model = SFRRegressor(n_agents=2, on_round=seen.append, random_state=0).fit(X, y)
    assert seen == model.history_


def test_score_ignores_unlabelled_rows(table):
    X, truth, y = table
    model = SFRRegressor(random_state=0).fit(X, y)
    labeled = ~np.isnan(y)
    assert model.score(X, y) == pytest.approx(model.score(X[labeled], truth[labeled]))
    weight = np.arange(1.0, len(y) + 1)
    assert model.score(X, y, sample_weight=weight) == pytest.approx(
        model.score(X[labeled], truth[labeled], sample_weight=weight[labeled])
    )
    with pytest.raises(ValueError, match="score needs at least two labelled rows"):
        model.score(X, np.full(len(y), np.nan))


@pytest.mark.parametrize(("rows", "targets", "weights"), [(50, 120, None), (120, 50, None), (120, 120, 50)])
def test_score_refuses_lengths_that_differ(table, rows, targets, weights):
    X, _, y = table
    model = SFRRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X[:rows], y[:targets], sample_weight=None if weights is None else np.ones(weights))


def test_searches_and_cross_validation_work_with_unlabelled_rows(table):
    X, _, y = table
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(SFRRegressor(random_state=0), X, y, cv=folds, scoring=nrmse_scorer)
    assert np.isfinite(scores).all()
    assert (scores < 0).all()
    assert np.isfinite(cross_val_score(make_pipeline(StandardScaler(), SFRRegressor()), X, y, cv=folds)).all()
    search = GridSearchCV(SFRRegressor(random_state=0), {"ridge": [1e-3, 1e3]}, cv=folds, scoring=nrmse_scorer).fit(
        X, y
    )
    assert search.best_params_ == {"ridge": 1e-3}


def test_an_estimator_that_is_not_fitted_says_so():
    for ask in (lambda model: model.rules_, lambda model: model.save("m.dsfr"), lambda model: model.predict([[0.0]])):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            ask(SFRRegressor())
    assert not hasattr(SFRRegressor(), "rules_")


def test_columns_with_a_missing_value_of_their_own_are_read_everywhere(table, tmp_path):
    X, _, y = table
    rows = pd.DataFrame(X, columns=["a", "b", "c"]).astype("Float64")
    known = pd.Series(y, name="y").astype("Float64")  # NaN becomes NA
    assert known.isna().any()
    estimator = SFRRegressor(random_state=0).fit(rows, known)
    model = estimator.model_
    np.testing.assert_array_equal(model.predict(rows), model.predict(X))
    assert nrmse(known, model.predict(rows)) == nrmse(y, model.predict(X))
    assert model.simplify(rows, known, similarity=0.3).nrmse is not None
    assert write_report(model, tmp_path / "r.html", rows, known).exists()
    assert plot.predictions(model, rows, known) is not None
    gap = rows.assign(b=rows["b"].round().astype("Int64").mask(rows.index == 3), c=True)
    assert np.isfinite(model.predict(gap)).all()
    with pytest.raises(ValueError, match="X cannot be read as numbers"):
        model.predict(rows.assign(a="text"))


def test_nrmse_is_the_paper_s():
    y = np.array([1.0, 2.0, 4.0, np.nan])
    p = np.array([1.5, 2.0, 3.0, 100.0])
    assert nrmse(y, p) == pytest.approx(np.sqrt((0.25 + 0.0 + 1.0) / 3 / np.var(y[:3], ddof=1)))
    with pytest.raises(ValueError, match="at least two labelled rows"):
        nrmse([1.0, np.nan], [1.0, 1.0])
    with pytest.raises(ValueError, match="different targets"):
        nrmse([1.0, 1.0], [1.0, 1.0])
    with pytest.raises(ValueError, match="2 rows and y_pred 3"):
        nrmse([1.0, 2.0], [1.0, 1.0, 1.0])


def test_agents_with_skewed_shares_agree_with_the_pooled_fit(table):
    X, _, y = table
    owners = owners_of(5, len(y), 6, skew=0.3)
    admm = SFRRegressor(unlabeled=None, random_state=0).fit(X, y, agents=owners)
    exact = SFRRegressor(unlabeled=None, solver="sums", random_state=0).fit(X, y, agents=owners)
    assert nrmse(exact.predict(X), admm.predict(X)) < 0.1


@pytest.mark.parametrize("estimator", [SFRRegressor, LapWNNRegressor])
def test_a_graph_gives_the_model_of_direct_messages(table, estimator):
    X, _, y = table
    direct = estimator(n_agents=4, solver="sums", random_state=0).fit(X, y)
    ring = estimator(n_agents=4, solver="sums", engine=InProcess(topology="ring"), random_state=0).fit(X, y)
    np.testing.assert_allclose(ring.predict(X), direct.predict(X), rtol=1e-8)
    assert ring.ledger_.messages < direct.ledger_.messages + 8  # one agent is the root, and a tree must be built
    assert ring.present_ == ring.agents_ == ["0", "1", "2", "3"]


@pytest.mark.parametrize("estimator", [SFRRegressor, LapWNNRegressor])
def test_without_a_coordinator_every_agent_has_a_model(table, estimator, tmp_path):
    X, _, y = table
    owners = np.array(["north", "east", "south"])[np.arange(len(y)) % 3]
    links = [("north", "east"), ("east", "south")]
    model = estimator(solver="decentralized", engine=InProcess(topology=links), random_state=0).fit(X, y, agents=owners)
    assert list(model.agent_models_) == ["east", "north", "south"]
    assert model.model_ is not model.agent_models_["north"]
    reloaded = load(model.agent_models_["north"].save(tmp_path / "north.dsfr"))
    np.testing.assert_array_equal(reloaded.predict(X), model.predict(X))
    assert not hasattr(estimator(random_state=0).fit(X, y), "agent_models_")


def test_a_refit_with_a_coordinator_has_no_agent_models(table):
    X, _, y = table
    ring = InProcess(topology="ring")
    model = SFRRegressor(n_agents=3, solver="decentralized", engine=ring, random_state=0).fit(X, y)
    assert not hasattr(model.set_params(solver="sums").fit(X, y), "agent_models_")


def test_a_missing_agent_is_told(table):
    X, _, y = table
    faults = Faults(absences=[Absence("2", 5)])
    model = SFRRegressor(n_agents=4, engine=InProcess(faults=faults), random_state=0)
    with pytest.warns(UserWarning, match=r"1 of 4 agents were missing in the last round: 2\. The model is that of the"):
        model.fit(X, y)
    assert model.present_ == ["0", "1", "3"]
    assert model.ledger_.agents["2"].rounds == 4
    with pytest.raises(EngineError, match=r"only 3 of 4 agents answered.*min_agents is 4\. Missing: 2"):
        model.set_params(engine__min_agents=4).fit(X, y)


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"engine__topology": "hexagon"}, "'hexagon' is neither a file nor one of"),
        ({"engine__topology": [(0, 1), (2, 3)]}, "its components are"),
        ({"engine__topology": 3}, "topology=3 must be"),
        ({"engine__faults": 0.1}, r"faults=0.1 must be dsfr.Faults\(...\), or None"),
        ({"engine__min_agents": 5}, "min_agents=5 must be 1 to 4"),
        ({"engine__min_agents": "two"}, "min_agents='two' must be a whole number >= 1"),
        ({"solver": "decentralized"}, "give the engine a topology"),
    ],
)
def test_networks_that_cannot_be_are_refused(table, wrong, match):
    X, _, y = table
    with pytest.raises(ValueError, match=match):
        SFRRegressor(n_agents=4, random_state=0).set_params(**wrong).fit(X, y)


@pytest.mark.parametrize(
    ("column", "refused", "shown"),
    [
        (["low", "high"] * 10, None, "'low' in row 0"),
        (pd.Categorical(["1", "high"] * 10), None, "'high' in row 1"),
        (pd.date_range("2020", periods=20), "holds dates: turn it into numbers", "Timestamp"),
        ([1.0, 2.0 + 1.0j] * 10, "holds values of type complex", r"\(1\+0j\) in row 0"),
        (["low", *range(19)], "has text where a number is needed: 'low' in row 0", "'low' in row 0"),
    ],
)
def test_text_in_a_data_frame_is_a_category_or_refused_with_its_column(column, refused, shown):
    X = pd.DataFrame({"speed": np.arange(20.0), "kind": column})
    if refused is not None:
        with pytest.raises(ValueError, match=f"column 'kind' {refused}.*X.drop"):
            SFRRegressor(n_rules=2).fit(X, np.arange(20.0))
    fitted = SFRRegressor(n_rules=2).fit(X.assign(kind=np.arange(20.0)[::-1]), np.arange(20.0))
    with pytest.raises(ValueError, match=f"column 'kind' of X has {shown}"):
        fitted.predict(X)


def test_text_in_arrays_is_refused_with_its_place():
    X, y = np.arange(10.0).reshape(5, 2), np.arange(5.0)
    odd = X.astype(object)
    odd[3, 1] = "high"
    fitted = SFRRegressor(n_rules=2).fit(X, y)
    for call in (lambda: SFRRegressor(n_rules=2).fit(odd.tolist(), y), lambda: fitted.predict(odd)):
        with pytest.raises(ValueError, match=r"X has 'high' in row 3, column 1, which is not a number.*data frame"):
            call()
    for targets in (["1", "2", "low", "3", "4"], pd.Series([1.0, 2.0, "low", 3.0, 4.0])):
        with pytest.raises(ValueError, match=r"y has 'low' in row 2, which is not a number.*an unlabelled row"):
            SFRRegressor(n_rules=2).fit(X, targets)
    texts = SFRRegressor(n_rules=2, random_state=0).fit(X.astype(str), y.astype(str))
    np.testing.assert_array_equal(texts.predict(X), SFRRegressor(n_rules=2, random_state=0).fit(X, y).predict(X))


def test_numbers_in_a_column_of_objects_are_numbers():
    X = pd.DataFrame({"speed": np.arange(20.0), "kind": pd.Series([str(n) for n in range(20)], dtype=object)})
    text = SFRRegressor(n_rules=2, random_state=0).fit(X, np.arange(20.0)).predict(X)
    np.testing.assert_array_equal(
        text, SFRRegressor(n_rules=2, random_state=0).fit(X.astype(float), np.arange(20.0)).predict(X.astype(float))
    )


def test_separate_fits_of_several_targets_have_the_same_clusters(table):
    X, truth, y = table
    other = np.where(np.arange(len(y)) % 4 == 0, truth**2, np.nan)
    first, second = (SFRRegressor(random_state=0).fit(X, target).model_.predictor.basis for target in (y, other))
    np.testing.assert_array_equal(first.centers, second.centers)
    np.testing.assert_array_equal(first.widths, second.widths)
    with pytest.raises(ValueError, match="y has 2 columns, and an estimator has one target: fit one estimator"):
        SFRRegressor().fit(X, np.column_stack([y, other]))


def test_an_index_is_kept_by_the_recipe_of_the_page(table):
    X, _, y = table
    frame = pd.DataFrame(X, index=np.arange(len(X))[::-1] + 7)
    model = SFRRegressor(uncertainty=True, random_state=0).fit(frame, y)
    interval = pd.DataFrame(model.predict_interval(frame)._asdict(), index=frame.index)
    assert list(interval.columns) == ["low", "high"]
    assert isinstance(model.predict(frame), np.ndarray)
    row = frame.loc[[9]]
    assert interval.loc[9, "low"] == pytest.approx(model.predict_interval(row).low[0])
