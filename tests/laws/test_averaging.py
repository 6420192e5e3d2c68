"""Robust scaling, relevance, several rule bases and uncertainty: from sums, the same for any split of the rows."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dsfr
from dsfr import AutoSFRRegressor, Ensemble, SFRRegressor, load
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.prediction.stacking import LeftOut
from dsfr.core.scaling.affine import Ranges
from dsfr.core.scaling.quantiles import N_THRESHOLDS
from dsfr.core.solve.statistics import solve_weights
from dsfr.engines import InProcessEngine
from dsfr.training import TASKS, make_shards, train
from dsfr.training.scaling.robust import agree_scaling
from dsfr.training.tasks.messages import unpack_basis, unpack_statistics
from tests.tables import Listener, make_settings, make_table, owners_of, train_on

seeds = st.integers(0, 10_000)
AUTO = {
    "scaling": "robust",
    "firing": "mean",
    "relevance": "evidence",
    "tune": "evidence",
    "n_models": 3,
    "uncertainty": True,
    "solver": "sums",
    "tol": 1e-3,
    "n_rules": 3,
}


def population_of(X, y, owners, serialize=False, **told):
    engine = InProcessEngine(list(make_shards(X, y, owners).values()), TASKS, serialize=serialize)
    return agree_scaling(engine, make_settings(scaling="robust", **told))


@settings(max_examples=20)
@given(seeds, st.integers(2, 6))
def test_limits_and_deviations_do_not_depend_on_who_has_which_rows(seed, n_agents):
    X, _, y = make_table(seed)
    whole = population_of(X, y, np.zeros(len(y)))
    split = population_of(X, y, owners_of(seed, len(y), n_agents), serialize=True)
    np.testing.assert_array_equal(split.limits.low, whole.limits.low)
    np.testing.assert_array_equal(split.limits.high, whole.limits.high)
    np.testing.assert_allclose(split.ranges.low, whole.ranges.low, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(split.target.deviation, whole.target.deviation, rtol=1e-9)


@settings(max_examples=20)
@given(seeds, st.integers(20, 200))
def test_limits_are_beyond_the_quantiles_of_less_than_one_label_by_their_distance(seed, n_labels):
    X, _, y = make_table(seed, n_rows=400, n_labels=n_labels)
    found = population_of(X, y, np.zeros(len(y)))
    cut = min(1.0 / n_labels, 0.05)
    for column, low, high in zip(X.T, found.limits.low, found.limits.high, strict=True):
        first, last = np.quantile(column, [cut, 1.0 - cut], method="inverted_cdf")
        ends = np.array([column.min(), column.max()]) + 0.1 * np.ptp(column) * np.array([-1.0, 1.0])
        expected = [max(2.0 * first - last, ends[0]), min(2.0 * last - first, ends[1])]
        np.testing.assert_allclose([low, high], expected, atol=np.ptp(column) * 1e-5)
        inside = np.clip(column, low, high)
        middle, half = (found.ranges.midpoints, found.ranges.half_widths)
        j = int(np.flatnonzero((column == X.T).all(axis=1))[0])
        np.testing.assert_allclose([middle[j], half[j]], [inside.mean(), inside.std()], rtol=1e-6)


def errors_by_scaling(X, y, truth, others=slice(None)):
    found = {}
    for scaling in ("range", "robust"):
        model = SFRRegressor(scaling=scaling, tune="evidence", random_state=0).fit(X, y)
        found[scaling] = dsfr.nrmse(truth[others], model.predict(X)[others])
    return found


@pytest.mark.parametrize("odd", [1e9, 1e98, -1e99])
def test_one_odd_row_does_not_spoil_a_robust_fit(odd):
    X, truth, y = make_table(3, n_rows=300, n_labels=60)
    row = int(np.flatnonzero(np.isnan(y))[0])
    X[row] = odd
    errors = errors_by_scaling(X, y, truth, others=np.arange(300) != row)
    assert errors["robust"] < 0.5
    assert errors["range"] > 1.5 * errors["robust"]


@pytest.mark.filterwarnings("ignore:a target of")
def test_one_odd_label_has_bounded_weight_in_a_robust_fit():
    X, truth, y = make_table(3, n_rows=300, n_labels=60)
    y[int(np.flatnonzero(~np.isnan(y))[0])] = 1e7
    errors = errors_by_scaling(X, y, truth)
    assert errors["robust"] < 1.5
    assert errors["range"] > 100.0 * errors["robust"]


@pytest.mark.parametrize("odd", [1e98, -1e9, 1e99])
def test_a_label_that_is_hardly_meant_is_named_with_what_it_counts_as(odd):
    X, _, y = make_table(3, n_rows=300, n_labels=60)
    others = np.nanmax(np.abs(y))
    y[int(np.flatnonzero(~np.isnan(y))[0])] = odd
    with pytest.warns(UserWarning, match="far off all others") as caught:
        model = SFRRegressor(scaling="robust", tune="evidence", random_state=0).fit(X, y, agents=owners_of(3, 300, 3))
    told = re.search(
        r"a target of (\S+) is far off all others and counted as (\S+)\. ", str(caught[0].message)
    ).groups()
    assert float(told[0]) == pytest.approx(odd, rel=1e-5)
    assert abs(float(told[1])) < 100.0 * others
    assert np.abs(model.predict(X)).max() < 1000.0 * others


@pytest.mark.parametrize("n_ones", [1, 4])
def test_a_column_with_hardly_any_ones_still_counts(n_ones):
    """A column with fewer ones than one in as many rows as there are labels was once dropped in silence."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=600), np.zeros(600)])
    X[:n_ones, 1] = 1.0
    truth = X[:, 0] + 10.0 * X[:, 1]
    y = np.where(np.arange(600) < 50, truth + 0.1 * rng.normal(size=600), np.nan)
    model = AutoSFRRegressor(random_state=0).fit(X, y, agents=owners_of(0, 600, 3))
    change = np.diff(model.predict(np.array([[0.0, 0.0], [0.0, 1.0]])))[0]
    assert 5.0 < change < 15.0


