"""More rules than an agent has rows: training ends, and says early what is wrong."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dsfr import RuleRegressor, SFRRegressor
from dsfr.core.clustering.fuzzy_c_means import EMPTY, ClusterSums
from dsfr.training import ADMM, Conjugate, Sums

SOLVERS = [
    Conjugate(max_rounds=1000),
    Sums(max_rounds=1000),
    Sums(max_rounds=1000, acceleration=None),
    ADMM(max_rounds=1000),
    ADMM(max_rounds=1000, acceleration=None),
]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1, 12),
    n_features=st.integers(1, 4),
    n_rules=st.integers(1, 10),
    n_agents=st.integers(1, 4),
    solver=st.sampled_from(SOLVERS),
)
def test_clusters_of_few_rows_converge(seed, n_rows, n_features, n_rules, n_agents, solver):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n_rows, n_features)), rng.standard_normal(n_rows)
    fitted = SFRRegressor(
        n_rules=n_rules,
        n_agents=min(n_agents, n_rows),
        solver=solver,
        random_state=seed,
    ).fit(X, y)
    assert fitted.termination_ == "converged"


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("n_agents", [1, 5])
def test_many_rules_are_told_early_and_converge(solver, n_agents):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 2))
    rounds = []
    estimator = SFRRegressor(
        n_rules=60,
        n_agents=n_agents,
        solver=solver,
        on_round=rounds.append,
        random_state=0,
    )

    def show(message, *_, **__):
        told.append((len(rounds), str(message)))

    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        estimator.fit(X, X.sum(axis=1))
    (before, message), *others = told
    assert before == 0
    assert message.startswith("n_rules=60 is too many for 120 rows")
    assert "Lower n_rules to at most 12" in message
    assert not others
    assert estimator.termination_ == "converged"


def test_two_hundred_rules_on_four_hundred_rows():
    """They once ran 10,000 rounds, and ended with an error bound of 110."""
    X = np.random.default_rng(0).standard_normal((400, 3))
    estimator = SFRRegressor(n_rules=200, n_agents=5, random_state=0)
    with pytest.warns(UserWarning, match="n_rules=200 is too many for 400 rows") as told:
        estimator.fit(X, X.sum(axis=1))
    assert len(told) == 1
    assert estimator.termination_ == "converged"
    assert len(estimator.history_) < 1000


@pytest.mark.parametrize("solver", ["conjugate", "few-rounds"])
def test_enough_rows_are_no_matter_for_a_warning(solver):
    X = np.random.default_rng(0).standard_normal((41, 2))
    SFRRegressor(n_rules=20, n_agents=2, solver=solver, random_state=0).fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="n_rules=20 is too many for 40 rows"):
        SFRRegressor(n_rules=20, n_agents=2, solver=solver, random_state=0).fit(X[1:], X[1:, 0])


def test_empty_clusters_do_not_count_as_moving():
    centers, moved = np.zeros((3, 2)), np.array([[0.1, 0.0], [5.0, 0.0], [0.0, -0.3]])
    mass = np.array([1.0, EMPTY / 2, 2.0])
    assert ClusterSums(mass, mass[:, None] * moved, 0.0).largest_move(centers, moved) == 0.3


@settings(max_examples=10)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1, 6),
    n_features=st.integers(1, 3),
    is_whole=st.booleans(),
    share=st.sampled_from([1.0, 0.5]),
)
@example(seed=0, n_rows=2, n_features=3, is_whole=False, share=1.0)
def test_short_rules_of_few_rows_have_finite_predictions(seed, n_rows, n_features, is_whole, share):
    """Sums of so few rows are those of rounding errors wherever a rule could be split."""
    rng = np.random.default_rng(seed)
    X = (
        rng.integers(0, 3, (n_rows, n_features)).astype(float)
        if is_whole
        else rng.uniform(20, 200, (n_rows, n_features))
    )
    y = np.where(rng.random(n_rows) < share, 3.0 * X[:, 0], np.nan)
    y[0] = 3.0 * X[0, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = RuleRegressor(random_state=0).fit(X, y)
    assert np.isfinite(fitted.predict(X)).all()
