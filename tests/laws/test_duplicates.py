"""Duplicate rows change nothing where labels choose: neither predictions nor intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_diabetes

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, InProcess
from dsfr.core.arrays import SUM_ROWS
from dsfr.core.prediction.scores import CAUTION
from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, Settings, make_shards, train
from dsfr.training.rows import ArrayRows, DistinctRows
from tests.laws.test_streaming import write_files
from tests.tables import make_table, owners_of, train_on
from tests.unit.test_duplicates import honest_tables

seeds = st.integers(0, 10_000)
told = st.fixed_dictionaries(
    {
        "tune": st.sampled_from(["evidence", "loo"]),
        "n_models": st.integers(1, 3),
        "unlabeled": st.sampled_from(["icr", "graph", None]),
        "scaling": st.sampled_from(["range", "robust"]),
        "relevance": st.sampled_from(["evidence", "slopes", None]),
        "pairs": st.sampled_from(["random", "local"]),
        "uncertainty": st.booleans(),
    }
)


def with_duplicates(seed, n_rows, most):
    """Numbers of rows, with up to ``most`` of each: the first ones in order, duplicates anywhere behind the first."""
    rng = np.random.default_rng(seed)
    duplicates = np.repeat(np.arange(n_rows), rng.integers(0, most, n_rows))
    places = np.concatenate([np.arange(n_rows), duplicates + rng.uniform(0.0, n_rows, len(duplicates))])
    return np.concatenate([np.arange(n_rows), duplicates])[np.argsort(places, kind="stable")]


def outcome(training):
    """All numbers that predictions and intervals depend on."""
    members = [member.predictor for member in training.mixture.members]
    arrays = [array for of in members for array in (of.weights, *of.basis.arrays().values())]
    arrays.append(np.array([member.share for member in training.mixture.members]))
    if training.mixture.scores is not None:
        arrays += [training.mixture.scores.thresholds, training.mixture.scores.counts]
    return np.concatenate([array.ravel() for array in arrays])


@pytest.mark.slow
@given(seeds, told, st.integers(2, 4), st.integers(1, 3))
@settings(max_examples=20)
def test_duplicates_at_their_owner_change_nothing_to_the_last_bit(seed, told, most, n_agents):
    X, _, y = make_table(seed, n_rows=60, n_labels=20)
    owners = owners_of(seed, len(y), n_agents)
    rows = with_duplicates(seed, len(y), most)
    told = {"n_rules": 3, "solver": "sums", "max_rounds": 30, "seed": seed, **told}
    once, _ = train_on(X, y, owners, **told)
    repeated, _ = train_on(X[rows], y[rows], owners[rows], **told)
    np.testing.assert_array_equal(outcome(repeated), outcome(once))
    assert repeated.n_duplicates == len(rows) - len(y)
    assert (repeated.n_samples, repeated.n_labeled) == (once.n_samples, once.n_labeled)


@given(seeds, told, st.floats(-9.0, -4.0), st.integers(1, 2))
@settings(max_examples=20)
@pytest.mark.slow
def test_labelled_rows_with_tiny_noise_change_nothing_either(seed, told, power, n_agents):
    X, _, y = make_table(seed, n_rows=60, n_labels=40)
    owners = np.array(["a", "b"])[np.arange(60) % n_agents]
    labeled = np.flatnonzero(~np.isnan(y))
    rng = np.random.default_rng(seed)
    noise = 10.0**power * rng.uniform(-1.0, 1.0, (len(labeled), 4))
    near = X[labeled] + noise[:, :3] * X.std(axis=0)
    # Within the ranges, or these would be longer by as much.
    near = np.clip(near, X.min(axis=0), X.max(axis=0))
    target = np.clip(y[labeled] + noise[:, 3] * np.nanstd(y), np.nanmin(y), np.nanmax(y))
    told = {"n_rules": 3, "solver": "sums", "max_rounds": 30, "seed": seed, **told}
    once, _ = train_on(X, y, owners, **told)
    repeated, _ = train_on(np.r_[X, near], np.r_[y, target], np.r_[owners, owners[labeled]], **told)
    np.testing.assert_array_equal(outcome(repeated), outcome(once))
    assert repeated.n_duplicates == len(labeled)


@pytest.mark.slow
@given(seeds, told, st.integers(1, 20))
@settings(max_examples=20)
def test_a_row_that_two_owners_hold_is_as_if_one_of_them_held_it(seed, told, n_shared):
    X, _, y = make_table(seed, n_rows=60, n_labels=24)
    owners = np.array(["a", "b"])[np.arange(60) % 2]
    shared = np.flatnonzero(~np.isnan(y) & (owners == "a"))[:n_shared]
    told = {"n_rules": 3, "solver": "sums", "max_rounds": 30, "seed": seed, **told}
    both, _ = train_on(np.r_[X, X[shared]], np.r_[y, y[shared]], np.r_[owners, np.full(len(shared), "b")], **told)
    assert both.n_duplicates == len(shared)
    with_a, _ = train_on(X, y, owners, **told)
    moved = np.setdiff1d(np.arange(60), shared)
    with_b, _ = train_on(
        np.r_[X[moved], X[shared]], np.r_[y[moved], y[shared]], np.r_[owners[moved], np.full(len(shared), "b")], **told
    )
    assert any(np.array_equal(outcome(both), outcome(one)) for one in (with_a, with_b))


@given(seeds, st.sampled_from(sorted(honest_tables(0, 100))), st.integers(1, 3), told)
@settings(max_examples=15)
def test_equal_rows_by_chance_all_count(seed, name, n_agents, told):
    X, y = honest_tables(seed, 240)[name]
    told = {"n_rules": 2, "solver": "sums", "max_rounds": 10, **told, "n_models": 1, "unlabeled": None}
    found, _ = train_on(X, y, np.arange(len(y)) % n_agents, **told)
    assert (found.n_duplicates, found.n_labeled) == (0, len(y))


@given(seeds, st.integers(2, 4), st.sampled_from(["evidence", "loo"]))
@settings(max_examples=15)
def test_a_table_of_ratings_that_was_repeated_counts_once(seed, times, tune):
    X, y = honest_tables(seed, 150)["ratings"]
    told = {"tune": tune, "n_rules": 3, "uncertainty": True, "max_rounds": 20}
    once, _ = train_on(X, y, np.zeros(150), **told)
    repeated, _ = train_on(np.tile(X, (times, 1)), np.tile(y, times), np.zeros(times * 150), **told)
    np.testing.assert_array_equal(outcome(repeated), outcome(once))


@given(seeds, st.sampled_from(["evidence", "loo"]), st.integers(2, 3), st.floats(0.0, 1e-6))
@settings(max_examples=20)
def test_rows_with_equal_features_are_left_out_together(seed, tune, times, noise):
    """Their errors and deviations are as large as those of a model that has seen none of the group."""
    X, full, _ = make_table(seed, n_rows=30, n_labels=30, noise=3.0)
    rng = np.random.default_rng(seed)
    rows = np.tile(X, (times, 1))
    rows[30:] *= 1.0 + noise * rng.uniform(-1.0, 1.0, rows[30:].shape)
    # Far enough apart to be no near duplicates.
    y = np.tile(full, times) + np.repeat(3.0 * np.arange(times), 30) * rng.choice([-1.0, 1.0], 30 * times)
    found, _ = train_on(rows, y, np.zeros(len(y)), tune=tune, uncertainty=True, n_rules=3, unlabeled=None)
    member = found.mixture.members[0]
    of = member.predictor
    H = of.basis.features((rows - of.ranges.midpoints) / of.ranges.half_widths)
    scaled, precision = (y - of.target_mean) / of.target_scale, member.posterior.factor.T @ member.posterior.factor
    left, deviations = np.empty(len(y)), np.empty(len(y))
    for i in range(30):
        group = np.arange(i, len(y), 30)
        others = np.setdiff1d(np.arange(len(y)), group)
        without = np.linalg.inv(precision - H[group].T @ H[group])
        weights = without @ (H[others].T @ scaled[others])
        left[group] = np.abs(scaled[group] - H[group] @ weights) * of.target_scale
        deviations[group] = member.posterior.noise * np.sqrt(1.0 + np.sum(H[group] @ without * H[group], axis=1))
    assert found.n_duplicates == 0
    typical = np.sqrt(np.mean(deviations**2))
    near = 1e-2 if noise else 1e-6
    assert found.mixture.scores.typical_deviation == pytest.approx(typical, rel=near)
    share = CAUTION / (len(y) + CAUTION)
    plain = (found.mixture.scores.deviation / of.target_scale**share) ** (1.0 / (1.0 - share))
    factor = max(found.mixture.scores.deviation / plain, 1.0)
    largest = factor * (left / deviations).max() * typical
    assert found.mixture.scores.thresholds[-1] == pytest.approx(largest, rel=near)


def test_without_choice_by_labels_duplicates_count_as_often_as_they_occur():
    X, _, y = make_table(0)
    owners = owners_of(0, len(y), 2)
    told = {"solver": "sums", "n_rules": 3}
    once, engine = train_on(X, y, owners, **told)
    twice, _ = train_on(np.r_[X, X], np.r_[y, y], np.r_[owners, owners], **told)
    assert not any("duplicates" in task for task, _ in engine.ledger.entries)
    assert (twice.n_duplicates, twice.n_labeled) == (0, 2 * once.n_labeled)


def test_what_one_training_has_found_is_forgotten_by_the_next():
    X, _, y = make_table(0)
    shards = make_shards(np.r_[X, X], np.r_[y, y], np.zeros(2 * len(y)))
    engine = InProcessEngine(list(shards.values()), TASKS)
    assert train(engine, Settings(tune="evidence")).n_labeled == 30
    assert train(engine, Settings()).n_labeled == 60
    assert train(engine, Settings(tune="evidence")).n_labeled == 30


@pytest.mark.parametrize("topology", [None, "ring"])
def test_a_table_joined_with_itself_gives_the_same_model_over_owners(topology):
    X, _, y = make_table(5, n_rows=90, n_labels=40)
    owners = owners_of(5, len(y), 3)
    told = {"ensemble": Ensemble(n_models=2), "engine": InProcess(topology=topology), "random_state": 0}
    once = AutoSFRRegressor(**told).fit(X, y, agents=owners)
    with pytest.warns(UserWarning, match="90 of 180 rows are duplicates"):
        joined = AutoSFRRegressor(**told).fit(np.r_[X, X], np.r_[y, y], agents=np.r_[owners, owners])
    np.testing.assert_array_equal(joined.predict(X), once.predict(X))
    np.testing.assert_array_equal(joined.predict_interval(X), once.predict_interval(X))
    assert (once.n_duplicates_, joined.n_duplicates_) == (0, 90)


def test_duplicates_that_stream_from_files_count_once(tmp_path):
    X, _, y = make_table(6, n_rows=80, n_labels=30)
    folder = write_files(tmp_path / "table", np.r_[X, X], np.r_[y, y])
    told = {"ensemble": Ensemble(n_models=2), "random_state": 0}
    with pytest.warns(UserWarning, match="80 of 160 rows are duplicates"):
        streamed = AutoSFRRegressor(**told).fit(dsfr.scan(folder, target="y"))
    once = AutoSFRRegressor(**told).fit(X, y)
    np.testing.assert_array_equal(streamed.model_.predict_rows(X), once.model_.predict_rows(X))


def test_rows_without_duplicates_come_in_whole_chunks(monkeypatch):
    monkeypatch.setattr("dsfr.training.rows.LIMITED_ROWS", 2 * SUM_ROWS)
    n = 7 * SUM_ROWS + 5
    X, y = np.arange(2.0 * n).reshape(n, 2), np.arange(float(n))
    kept = np.random.default_rng(0).random(n) < 0.6
    rows = DistinctRows(ArrayRows(X, y), np.packbits(kept), int(kept.sum()), int(kept.sum()))
    sizes = [len(targets) for _, targets in rows.batches()]
    assert len(sizes) > 2
    assert all(size % SUM_ROWS == 0 for size in sizes[:-1])
    np.testing.assert_array_equal(np.concatenate([part for part, _ in rows.batches()]), X[kept])
    np.testing.assert_array_equal(np.concatenate([targets for _, targets in rows.batches()]), y[kept])


@pytest.mark.parametrize("n_agents", [1, 5])
def test_diabetes_joined_with_itself_is_predicted_as_before(n_agents):
    """A real table whose columns all repeat values; over five agents most duplicates are with different ones."""
    X, t = load_diabetes(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(t))
    y = np.where(np.isin(np.arange(len(t)), order[:50]), t, np.nan)
    seen, test = np.sort(np.r_[order[:50], order[192:]]), order[50:192]
    told = {"n_agents": n_agents, "random_state": 0}
    once = AutoSFRRegressor(**told).fit(X[seen], y[seen])
    with pytest.warns(UserWarning, match="duplicates"):
        joined = AutoSFRRegressor(**told).fit(np.r_[X[seen], X[seen]], np.r_[y[seen], y[seen]])
    width = once.model_.half_width(0.9)
    if n_agents == 1:
        np.testing.assert_array_equal(joined.predict(X), once.predict(X))
    assert joined.model_.half_width(0.9) == pytest.approx(width, rel=0.1)
    assert np.sqrt(np.mean((joined.predict(X[test]) - once.predict(X[test])) ** 2)) < 0.15 * t.std()
    low, high = joined.predict_interval(X[test])
    assert 0.8 < np.mean((low <= t[test]) & (t[test] <= high)) < 1.0
