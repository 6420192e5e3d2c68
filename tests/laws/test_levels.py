"""Laws of levels: effects of single values of features with few values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import AutoSFRRegressor, Ensemble, load
from dsfr.core.features.effects import Effects
from dsfr.core.features.levels import FEWEST, MOST, FeatureLevels, knots_with_levels, level_effects, levels_of
from dsfr.core.features.quantile_curves import Distribution, quantile_curves
from dsfr.core.solve.effect_priors import single_effects


def counted(X: np.ndarray, n_thresholds: int) -> Distribution:
    """Counts at evenly spaced thresholds, as agents give them."""
    thresholds = np.linspace(X.min(axis=0), X.max(axis=0), n_thresholds)
    return Distribution.of(thresholds, (X[None] <= thresholds[:, None]).sum(axis=1).astype(np.float64))


def effects_with_levels(distribution: Distribution, n_curves: int = 3) -> Effects:
    levels = levels_of(distribution)
    knots, ranks = knots_with_levels(distribution, levels, 2 * n_curves + 3)
    d = knots.shape[1]
    found = [level_effects(j, own, len(knots)) for j, own in levels.items()]
    own = np.concatenate([np.empty((0, 3), dtype=np.int64), *found])
    curves = quantile_curves(knots, ranks, n_curves)
    pairs, triples = (np.empty((0, 2 * n), dtype=np.int64) for n in (2, 3))
    return Effects(knots, curves, single_effects(d, n_curves), pairs, triples, own)


def codes(seed: int, n_rows: int = 900, n_labels: int = 200, n_codes: int = 30) -> tuple[np.ndarray, ...]:
    """A code whose every value has an effect of its own, and a line of another column."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(100, 100 + n_codes, n_rows), rng.normal(size=(n_rows, 2))]).astype(np.float64)
    truth = rng.normal(size=100 + n_codes)[X[:, 0].astype(int)] + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n_rows)
    y = np.full(n_rows, np.nan)
    y[:n_labels] = truth[:n_labels]
    return X, truth, y


def error(truth: np.ndarray, predictions: np.ndarray) -> float:
    return float(np.sqrt(np.mean((truth - predictions) ** 2)) / truth.std())


@given(st.integers(0, 2**32 - 1), st.integers(FEWEST, 40))
@settings(max_examples=40, deadline=None)
def test_every_value_belongs_to_one_level_and_others_to_its_neighbours(seed, n_values):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.choice(200, n_values, replace=False)).astype(np.float64)
    X = np.stack([rng.choice(values, 500), rng.normal(size=500)], axis=1)
    X[: len(values), 0] = values
    distribution = counted(X, 401)
    effects = effects_with_levels(distribution)
    Effects.of_arrays(effects.arrays())
    assert set(effects.levels[:, 0]) == {0}, "rows of the other column are nearly everywhere"
    memberships = effects.memberships(X)
    np.testing.assert_allclose(memberships.max(axis=1), 1.0)
    of_values = effects.memberships(np.stack([values, np.zeros(n_values)], axis=1)).argmax(axis=1)
    assert len(set(of_values.tolist())) == n_values, "no two values share a level"
    anywhere = effects.memberships(rng.uniform(-50.0, 250.0, size=(300, 2)))
    assert ((anywhere >= 0.0) & (anywhere <= 1.0)).all()
    np.testing.assert_allclose(anywhere.sum(axis=1), 1.0)


@given(st.integers(0, 2**32 - 1), st.integers(FEWEST, 30))
@settings(max_examples=30, deadline=None)
def test_summed_effects_are_the_same_function(seed, n_values):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, n_values, 200), rng.integers(0, 3, 200), rng.normal(size=200)], axis=1)
    effects = effects_with_levels(counted(X.astype(np.float64), 131))
    pairs = np.array([[0, 1, 2, 0], [1, 2, 2, 2]], dtype=np.int64)
    effects = Effects(effects.knots, effects.curves, effects.singles, pairs, effects.triples, effects.levels)
    weights = rng.normal(size=effects.n_outputs)
    summed, own = effects.summed(weights)
    rows = rng.uniform(-3.0, n_values + 3.0, size=(100, 3))
    np.testing.assert_allclose(summed.features(rows) @ own, effects.features(rows) @ weights, atol=1e-9)
    assert len(summed.singles) == 2 * 3
    assert not len(summed.levels)


def test_columns_of_many_values_and_of_very_few_have_no_levels():
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(size=600), rng.integers(0, FEWEST - 1, 600), rng.integers(0, 20, 600)], axis=1)
    assert set(levels_of(counted(X, 2 * MOST))) == {2}
    assert len(FeatureLevels.of(counted(X, 2 * MOST), 2)) == 20