@settings(max_examples=10)
@given(seeds)
def test_limits_cost_a_linear_target_next_to_nothing(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(500, 4))
    truth = X @ rng.normal(size=4)
    y = np.where(np.arange(500) < 50, truth, np.nan)
    model = AutoSFRRegressor(ensemble=Ensemble(n_models=2), random_state=seed).fit(X, y)
    assert dsfr.nrmse(truth, model.predict(X)) < 0.01


def told_tasks(X, y):
    """Broadcasts of the tasks whose contributions must add up, as a training would send them."""
    rng = np.random.default_rng(0)
    d = X.shape[1]
    rules = Rules(rng.uniform(-1, 1, (2, d)), rng.uniform(0.5, 2, (2, d)))
    p = rules.n_outputs
    known = y[~np.isnan(y)]
    ranges = Ranges.of(X)
    common = {"low": ranges.low, "high": ranges.high, "target_mean": np.float64(known.mean())}
    common = {name: np.asarray(value) for name, value in (common | {"target_scale": np.float64(known.std())}).items()}
    factor = np.linalg.cholesky(60.0 * np.eye(p) + 0.1).T
    bases = {f"{name}_{i}": array for i in range(2) for name, array in rules.arrays().items()}
    bases |= {f"weights_{i}": rng.normal(size=p) for i in range(2)} | {f"factor_{i}": factor for i in range(2)}
    bases |= {f"noise_{i}": np.asarray(0.5) for i in range(2)}
    mixture = common | bases | {"shares": np.array([0.3, 0.7])}
    thresholds = np.stack([np.linspace(ranges.low, ranges.high, N_THRESHOLDS, axis=1)] * 2)
    sample = {"sample": np.asarray(0.5)}
    target = np.stack([np.linspace(known.min(), known.max(), N_THRESHOLDS)] * 2)
    return {
        "count_below": {"thresholds": thresholds, "target_thresholds": target} | sample,
        "moments_within_limits": {
            "limit_low": np.quantile(X, 0.1, axis=0),
            "limit_high": np.quantile(X, 0.9, axis=0),
            "target_limits": np.quantile(known, [0.1, 0.9]),
        },
        "polynomial_statistics": common,
        "square_slopes": {name: common[name] for name in ("low", "high")}
        | rules.arrays()
        | {"weights": rng.normal(size=p)}
        | sample,
        "stack": mixture,
        "compare": {name: array for name, array in mixture.items() if not name.startswith(("factor", "noise"))}
        | sample,
        "statistics": common | rules.arrays(),
    }


ADDED_UP = ["count_below", "moments_within_limits", "polynomial_statistics", "square_slopes", "stack", "compare"]


@settings(max_examples=15)
@given(seeds, st.integers(2, 5), st.sampled_from(ADDED_UP))
def test_contributions_of_a_split_add_up_to_those_of_the_whole(seed, n_agents, task):
    X, _, y = make_table(seed)
    told = told_tasks(X, y)[task]
    whole = InProcessEngine(list(make_shards(X, y, np.zeros(len(y))).values()), TASKS).sum(task, told)
    owners = owners_of(seed, len(y), n_agents, skew=0.5)
    split = InProcessEngine(list(make_shards(X, y, owners).values()), TASKS, serialize=True).sum(task, told)
    assert whole.keys() == split.keys()
    for name, array in whole.items():
        np.testing.assert_allclose(split[name], array, rtol=1e-9, atol=1e-9)


