"""All estimators pass scikit-learn's own checks; one on weights fails as expected, for the reason given."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dsfr import AutoSFRRegressor, Ensemble, LapWNNRegressor, RuleRegressor, SFRRegressor

EQUIVALENCE = "check_sample_weight_equivalence_on_dense_data"


def expected_failures(estimator):
    """The check takes rows of weight 0 away and repeats others; laws of weights are in laws/test_sample_weight.py."""
    if isinstance(estimator, LapWNNRegressor):
        return {}
    chooses = isinstance(estimator, (AutoSFRRegressor, RuleRegressor))
    copies = "copies of a row count once where labels choose, and weights are relative"
    rows = "weights are those of labels: a row of weight 0 is unlabelled and still takes part in scaling and clustering"
    return {EQUIVALENCE: copies if chooses else rows}


@parametrize_with_checks(
    [
        SFRRegressor(),
        AutoSFRRegressor(ensemble=Ensemble(n_models=2, effects="single")),
        SFRRegressor(n_agents=2, solver="sums"),
        SFRRegressor(unlabeled="graph"),
        LapWNNRegressor(),
        RuleRegressor(teacher=SFRRegressor(n_rules=2, tune="evidence", uncertainty=True)),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([AutoSFRRegressor()], expected_failed_checks=expected_failures)
def test_scikit_learn_accepts_the_automatic_estimator_with_its_defaults(estimator, check):
    check(estimator)
