"""Both estimators pass scikit-learn's own checks, without an expected failure."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from dsfr import AutoSFRRegressor, LapWNNRegressor, SFRRegressor


@parametrize_with_checks(
    [
        SFRRegressor(),
        AutoSFRRegressor(),
        SFRRegressor(n_agents=2, solver="sums"),
        SFRRegressor(unlabeled="graph"),
        LapWNNRegressor(),
    ]
)
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)