def test_what_is_near_is_judged_in_the_stretched_space():
    X, _, y = make_table(0)
    pairs = {"n_pairs": np.asarray(50), "most_pairs": np.asarray(50), "mix_concentration": np.asarray(0.75)}
    told = told_tasks(X, y)["statistics"] | pairs
    told |= {"near": np.asarray(1.0), "target_mean": np.asarray(0.0), "target_scale": np.asarray(1.0)}
    engine = InProcessEngine(list(make_shards(X, y, np.zeros(len(y))).values()), TASKS)
    engine.max("measure", {"seed": np.asarray(0)})
    even, narrow = (
        engine.sum("statistics", told | {"stretch": np.array(stretch)})["unlabeled_gram"]
        for stretch in ([1.0, 1.0, 1.0], [1.0, 1e-3, 1e-3])
    )
    plain = engine.sum("statistics", told)["unlabeled_gram"]
    np.testing.assert_array_equal(even, plain)
    assert not np.allclose(narrow, plain, rtol=1e-3)


@settings(max_examples=8)
@given(seeds, st.integers(2, 5), st.sampled_from(["evidence", "loo"]))
def test_messages_as_bytes_and_the_order_of_agents_make_no_difference(seed, n_agents, tune):
    X, _, y = make_table(seed)
    owners = owners_of(seed, len(y), n_agents)
    told = make_settings(**AUTO | {"tune": tune}, seed=seed)
    shards = make_shards(X, y, owners)
    plain = train(InProcessEngine(dict(shards), TASKS, serialize=False), told)
    bytes_ = train(InProcessEngine(dict(reversed(shards.items())), TASKS, serialize=True), told)
    expected, found = plain.mixture.predict(X), bytes_.mixture.predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * np.ptp(expected))


@settings(max_examples=6)
@given(seeds)
def test_averages_over_agents_are_as_good_as_those_of_one(seed):
    X, truth, y = make_table(seed, n_rows=300, n_labels=60)
    alone = train_on(X, y, np.zeros(len(y)), seed=seed, **AUTO)[0].mixture.predict(X)
    split = train_on(X, y, owners_of(seed, len(y), 5), seed=seed, **AUTO)[0].mixture.predict(X)
    assert dsfr.nrmse(truth, split) < dsfr.nrmse(truth, alone) + 0.1


def test_shares_sum_to_one_and_predictions_are_their_average():
    X, _, y = make_table(1)
    training, _ = train_on(X, y, np.zeros(len(y)), seed=1, **AUTO)
    members = training.mixture.members
    assert len(members) == 3
    assert sum(member.share for member in members) == pytest.approx(1.0)
    average = sum(member.share * member.predictor.predict(X) for member in members)
    np.testing.assert_allclose(training.mixture.predict(X), average, rtol=1e-12)
    assert [len(member.predictor.basis.centers) for member in members] == [3, 3, 6]
    for told, member in zip(training.models, members, strict=True):
        gap = training.mixture.predict(X) - member.predictor.predict(X)
        assert told["agreement"] == pytest.approx(1.0 - np.var(gap) / np.var(average), abs=1e-9)


@pytest.mark.slow
@settings(max_examples=10)
@given(seeds)
def test_leave_one_out_tuning_tells_the_error_of_real_refits(seed):
    X, _, y = make_table(seed, n_labels=12)
    engine = Listener(make_shards(X, y, owners_of(seed, len(y), 3)))
    tuned = train(engine, make_settings(tune="loo", n_rules=2, seed=seed)).tuned
    assert engine.ledger.entries["left_out_errors", "sum"].rounds == 2
    asked, errors = ([pair[i] for pair in engine.heard["left_out_errors"]] for i in (0, 1))
    best = [int(answer["errors"].argmin()) for answer in errors]
    np.testing.assert_allclose(asked[1]["candidates"][best[1]], [tuned.unlabeled_weight, tuned.ridge])
    assert np.isclose(asked[1]["candidates"], asked[0]["candidates"][best[0]]).all(axis=1).any()
    [(told, summed)] = engine.heard["statistics"]
    total = unpack_statistics(summed)
    basis, labeled = unpack_basis(told), ~np.isnan(y)
    H = basis.features((X[labeled] - Ranges.of(X).midpoints) / Ranges.of(X).half_widths)
    targets = (y[labeled] - float(told["target_mean"])) / float(told["target_scale"])
    errors = []
    for i in range(len(targets)):
        rest = np.arange(len(targets)) != i
        part = type(total)(
            H[rest].T @ H[rest], H[rest].T @ targets[rest], H[rest].sum(axis=0), total.unlabeled_gram, 11.0, 0.0, 0.0
        )
        errors.append(targets[i] - H[i] @ solve_weights(part.quadratic(tuned.unlabeled_weight), tuned.ridge))
    assert tuned.loo_error == pytest.approx(np.sqrt(np.mean(np.square(errors))), rel=1e-5)


