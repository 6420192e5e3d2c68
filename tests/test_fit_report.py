"""Where the time of a fit went, and errors that are added up over batches."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dsfr
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


def test_rows_are_counted_as_often_as_they_are_passed_over():
    X, _, y = make_table(0)
    model = dsfr.SFRRegressor(random_state=0, n_agents=2, solver="sums").fit(X, y)
    rows = {stage.name: stage.rows for stage in model.fit_report_.stages}
    n_rounds = sum(info.stage == "clusters" for info in model.history_)
    assert rows["clusters"] == n_rounds * len(y)
    assert rows["survey"] == 2 * len(y)
    assert rows["statistics"] == rows["reading"] == len(y)


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
