"""Estimators come back from joblib and skops as they were, and go on from there."""

import io

import joblib
import numpy as np
import pytest

from dsfr import ICR, AutoSFRRegressor, Ensemble, LapWNNRegressor, RuleRegressor, SFRRegressor
from tests.tables import make_table

ESTIMATORS = [
    SFRRegressor(2, n_agents=3, unlabeled=ICR(weight=0.1), solver="sums", random_state=0),
    AutoSFRRegressor(2, ensemble=Ensemble(n_models=2, effects="pairs"), random_state=0),
    RuleRegressor(3, teacher=SFRRegressor(2, tune="evidence", uncertainty=True), random_state=0),
    LapWNNRegressor(20, random_state=0),
]


def through_joblib(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    return joblib.load(file)


def through_skops(model):
    skops = pytest.importorskip("skops.io", reason="skops is in the group extras")
    data = skops.dumps(model)
    names = skops.get_untrusted_types(data=data)
    assert all(name.startswith("dsfr.") for name in names), names
    return skops.loads(data, trusted=names)


@pytest.mark.parametrize("through", [through_joblib, through_skops])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_a_fitted_estimator_comes_back_as_it_was(estimator, through, tmp_path):
    X, full, y = make_table(0, n_rows=60, n_features=2)
    model = estimator.fit(X, y)
    back = through(model)
    np.testing.assert_array_equal(back.predict(X), model.predict(X))
    assert back.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert str(back.model_.explain() if model.model_.predictor.basis.n_rules else "") == str(
        model.model_.explain() if model.model_.predictor.basis.n_rules else ""
    )
    assert back.ledger_ == model.ledger_
    assert back.history_ == model.history_
    assert back.save(tmp_path / "back.dsfr").read_bytes() == model.save(tmp_path / "model.dsfr").read_bytes()
    if not isinstance(model, RuleRegressor):
        new = X[:5], full[:5]
        np.testing.assert_array_equal(back.update(*new).predict(X), model.update(*new).predict(X))
    np.testing.assert_array_equal(back.fit(X, y).predict(X), model.fit(X, y).predict(X))