@pytest.mark.filterwarnings("ignore:a target of")
@pytest.mark.parametrize("odd", [1e3, 1e7, 1e12, 1e98])
def test_one_odd_label_does_not_make_intervals_coarse(odd):
    X, _, y = make_table(3, n_rows=300, n_labels=60)
    y[int(np.flatnonzero(~np.isnan(y))[0])] = odd * np.nanstd(y)
    model = AutoSFRRegressor(ensemble=Ensemble(n_models=2), random_state=0)
    errors = []

    class Overheard(InProcessEngine):
        def max(self, task, broadcast):
            told = super().max(task, broadcast)
            if task == "score":
                errors.extend(np.concatenate([agent.memory["errors"] for agent in self._agents.values()]))
            return told

    shards = make_shards(X, y, owners_of(3, len(y), 3))
    model.fit_over(lambda _: Overheard(shards, TASKS), [f"x{j}" for j in range(X.shape[1])])
    assert len(errors) == 60
    mixture = model.model_.mixture
    typical = mixture.scores.typical_deviation / mixture.strongest.target_scale
    for coverage in (0.5, 0.8, 0.9):
        exact = typical * np.sort(errors)[int(np.ceil(coverage * 61.0)) - 1]
        assert exact <= model.model_.half_width(coverage) <= 1.1 * exact


def test_a_saved_average_predicts_the_same_bits(tmp_path):
    X, _, y = make_table(5)
    model = AutoSFRRegressor(ensemble=Ensemble(n_models=3), random_state=0).fit(X, y)
    loaded = load(model.save(tmp_path / "model.dsfr"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.deviations(X), model.predict(X, return_std=True)[1])
    assert loaded.half_width(0.8) == model.model_.half_width(0.8)
    assert loaded.training["models"] == model.models_
    assert len(loaded.members) == 3
    np.testing.assert_array_equal(loaded.predictor.weights, model.model_.predictor.weights)


def test_rows_beyond_the_limits_are_predicted_as_if_at_them():
    X, _, y = make_table(2)
    model = SFRRegressor(scaling="robust", solver="sums", uncertainty=True, random_state=0).fit(X, y)
    far, end = np.full((1, X.shape[1]), 1e12), model.model_.predictor.limits.high[None, :]
    np.testing.assert_array_equal(model.predict(far, return_std=True), model.predict(end, return_std=True))


@pytest.mark.parametrize("scaling", ["range", "robust"])
def test_limits_of_an_earlier_training_are_forgotten(scaling):
    X, _, y = make_table(2)
    shards = make_shards(X, y, owners_of(2, len(y), 3))
    told = make_settings(scaling=scaling, solver="sums", n_rules=3)
    expected = train(InProcessEngine(shards, TASKS), told).predictor.predict(X)
    engine = InProcessEngine(shards, TASKS)
    train(engine, make_settings(scaling="robust", solver="sums", n_rules=3))
    np.testing.assert_array_equal(train(engine, told).predictor.predict(X), expected)


@given(st.integers(0, 2**32 - 1), st.floats(0.0, 3.0))
@settings(max_examples=40, deadline=None)
def test_an_average_is_trusted_half_way_to_its_best_factor(seed, noise):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=80)
    predictions = np.stack([y + noise * rng.normal(size=80), rng.normal(size=80)], axis=1)
    sums = LeftOut.of(predictions, y, np.ones(80))
    for shares in (np.array([1.0, 0.0]), np.array([0.5, 0.5])):
        trust = sums.trust(shares)
        f = predictions @ shares
        assert trust == pytest.approx((1.0 + np.clip(f @ y / (f @ f), 0.0, 1.0)) / 2.0)
        assert sums.mean_square(trust * shares) <= sums.mean_square(shares) + 1e-12
    assert LeftOut.none(2).trust(np.array([0.5, 0.5])) == 1.0


@pytest.mark.parametrize("n_agents", [1, 3])
def test_the_mean_of_the_labels_has_a_share_where_they_say_little_and_none_where_they_say_all(n_agents):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 4))
    for noise, expected in ((5.0, True), (0.01, False)):
        truth = X[:, 0] + noise * rng.normal(size=300)
        y = np.where(np.arange(300) < 50, truth, np.nan)
        model = AutoSFRRegressor(random_state=0).fit(X, y, agents=np.arange(300) % n_agents)
        means = [member for member in model.model_.mixture.members if member.predictor.basis.n_outputs == 1]
        assert bool(means) == expected
        for member in means:
            assert 0.01 < member.share <= 0.5
            np.testing.assert_allclose(member.predictor.predict(X), np.nanmean(y))
