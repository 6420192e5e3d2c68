"""Leave-one-out errors that are enlarged, and variances without a label."""

import numpy as np
import pytest

from dsfr.core.prediction.stacking import LeftOut
from dsfr.core.solve.cholesky import cholesky
from dsfr.core.solve.leave_one_out import left_out_variances, leverages


def left_out_of(Z, y):
    return LeftOut(Z.T @ Z, Z.T @ y, float(y @ y), float(len(y)))


def test_inflated_errors_are_those_of_predictions_farther_off():
    rng = np.random.default_rng(0)
    y, Z, factors = rng.normal(size=30), rng.normal(size=(30, 3)), np.array([1.0, 1.5, 3.0])
    farther = left_out_of(y[:, None] - factors * (y[:, None] - Z), y)
    found = left_out_of(Z, y).inflated(factors)
    np.testing.assert_allclose(found.products, farther.products)
    np.testing.assert_allclose(found.moment, farther.moment)
    for shares in (np.eye(3)[1], np.full(3, 1 / 3)):
        assert found.mean_square(shares) == pytest.approx(farther.mean_square(shares))


def test_variances_without_a_label_are_those_of_a_fit_without_it():
    rng = np.random.default_rng(1)
    H = rng.normal(size=(12, 4))
    found = left_out_variances(leverages(H, cholesky(H.T @ H + 0.3 * np.eye(4))))
    for i, h in enumerate(H):
        rest = np.delete(H, i, axis=0)
        assert found[i] == pytest.approx(1.0 + h @ np.linalg.solve(rest.T @ rest + 0.3 * np.eye(4), h))
