"""The order of rows and the units of a feature do not matter; a single agent is the centralised method."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.core.clustering.fuzzy_c_means import fuzzy_c_means, seed_centers
from dsfr.core.features.takagi_sugeno import Rules
from dsfr.core.features.wavelets import Wavelets
from dsfr.core.scaling.affine import scale_features
from dsfr.engines import InProcessEngine
from dsfr.training import ADMM, TASKS, Sums, make_shards
from dsfr.training.clustering.clusters import _start, rules_about
from dsfr.training.scaling.survey import survey
from dsfr.training.shard import Purpose
from dsfr.training.weights.weights import agree_weights
from tests.laws.test_distributed_equals_pooled import hyperparameters
from tests.plain import pooled_weights, variances
from tests.tables import make_settings, make_table, owners_of, train_on

seeds = st.integers(0, 10_000)


def grid_table(seed, n_rows=120):
    """Rows on a grid, some of them repeated: many are equally near to each other."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 7, (n_rows, 2)) / 10
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n_rows)
    y[rng.permutation(n_rows)[30:]] = np.nan
    return X, y


@settings(max_examples=80)
@given(seeds, st.booleans(), hyperparameters, st.sampled_from(["graph", None]), st.sampled_from(["rules", "wavelets"]))
def test_the_order_of_rows_does_not_matter_given_the_centers(seed, on_grid, hyper, unlabeled, basis):
    X, y = grid_table(seed) if on_grid else make_table(seed)[::2]
    owners = owners_of(seed, len(y), 3)
    told = make_settings(solver="sums", **hyper | {"unlabeled": unlabeled, "ridge": max(hyper["ridge"], 1e-3)})
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-1, 1, (told.n_rules, X.shape[1]))
    nodes = Wavelets.draw(12, X.shape[1], rng)
    predictions = []
    for order in (np.arange(len(y)), rng.permutation(len(y))):
        shards = make_shards(X[order], y[order], owners[order])
        engine = InProcessEngine(list(shards.values()), TASKS)
        population = survey(engine, told)
        _start(engine, told, population)
        used = rules_about(engine, told, centers)[0] if basis == "rules" else nodes
        weights = agree_weights(engine, told, used, population, lambda info: None).weights
        predictions.append(used.features(scale_features(X, population.ranges)) @ weights)
    np.testing.assert_allclose(*predictions, atol=1e-8)


@given(seeds, hyperparameters, st.sampled_from([Sums(acceleration=None), ADMM(acceleration=None)]))
def test_a_single_agent_is_the_centralised_method_with_either_solver(seed, hyper, solver):
    X, _, y = make_table(seed)
    training, _ = train_on(X, y, np.zeros(len(y), dtype=int), solver=solver, **hyper)
    told = make_settings(solver=solver, **hyper)
    shard = make_shards(X, y, np.zeros(len(y), dtype=int))["0"]
    low, high = X.min(axis=0), X.max(axis=0)
    Z = 2 * (X - low) / (high - low) - 1
    start = seed_centers(Z, told.n_rules, shard.rng(told.seed, Purpose.START))
    centers = fuzzy_c_means(
        Z, start, fuzzifier=told.rules.fuzzifier, tol=told.solver.tol, max_rounds=told.solver.max_rounds
    )
    widths = told.rules.width_scale * np.sqrt(variances(Z, centers, told.rules.fuzzifier))
    basis, target = Rules(centers, np.maximum(widths, 0.01)), (np.nanmean(y), np.nanstd(y))
    weights = pooled_weights([shard], training.predictor.ranges, basis, target, told)
    expected = target[0] + target[1] * basis.features(Z) @ weights
    np.testing.assert_allclose(training.predictor.predict(X), expected, atol=1e-6 * target[1])


@pytest.mark.parametrize("basis", ["rules", "wavelets"])
@given(
    seed=seeds,
    scale=st.floats(1e-3, 1e3),
    offset=st.floats(-100.0, 100.0),
    flip=st.booleans(),
    n_agents=st.integers(1, 4),
    solver=st.sampled_from(["conjugate", "sums"]),
    hyper=hyperparameters,
)
def test_the_units_of_a_feature_do_not_matter(basis, seed, scale, offset, flip, n_agents, solver, hyper):
    X, _, y = make_table(seed)
    owners = owners_of(seed, len(y), n_agents, skew=5.0)
    other = X.copy()
    # A wavelet's nodes lie in (0, 1), so turning a feature round is another model.
    other[:, 1] = offset + (-scale if flip and basis == "rules" else scale) * X[:, 1]
    # The draws of the preconditioner do not turn round with a feature, so weights are the same to tol.
    # Rounding grows with the condition of the system and with the rounds, so both are kept small.
    told = hyper | {"basis": basis, "solver": solver, "ridge": max(hyper["ridge"], 0.01), "max_rounds": 50, "tol": 1e-8}
    first, _ = train_on(X, y, owners, serialize=False, **told)
    second, _ = train_on(other, y, owners, serialize=False, **told)
    gap = np.abs(first.predictor.predict(X) - second.predictor.predict(other)).max()
    assert gap <= 1e-6 * first.predictor.target_scale
