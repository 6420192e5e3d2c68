"""Where the time of a fit went, and errors that are added up over batches."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import dsfr
from dsfr import ADMM
from dsfr.estimators.metrics import RunningError
from dsfr.training.fit_report import Stopwatch
from tests.tables import make_table


@pytest.mark.parametrize("told", [{}, {"n_agents": 3}, {"n_agents": 3, "solver": "few-rounds"}, {"unlabeled": None}])
def test_stages_make_up_the_whole_time(told):
    X, _, y = make_table(0)
    model = dsfr.SFRRegressor(random_state=0, **told).fit(X, y)
    report = model.fit_report_
    assert sum(stage.share for stage in report.stages) == pytest.approx(1.0)
    assert sum(stage.seconds for stage in report.stages) == pytest.approx(report.seconds)
    assert all(stage.seconds >= 0.0 for stage in report.stages)
    names = [stage.name for stage in report.stages]
    assert names == [
        name
        for name in ("reading", "survey", "start", "clusters", "widths", "statistics", "weights", "other")
        if name in names
    ]
    assert {"reading", "clusters", "statistics"} <= set(names)


LABELED = 0.25
"""Part of the rows of `make_table` that has labels: passes for labels read these alone."""


def passes(kind=dsfr.SFRRegressor, **told):
    """How often every stage passes over the rows."""
    X, _, y = make_table(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = kind(random_state=0, **told).fit(X, y)
    rounds = sum(info.stage == "clusters" for info in model.history_)
    return {stage.name: stage.rows / len(y) for stage in model.fit_report_.stages}, rounds


@pytest.mark.parametrize("n_agents", [1, 2])
@pytest.mark.parametrize("solver", ["sums", "conjugate", ADMM(max_rounds=9)])
def test_rows_are_counted_as_often_as_they_are_read(n_agents, solver):
    counted, rounds = passes(n_agents=n_agents, solver=solver)
    assert counted["clusters"] == rounds
    assert counted["survey"] == 2.0
    assert counted["widths"] == 1.0
    assert counted["statistics"] == LABELED + 1.0  # labelled rows, then the rows of the pairs
    assert 0.0 < counted["start"] <= 1.0  # the agent that proposes the start reads its own rows
    assert counted.get("weights", 0.0) == 0.0  # rounds work on what was kept


def test_other_ways_to_train_read_rows_as_often_as_they_do():
    assert passes(unlabeled=None, solver="sums")[0]["statistics"] == LABELED
    assert passes(unlabeled="graph", solver="sums")[0]["statistics"] == LABELED + 1.0
    few, _ = passes(n_agents=3, solver="few-rounds")
    assert few["start"] == 2.0  # a clustering of all rows, then the masses of its clusters
    assert few["clusters"] == 3.0  # moments and sums, then a second refinement
    loo, _ = passes(solver="sums", tune="loo")
    assert loo["statistics"] == 3.0 * LABELED + 1.0  # statistics and two grids of candidates; pairs
    bent, _ = passes(dsfr.AutoSFRRegressor, ensemble=dsfr.Ensemble(n_models=2), scaling="range", uncertainty=False)
    assert bent["averaging"] == LABELED + 3.0  # bends once, slopes of two models, and how much these agree
    redrawn, _ = passes(n_agents=2, solver=ADMM(refresh_pairs=True, acceleration=None, max_rounds=5))
    assert redrawn["weights"] == 5.0


def test_a_report_prints_as_a_table():
    watch = Stopwatch()
    with watch.stage("clusters", n_rows=5):
        pass
    lines = str(watch.report(5)).splitlines()
    assert lines[0].split() == ["stage", "seconds", "share", "rows/s"]
    assert lines[1].startswith("clusters")
    assert lines[-1].startswith("all")


@given(st.integers(0, 1000), st.lists(st.integers(0, 20), min_size=1, max_size=6), st.floats(-1e6, 1e6))
def test_errors_of_batches_add_up_to_that_of_all_rows(seed, lengths, offset):
    rng = np.random.default_rng(seed)
    parts = [(offset + rng.standard_normal(n), offset + rng.standard_normal(n)) for n in (*lengths, 3)]
    for true, _ in parts[:-1]:
        true[rng.random(len(true)) < 0.3] = np.nan
    running = RunningError()
    for true, predicted in parts:
        running.add(true, predicted)
    whole = dsfr.nrmse(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    assert running.is_known
    assert running.nrmse == pytest.approx(whole, rel=1e-6)
