"""`update(X, y)`: sums over labels add, so labels that come later are as good as labels from the start."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr import AutoSFRRegressor, Ensemble, InProcess, LapWNNRegressor, Policy, RuleRegressor, SFRRegressor, load
from dsfr.core.scaling.affine import scale_features
from dsfr.core.solve.statistics import Statistics
from dsfr.training.tasks.messages import pack
from tests.tables import make_table, owners_of

seeds = st.integers(0, 10_000)


def in_two_parts(seed, **shape):
    """A table, its targets with the first labels alone, and the rows that are labelled later."""
    X, _, y = make_table(seed, n_rows=60, n_features=2, n_labels=30, **shape)
    later = np.flatnonzero(~np.isnan(y))[12:]
    first = y.copy()
    first[later] = np.nan
    return X, y, first, later


@settings(max_examples=12)
@given(
    seed=seeds,
    n_agents=st.integers(1, 3),
    ridge=st.floats(1e-2, 10.0),
    unlabeled=st.sampled_from(["graph", None]),
    target=st.sampled_from(["standard", "raw"]),
    wavelets=st.booleans(),
    weighted=st.booleans(),
)
def test_labels_that_come_later_are_as_good_as_labels_from_the_start(
    seed, n_agents, ridge, unlabeled, target, wavelets, weighted
):
    X, y, first, later = in_two_parts(seed)
    kind = LapWNNRegressor(12) if wavelets else SFRRegressor(3)
    model = kind.set_params(ridge=ridge, unlabeled=unlabeled, solver="sums", random_state=0)
    model.set_params(scaling__target=target)
    owners, weights = owners_of(seed, len(y), n_agents), np.random.default_rng(seed).uniform(0.2, 3.0, len(y))
    told = {"agents": owners, "sample_weight": weights if weighted else None}
    expected = model.fit(X, y, **told).predict(X)
    model.fit(X, first, **told)
    for part in np.array_split(later, 3):
        model.update(X[part], y[part], sample_weight=weights[part] if weighted else None)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-7, atol=1e-7)
    assert model.model_.training["n_labeled"] == 30


@settings(max_examples=8)
@given(
    seed=seeds,
    told=st.fixed_dictionaries(
        {
            "ensemble": st.builds(
                Ensemble,
                n_models=st.integers(1, 3),
                effects=st.sampled_from(["pairs", "single", None]),
                relevance=st.sampled_from(["evidence", None]),
            ),
            "tune": st.sampled_from(["evidence", "loo"]),
            "scaling": st.sampled_from(["robust", "range"]),
        }
    ),
)
def test_every_member_has_the_weights_of_all_labels_under_its_own_prior(seed, told):
    X, y, first, later = in_two_parts(seed, noise=1.0)
    model = AutoSFRRegressor(2, random_state=0, **told).fit(X, first)
    before = model.sums_
    X[later[0]] += 1e4  # beyond the limits of the training, where these are robust
    model.update(X[later], y[later])
    rows = np.flatnonzero(~np.isnan(y))
    limits = before.target_limits
    targets = y[rows] if limits is None else np.clip(y[rows], *limits)
    for member, solution, old in zip(model.model_.members, model.sums_.solutions, before.solutions, strict=True):
        predictor = member.predictor
        z = (targets - predictor.target_mean) / predictor.target_scale
        assert (z.mean(), z.std()) == pytest.approx((0.0, 1.0), abs=1e-9)
        scaled = scale_features(predictor.within_limits(X[rows]), predictor.ranges)
        total = Statistics.of(scaled, z, predictor.basis, old.statistics.unlabeled_gram)
        for name, value in pack(total).items():
            size = max(np.abs(value).max(), 1.0)
            np.testing.assert_allclose(pack(solution.statistics)[name], value, atol=1e-9 * size, err_msg=name)
        precision = member.posterior.factor.T @ member.posterior.factor
        np.testing.assert_allclose(precision @ predictor.weights, total.moment, atol=1e-5 * np.abs(total.moment).max())
        prior = old.factor().T @ old.factor() - old.statistics.gram
        np.testing.assert_allclose(precision - total.gram, prior, atol=1e-6 * np.abs(precision).max())
    assert model.model_.mixture.scores is not None
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()


def test_logarithms_of_new_labels_are_added_where_logarithms_are_learnt():
    X, y, first, later = in_two_parts(1)
    unit = np.nanstd(y)
    y, first = np.exp(y / unit), np.exp(first / unit)
    model = AutoSFRRegressor(2, target="log", ensemble=Ensemble(n_models=1), random_state=0).fit(X, first)
    held = model.model_.mixture.link
    model.update(X[later], np.where(np.arange(len(later)) == 0, 1e6, y[later]))
    assert model.model_.mixture.link.high == pytest.approx(max(held.high, np.log(1e6)))
    assert (model.predict(X) > 0.0).all()
    with pytest.raises(ValueError, match="labels must be > 0"):
        model.update(X[:1], np.zeros(1))


def test_labels_without_a_weight_weigh_one_in_the_units_of_the_training():
    X, y, first, later = in_two_parts(1)
    model = AutoSFRRegressor(2, ensemble=Ensemble(n_models=1), random_state=0)
    weights = np.full(len(y), 4.0)
    weights[np.flatnonzero(~np.isnan(first))[0]] = 2.0
    predictions = [
        model.fit(X, first, sample_weight=weights).update(X[later], y[later], sample_weight=given).predict(X)
        for given in (None, np.ones(len(later)), np.full(len(later), 4.0))
    ]
    np.testing.assert_array_equal(predictions[0], predictions[1])
    assert not np.allclose(predictions[0], predictions[2])
    tenfold = model.fit(X, first, sample_weight=10.0 * weights).update(X[later], y[later], np.full(len(later), 40.0))
    np.testing.assert_allclose(tenfold.predict(X), predictions[2], rtol=1e-6)


def test_what_cannot_be_updated_says_so():
    X, y, first, later = in_two_parts(2)
    new = X[later], y[later]
    with pytest.raises(ValueError, match="is not fitted yet"):
        SFRRegressor().update(*new)
    with pytest.raises(ValueError, match='train with solver="sums"'):
        SFRRegressor(n_agents=2).fit(X, first).update(*new)
    with pytest.raises(ValueError, match="update does not go with a policy"):
        SFRRegressor().fit(X, first).set_params(engine=InProcess(policy=Policy())).update(*new)
    with pytest.raises(ValueError, match="at least one label"):
        SFRRegressor().fit(X, first).update(X[later], np.full(len(later), np.nan))
    with pytest.raises(ValueError, match="at least one label"):
        SFRRegressor().fit(X, first).update(X[later], np.full(len(later), np.inf))
    model = RuleRegressor(teacher=SFRRegressor(2, tune="evidence")).fit(X, first)
    with pytest.raises(NotImplementedError, match="RuleRegressor cannot be updated"):
        model.update(*new)
    before = model.teacher_.predict(X)
    assert not np.allclose(model.teacher_.update(*new).predict(X), before)


def test_an_updated_model_is_saved_as_any_other(tmp_path):
    X, y, first, later = in_two_parts(3)
    model = AutoSFRRegressor(2, ensemble=Ensemble(n_models=1), random_state=0).fit(X, first).update(X[later], y[later])
    path = model.save(tmp_path / "model.dsfr")
    np.testing.assert_array_equal(load(path).predict(X), model.predict(X))
