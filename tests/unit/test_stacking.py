"""Shares of several models."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from dsfr.core.prediction.stacking import HELD, LeftOut, tempered_shares


def left_out(Z, y):
    return LeftOut(Z.T @ Z, Z.T @ y, float(y @ y), float(len(y)))


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=8), st.integers(1, 10_000))
def test_shares_by_evidence_are_shares_in_the_order_of_evidence(scores, n_labeled):
    shares = tempered_shares(np.array(scores), n_labeled)
    assert abs(shares.sum() - 1.0) < 1e-12
    assert (shares >= 0.0).all()
    order = np.argsort(scores)
    assert (np.diff(shares[order]) >= 0.0).all()


def test_differences_count_in_units_of_their_chance():
    few, many = (tempered_shares(np.array([0.0, -10.0]), n) for n in (25, 2500))
    np.testing.assert_allclose(few[1] / few[0], np.exp(-2.0))
    np.testing.assert_allclose(many[1] / many[0], np.exp(-0.2))


@given(st.integers(0, 10_000), st.integers(2, 5))
def test_stacked_shares_minimise_the_held_back_error(seed, m):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=40)
    Z = y[:, None] + rng.normal(size=(40, m)) * rng.uniform(0.1, 2.0, m)
    shares = left_out(Z, y).shares()
    assert abs(shares.sum() - 1.0) < 1e-9
    assert (shares >= 0.0).all()
    equal = np.full(m, 1.0 / m)
    hold = HELD * m * np.mean((y[:, None] - Z) ** 2, axis=0).min()

    def loss(a):
        return np.sum((y - Z @ a) ** 2) + hold * np.sum((a - equal) ** 2)

    total = {"type": "eq", "fun": lambda a: a.sum() - 1.0}
    best = minimize(loss, equal, bounds=[(0.0, 1.0)] * m, constraints=total, method="SLSQP")
    assert loss(shares) <= best.fun * (1.0 + 1e-3)


@given(st.integers(0, 10_000), st.sampled_from([0.0, 1e-12, 1e-8, 1e-4]), st.floats(1e-3, 1e3))
def test_models_that_agree_and_make_hardly_an_error_share_nearly_all(seed, error, unit):
    rng = np.random.default_rng(seed)
    y = unit * rng.normal(size=60)
    near = y + error * unit * rng.normal(size=60)
    shares = left_out(np.stack([y + unit * rng.normal(size=60), near, near], axis=1), y).shares()
    assert abs(shares.sum() - 1.0) < 1e-9
    assert shares[0] < 1e-3
    assert (shares >= 0.0).all()


def test_models_without_an_error_have_equal_shares():
    y = np.random.default_rng(0).normal(size=60)
    np.testing.assert_allclose(left_out(np.stack([y, y, y], axis=1), y).shares(), np.full(3, 1.0 / 3.0))


def test_a_model_that_predicts_perfectly_gets_nearly_all():
    y = np.random.default_rng(0).normal(size=200)
    Z = np.stack([y, np.zeros(200)], axis=1)
    assert left_out(Z, y).shares()[0] > 0.95
