"""How sure a model is: deviations of the posterior, intervals from leave-one-out errors, and what it does not know."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import AutoSFRRegressor, Ensemble, SFRRegressor
from dsfr.core.prediction.scores import Scores
from tests.tables import make_table, owners_of, train_on

seeds = st.integers(0, 10_000)


@settings(max_examples=10)
@given(seeds, st.floats(0.01, 1.0))
def test_deviations_are_those_of_the_gaussian_posterior(seed, ridge):
    X, _, y = make_table(seed)
    training, _ = train_on(
        X, y, np.zeros(len(y)), seed=seed, unlabeled=None, ridge=ridge, uncertainty=True, solver="sums", n_rules=2
    )
    predictor, labeled = training.predictor, ~np.isnan(y)
    H = predictor.basis.features((X - predictor.ranges.midpoints) / predictor.ranges.half_widths)
    noise = training.mixture.members[0].posterior.noise
    covariance = np.linalg.inv(H[labeled].T @ H[labeled] + ridge * np.eye(H.shape[1]))
    expected = noise * np.sqrt(1.0 + np.einsum("np,pq,nq->n", H, covariance, H))
    np.testing.assert_allclose(training.mixture.deviations(X), expected, rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-200, 1e97])
def test_deviations_are_in_the_units_of_any_target(unit):
    X, _, y = make_table(0)
    expected, found = (
        AutoSFRRegressor(ensemble=Ensemble(n_models=2), random_state=0).fit(X, scale * y).predict(X, return_std=True)[1]
        for scale in (1.0, unit)
    )
    np.testing.assert_allclose(found / unit, expected, rtol=1e-6)


def test_intervals_hold_about_as_many_targets_as_they_aim_at():
    held = []
    for seed in range(12):
        X, truth, y = make_table(seed, n_rows=600, n_labels=80, noise=8.0)
        model = AutoSFRRegressor(ensemble=Ensemble(n_models=2), random_state=seed).fit(
            X, y, agents=owners_of(seed, len(y), 4)
        )
        low, high = model.predict_interval(X, coverage=0.8)
        hidden = np.isnan(y)
        held.append(np.mean((truth >= low)[hidden] & (truth <= high)[hidden]))
    assert 0.76 < np.mean(held) < 0.86


def test_scores_give_the_jackknife_quantile():
    errors = np.arange(1.0, 100.0)
    scores = Scores(np.append(0.0, errors), np.append(0.0, np.arange(1.0, 100.0)))
    assert scores.half_width(0.9) == 90.0
    assert scores.half_width(0.99) == 99.0
    with pytest.raises(
        ValueError, match=r"coverage=0\.995 needs at least 199 labelled rows, and the model has seen 99"
    ):
        scores.half_width(0.995)


def test_what_a_model_does_not_know_is_said(tmp_path):
    X, _, y = make_table(0)
    model = SFRRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="train it with uncertainty=True"):
        model.predict(X, return_std=True)
    with pytest.raises(ValueError, match="train it with uncertainty=True"):
        model.predict_interval(X)
    sure = AutoSFRRegressor(ensemble=Ensemble(n_models=2), random_state=0).fit(X, y)
    for coverage in (0.0, 1.0, -1, "much"):
        with pytest.raises(ValueError, match="must be a number between 0 and 1"):
            sure.predict_interval(X, coverage=coverage)
