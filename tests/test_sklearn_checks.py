"""All estimators pass scikit-learn's own checks, without an expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from dsfr import AutoSFRRegressor, LapWNNRegressor, RuleRegressor, SFRRegressor


@parametrize_with_checks(
    [
        SFRRegressor(),
        AutoSFRRegressor(),
        SFRRegressor(n_agents=2, solver="sums"),
        SFRRegressor(unlabeled="graph"),
        LapWNNRegressor(),
        RuleRegressor(teacher=SFRRegressor(n_rules=2, tune="evidence", uncertainty=True)),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
