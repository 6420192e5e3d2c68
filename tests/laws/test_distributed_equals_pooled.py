"""Training over agents gives what training on the pooled rows gives, whoever owns them."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from dsfr.core.clustering.fuzzy_c_means import ClusterSums, ClusterVariances, fuzzy_c_means
from dsfr.core.features.takagi_sugeno import rule_widths
from dsfr.core.scaling.affine import scale_features
from dsfr.engines import InProcessEngine
from dsfr.training import ADMM, TASKS, Conjugate, Sums, make_shards
from dsfr.training.clustering.clusters import _start, agree_rules
from dsfr.training.scaling.survey import survey
from dsfr.training.weights.weights import agree_weights
from tests.plain import local_system, pooled_weights, scaled
from tests.tables import make_settings, make_table, owners_of, train_on

seeds = st.integers(0, 10_000)
hyperparameters = st.fixed_dictionaries(
    {
        "n_rules": st.integers(1, 6),
        "unlabeled": st.sampled_from(["icr", "graph", None]),
        "weight": st.floats(0.0, 10.0),
        "ridge": st.floats(1e-6, 10.0),
        "fuzzifier": st.floats(1.05, 3.0),
        "width_scale": st.floats(0.5, 3.0),
        "n_pairs": st.one_of(st.none(), st.integers(1, 300)),
        "most_pairs": st.sampled_from([20, 10_000]),
        "kernel": st.sampled_from(["neighbors", "full"]),
        "n_neighbors": st.integers(1, 15),
        "mix_concentration": st.floats(0.2, 3.0),
        "seed": seeds,
    }
).map(lambda told: told | {"weight": told["weight"] / (10.0 if told["unlabeled"] == "graph" else 1.0)})


bases = st.sampled_from(["rules", "rules", "wavelets"])


@pytest.mark.slow
@settings(max_examples=120)
@given(seeds, st.integers(1, 6), st.sampled_from([0.3, 1.0, 100.0]), hyperparameters, bases, st.integers(1, 20))
def test_exact_training_equals_the_pooled_closed_form(seed, n_agents, skew, hyper, basis, n_nodes):
    X, _, y = make_table(seed)
    owners = owners_of(seed, len(y), n_agents, skew)
    told = make_settings(solver="sums", basis=basis, n_nodes=n_nodes, **hyper)
    training, _ = train_on(X, y, owners, solver="sums", basis=basis, n_nodes=n_nodes, **hyper)
    predictor, shards = training.predictor, list(make_shards(X, y, owners).values())
    target = (np.nanmean(y), np.nanstd(y))
    reference = pooled_weights(shards, predictor.ranges, predictor.basis, target, told)
    H = predictor.basis.features(scale_features(X, predictor.ranges))
    np.testing.assert_allclose(H @ predictor.weights, H @ reference, atol=1e-8)
    systems = [local_system(shard, predictor.ranges, predictor.basis, target, told) for shard in shards]
    A, b, square = (sum(part) for part in zip(*systems, strict=True))
    w, last = predictor.weights, training.history[-1]
    objective = w @ A @ w / 2 - b @ w + square / 2 + told.ridge / 2 * w @ w
    assert last.objective == pytest.approx(objective, rel=1e-7, abs=1e-9)
    error = np.linalg.norm(A @ w - b + told.ridge * w) / told.ridge / max(np.linalg.norm(w), 1e-6)
    assert last.error_bound == pytest.approx(error, abs=1e-9 / told.ridge)


@given(seeds, st.integers(2, 6), st.floats(1.05, 3.0), st.integers(1, 6), st.floats(0.5, 3.0))
def test_exact_clusters_equal_the_pooled_fuzzy_c_means(seed, n_agents, fuzzifier, n_rules, width_scale):
    X, _, y = make_table(seed)
    shards = make_shards(X, y, owners_of(seed, len(y), n_agents))
    told = {"fuzzifier": fuzzifier, "n_rules": n_rules, "width_scale": width_scale, "seed": seed}
    told = make_settings(solver=Sums(acceleration=None), **told)
    engine = InProcessEngine(list(shards.values()), TASKS, serialize=True)
    population = survey(engine, told)
    start = _start(engine, told, population)
    rules, shares, _ = agree_rules(engine, told, population, lambda info: None)
    Z = scale_features(X, population.ranges)
    pooled = fuzzy_c_means(Z, start, fuzzifier=fuzzifier, tol=told.solver.tol, max_rounds=told.solver.max_rounds)
    np.testing.assert_allclose(rules.centers, pooled, atol=1e-9)
    spread = ClusterVariances.of(Z, pooled, fuzzifier)
    np.testing.assert_allclose(rules.widths, rule_widths(spread.variances, width_scale), atol=1e-8)
    np.testing.assert_allclose(shares, spread.mass / spread.mass.sum(), atol=1e-8)


@pytest.mark.parametrize("solver", ["conjugate", "admm"])
@settings(max_examples=15)
@given(seeds, st.integers(2, 5), st.sampled_from([1.1, 1.5, 2.0]), st.integers(1, 4))
def test_agreed_centers_are_stationary_for_the_pooled_rows(solver, seed, n_agents, fuzzifier, n_rules):
    X, _, y = make_table(seed)
    owners = owners_of(seed, len(y), n_agents, skew=5.0)
    told = {"fuzzifier": fuzzifier, "n_rules": n_rules, "seed": seed, "unlabeled": None, "solver": solver}
    training, _ = train_on(X, y, owners, serialize=False, tol=1e-9, max_rounds=3000, **told)
    # The objective is not convex, so ADMM may wander; then it says so, and there is no fixed point to look at.
    assume(solver == "conjugate" or "clusters" not in training.unconverged)
    Z, centers = scale_features(X, training.predictor.ranges), training.predictor.basis.centers
    step = ClusterSums.of(Z, centers, fuzzifier).centers(centers) - centers
    assert np.abs(step).max() < 1e-6


def weights_by(solver, engine, rules, population, **told):
    solution = agree_weights(engine, make_settings(solver=solver, **told), rules, population, lambda info: None)
    return solution.weights, solution.converged


@pytest.mark.slow
@settings(max_examples=60)
@given(
    seeds,
    st.integers(2, 6),
    st.sampled_from(["icr", "neighbors", "full", None]),
    st.floats(0.0, 1.0),
    st.floats(0.05, 10.0),
    st.one_of(
        st.just(Conjugate()),
        st.builds(
            ADMM,
            penalty=st.one_of(st.floats(0.1, 10.0), st.none(), st.just("balanced")),
            acceleration=st.sampled_from(["anderson", None]),
            relaxation=st.one_of(st.just(1.0), st.floats(0.5, 1.9)),
        ),
    ),
    st.sampled_from([1e-2, 1e-4, 1e-6]),
)
def test_rounds_end_within_tol_of_the_exact_weights(seed, n_agents, unlabeled, weight, ridge, solver, tol):
    X, _, y = make_table(seed, n_features=2)
    shards = list(make_shards(X, y, owners_of(seed, len(y), n_agents)).values())
    told = {"n_rules": 3, "unlabeled": unlabeled, "weight": weight, "seed": seed, "ridge": ridge}
    if unlabeled in ("neighbors", "full"):
        told |= {"unlabeled": "graph", "kernel": unlabeled, "n_neighbors": 1 + seed % 15}
    told |= {"tol": tol, "max_rounds": 50_000}
    engine = InProcessEngine(shards, TASKS)
    population = survey(engine, make_settings(**told))
    rules, _, _ = agree_rules(engine, make_settings(solver="sums", **told), population, lambda info: None)
    exact, _ = weights_by("sums", engine, rules, population, **told)
    found, converged = weights_by(solver, engine, rules, population, **told)
    assert converged
    assert np.linalg.norm(found - exact) <= 1.0001 * tol * np.linalg.norm(found)


@settings(max_examples=25)
@given(seeds, st.integers(2, 30), st.sampled_from(["icr", "graph", None]), st.floats(1e-3, 1.0), st.integers(1, 4))
def test_conjugate_residuals_take_at_most_two_rounds_more_than_there_are_weights(
    seed, n_agents, unlabeled, ridge, n_rules
):
    """The first gradient, one more per weight, and one that measures the result; for any number of agents."""
    X, _, y = make_table(seed, n_features=2)
    told = {"n_rules": n_rules, "unlabeled": unlabeled, "ridge": ridge, "seed": seed, "tol": 1e-4, "max_rounds": 200}
    engine = InProcessEngine(list(make_shards(X, y, owners_of(seed, len(y), n_agents)).values()), TASKS)
    population = survey(engine, make_settings(**told))
    rules, _, _ = agree_rules(engine, make_settings(solver="sums", **told), population, lambda info: None)
    history = []
    agree_weights(engine, make_settings(**told), rules, population, history.append)
    assert history[-1].error_bound <= 1e-4
    assert len(history) <= rules.n_outputs + 2


@settings(max_examples=15)
@given(seeds, st.integers(2, 5))
def test_a_tolerance_of_1e_10_gives_1e_6_in_predictions(seed, n_agents):
    X, _, y = make_table(seed, n_features=2)
    owners = owners_of(seed, len(y), n_agents, skew=10.0)
    told = {"n_rules": 2, "ridge": 1.0, "seed": seed, "fuzzifier": 2.0, "max_rounds": 20_000}
    told |= {"tol": 1e-10, "serialize": False}
    exact, _ = train_on(X, y, owners, solver="sums", **told)
    rounds, _ = train_on(X, y, owners, solver="conjugate", **told)
    assert rounds.termination == "converged"
    assert np.abs(rounds.predictor.predict(X) - exact.predictor.predict(X)).max() < 1e-6 * exact.predictor.target_scale


PLAIN_AND_ACCELERATED = [
    (Sums(acceleration=None), Sums()),
    (Sums(acceleration=None), Conjugate()),
    (ADMM(acceleration=None), ADMM()),
    (ADMM(acceleration=None), ADMM(acceleration=None)),
]


@pytest.mark.slow
@given(seeds, hyperparameters, st.sampled_from(PLAIN_AND_ACCELERATED))
def test_the_order_of_agents_does_not_matter(seed, hyper, solvers):
    """Centers of the plain iteration, and weights given the centers; sums in another order round differently.

    Acceleration of the clustering may carry that rounding up to 1e-6, which is far below its tolerance.
    """
    X, _, y = make_table(seed)
    shards = list(make_shards(X, y, owners_of(seed, len(y), 4)).values())
    hyper = hyper | {"ridge": max(hyper["ridge"], 0.1), "max_rounds": 200}
    plain, told = (make_settings(solver=solver, **hyper) for solver in solvers)
    agreed, predictions = [], []
    for order in (shards, shards[::-1]):
        engine = InProcessEngine(order, TASKS)
        population = survey(engine, plain)
        agreed.append(agree_rules(engine, plain, population, lambda info: None)[0])
        weights = agree_weights(engine, told, agreed[0], population, lambda info: None).weights
        predictions.append(agreed[0].features(scale_features(X, population.ranges)) @ weights)
    np.testing.assert_allclose(agreed[0].centers, agreed[1].centers, atol=1e-8)
    np.testing.assert_allclose(agreed[0].widths, agreed[1].widths, atol=1e-8)
    np.testing.assert_allclose(*predictions, atol=1e-8)


@given(seeds, hyperparameters, st.integers(1, 4), st.sampled_from(["conjugate", "sums"]))
def test_a_penalty_of_weight_zero_equals_none(seed, hyper, n_agents, solver):
    X, _, y = make_table(seed)
    owners = owners_of(seed, len(y), n_agents)
    hyper = hyper | {"solver": solver, "max_rounds": 100, "weight": 0.0, "ridge": max(hyper["ridge"], 1e-2)}
    icr, _ = train_on(X, y, owners, **(hyper | {"unlabeled": "icr"}))
    plain, _ = train_on(X, y, owners, **(hyper | {"unlabeled": None}))
    np.testing.assert_array_equal(icr.predictor.predict(X), plain.predictor.predict(X))


@given(seeds, hyperparameters, st.integers(1, 4))
def test_all_labels_and_no_penalty_equal_ridge_regression_on_the_features(seed, hyper, n_agents):
    X, y, _ = make_table(seed)
    owners = owners_of(seed, len(y), n_agents)
    training, _ = train_on(X, y, owners, **(hyper | {"solver": "sums", "weight": 0.0, "unlabeled": "icr"}))
    predictor = training.predictor
    H = predictor.basis.features(scale_features(X, predictor.ranges))
    ridge = Ridge(alpha=hyper["ridge"], fit_intercept=False, solver="svd").fit(H, (y - y.mean()) / y.std())
    np.testing.assert_allclose(H @ predictor.weights, ridge.predict(H), atol=1e-8)


@given(seeds, st.integers(2, 5))
def test_the_paper_s_widths_average_local_variances_by_agent_size(seed, n_agents):
    X, _, y = make_table(seed)
    owners = owners_of(seed, len(y), n_agents)
    told = {"solver": "sums", "unlabeled": None, "width_pooling": "paper", "fuzzifier": 2.0, "seed": seed}
    training, _ = train_on(X, y, owners, **told)
    centers, ranges = training.predictor.basis.centers, training.predictor.ranges
    shards = make_shards(X, y, owners).values()
    local = [(s.n_samples, ClusterVariances.of(scaled(s, ranges), centers, 2.0).variances) for s in shards]
    pooled = sum(n * variances for n, variances in local) / len(y)
    np.testing.assert_allclose(training.predictor.basis.widths, rule_widths(pooled, 1.0), atol=1e-9)