@pytest.mark.parametrize("seed", range(3))
def test_codes_are_learnt_value_by_value(seed):
    X, truth, y = codes(seed)
    test = slice(200, None)
    errors = {}
    for effects in ("triples", "levels"):
        model = AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0, effects=effects)).fit(X, y)
        errors[effects] = error(truth[test], model.predict(X[test]))
    assert errors["levels"] < 0.2
    assert errors["triples"] > 2.0 * errors["levels"]


def test_smooth_columns_of_few_values_are_not_spoilt():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 30, size=(900, 3)).astype(np.float64)
    truth = np.sin(X[:, 0] / 5.0) + 0.05 * X[:, 1] + 0.3 * rng.normal(size=900)
    y = np.where(np.arange(900) < 200, truth, np.nan)
    found = [
        error(
            truth[200:],
            AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0, effects=e)).fit(X, y).predict(X[200:]),
        )
        for e in ("triples", "levels")
    ]
    assert found[1] <= 1.01 * found[0]


@pytest.mark.parametrize("n_agents", [2, 5])
def test_distributed_levels_are_those_of_pooled_rows(n_agents):
    X, _, y = codes(7, n_rows=500)
    owners = np.random.default_rng(1).integers(n_agents, size=len(y))
    pooled = AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0)).fit(X, y)
    distributed = AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0)).fit(X, y, agents=owners)
    bases = [member.predictor.basis for member in pooled.model_.mixture.members]
    assert any(len(basis.levels) for basis in bases)
    np.testing.assert_allclose(distributed.predict(X), pooled.predict(X), atol=1e-6 * np.nanstd(y))


def test_a_stored_model_with_levels_predicts_the_same_bits(tmp_path):
    X, _, y = codes(8, n_rows=500)
    model = AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0)).fit(X, y)
    model.save(tmp_path / "model.dsfr")
    loaded = load(tmp_path / "model.dsfr")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    found = loaded.interval(X)
    np.testing.assert_array_equal(np.stack([found.low, found.high]), np.stack(model.predict_interval(X)))


def test_the_order_of_the_rows_does_not_matter():
    X, _, y = codes(9, n_rows=500)
    order = np.random.default_rng(2).permutation(len(y))
    first = AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0)).fit(X, y)
    second = AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0)).fit(X[order], y[order])
    np.testing.assert_allclose(second.predict(X), first.predict(X), atol=1e-6 * np.nanstd(y))


def test_a_code_is_said_to_jump():
    X, _, y = codes(10, n_rows=500)
    text = str(AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0)).fit(X, y).explain(X))
    assert "x0" in text
    assert "jumps from value to value, between -" in text


NEARLY_EQUAL = {
    "sums of shares": lambda rng, n: rng.dirichlet(np.ones(5), n).sum(axis=1),
    "large codes": lambda rng, n: 1e16 + 2.0 * rng.integers(0, 30, n),
    "large tenths": lambda rng, n: 1e12 + rng.integers(0, 30, n) / 10.0,
    "tiny codes": lambda rng, n: 1e-300 * rng.integers(0, 30, n),
    "skewed": lambda rng, n: np.exp(3.0 * rng.normal(size=n)),
    "mostly one value": lambda rng, n: np.where(rng.random(n) < 0.95, 7.0, rng.integers(0, 20, n)),
}


@pytest.mark.parametrize("kind", NEARLY_EQUAL)
@pytest.mark.parametrize("seed", range(2))
def test_columns_whose_values_differ_by_rounding_are_trained_on(kind, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([NEARLY_EQUAL[kind](rng, 400), rng.integers(0, 12, 400), rng.normal(size=400)])
    truth = rng.normal(size=12)[X[:, 1].astype(int)] + 0.1 * rng.normal(size=400)
    y = np.where(np.arange(400) < 180, truth, np.nan)
    model = AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0)).fit(X, y)
    assert error(truth[180:], model.predict(X[180:])) < 0.4


def test_labels_without_noise_and_columns_that_repeat_leave_nothing_for_levels():
    rng = np.random.default_rng(0)
    c, x = rng.integers(0, 20, 30_000).astype(np.float64), rng.normal(size=30_000)
    X = np.column_stack([c, x, x, 2.0 * x + c, c])
    model = AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0)).fit(X, 3.0 * x + c)
    assert error(3.0 * x + c, model.predict(X)) < 1e-3


def test_the_highest_level_is_named_where_it_is():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 30, 900), rng.normal(size=900)]).astype(np.float64)
    offsets = rng.normal(size=30)
    offsets[[0, 12]] = 8.0, -8.0
    y = np.where(np.arange(900) < 300, offsets[X[:, 0].astype(int)], np.nan)
    effect = AutoSFRRegressor(random_state=0, ensemble=Ensemble(n_models=0)).fit(X, y).explain(X).effects.features[0]
    assert effect.feature == 0
    found = [float(text.split()[0].rstrip(",")) for text in str(effect).split(" about ")[1:]]
    np.testing.assert_allclose(found, [12.0, 0.0], atol=0.5)
