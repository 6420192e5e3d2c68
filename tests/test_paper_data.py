"""Training on the paper's real tables: over five agents, and with sparse graphs of a large table."""

import os

import numpy as np
import pytest

from dsfr import LapWNNRegressor, SFRRegressor, nrmse
from dsfr.paper.datasets import hide_labels, load_values, split_evenly

pytestmark = pytest.mark.skipif(
    not os.environ.get("DSFR_DATA_HOME"), reason="DSFR_DATA_HOME does not name the folder of the data sets"
)


@pytest.mark.parametrize("name", ["airfoil", "wmsl", "ccpp", "ch", "kch"])
@pytest.mark.parametrize("solver", ["conjugate", "sums"])
def test_every_table_trains_over_five_agents(name, solver):
    values = load_values(name)
    rng = np.random.default_rng(0)
    few, owners = hide_labels(values.y, 50, rng), split_evenly(len(values.y), 5, rng)
    model = SFRRegressor(solver=solver, random_state=0).fit(values.X, few, agents=owners)
    assert model.termination_ == "converged"
    assert nrmse(np.where(np.isnan(few), values.y, np.nan), model.predict(values.X)) < 1.0


@pytest.mark.parametrize(
    "estimator", [SFRRegressor(unlabeled="graph", random_state=0), LapWNNRegressor(random_state=0)]
)
@pytest.mark.slow
def test_graphs_of_a_large_table_stay_sparse(estimator):
    values = load_values("kch")
    few = hide_labels(values.y, 50, np.random.default_rng(0))
    assert np.isfinite(estimator.fit(values.X, few).predict(values.X)).all()
