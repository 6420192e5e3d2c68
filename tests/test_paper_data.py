"""The paper's tables: a reduced run of the benchmark stays within bands, and real data go through every path."""

import numpy as np
import pytest
from benchmarks.paper_numbers import best_median
from benchmarks.tables import data_home, load

from dsfr import LapWNNRegressor, SFRRegressor, nrmse
from dsfr.datasets import hide_labels, split_evenly

pytestmark = pytest.mark.skipif(data_home() is None, reason="DSFR_DATA_HOME does not name the folder of the data sets")


@pytest.mark.parametrize(
    ("method", "name", "limit"), [("SFR-ICR", "airfoil", 0.80), ("SFR-ICR", "ccpp", 0.30), ("FR", "airfoil", 0.69)]
)
def test_errors_stay_near_the_paper_s(method, name, limit):
    median, _, _ = best_median(method, name, draws=1, seed=0)
    assert 0.2 < median < limit


@pytest.mark.parametrize("name", ["airfoil", "wmsl", "ccpp", "ch", "kch"])
@pytest.mark.parametrize("solver", ["admm", "exact"])
def test_every_table_trains_over_five_agents(name, solver):
    X, y = load(name)
    rng = np.random.default_rng(0)
    few, owners = hide_labels(y, 50, rng), split_evenly(len(y), 5, rng)
    model = SFRRegressor(solver=solver, random_state=0).fit(X, few, agents=owners)
    assert model.termination_ == "converged"
    assert nrmse(np.where(np.isnan(few), y, np.nan), model.predict(X)) < 1.0


@pytest.mark.parametrize(
    "estimator", [SFRRegressor(unlabeled="graph", random_state=0), LapWNNRegressor(random_state=0)]
)
def test_graphs_of_a_large_table_stay_sparse(estimator):
    X, y = load("kch")
    assert np.isfinite(estimator.fit(X, hide_labels(y, 50, np.random.default_rng(0))).predict(X)).all()
