"""Rounds arrive where people look at trainings."""

import sys
import types

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.model_selection import GridSearchCV

from dsfr import SFRRegressor, nrmse_scorer
from dsfr.cli import main
from dsfr.core.consensus.admm import RoundInfo
from dsfr.estimators.monitors import MLflow, TensorBoard, metrics_of, together
from tests.tables import make_table

pytest.importorskip("tensorboardX")
Event = pytest.importorskip("tensorboardX.proto.event_pb2").Event


def scalars_in(folder):
    """What TensorBoard would read: tag, step and value of every record in the event files."""
    found = []
    for path in folder.iterdir():
        data, place = path.read_bytes(), 0
        while place < len(data):
            length = int.from_bytes(data[place : place + 8], "little")
            event = Event.FromString(data[place + 12 : place + 12 + length])
            found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
            place += 12 + length + 4
    return found


def expected_of(history):
    return [(name, info.round, value) for info in history for name, value in metrics_of(info).items()]


def test_tensorboard_gets_every_round(tmp_path):
    X, _, y = make_table(0)
    with TensorBoard(tmp_path / "runs") as on_round:
        estimator = SFRRegressor(n_agents=3, on_round=on_round, random_state=0).fit(X, y)
    found, expected = scalars_in(tmp_path / "runs"), expected_of(estimator.history_)
    assert [entry[:2] for entry in found] == [entry[:2] for entry in expected]
    np.testing.assert_allclose([entry[2] for entry in found], [entry[2] for entry in expected], rtol=1e-6)


def test_the_command_writes_for_tensorboard(tmp_path):
    X, _, y = make_table(0)
    rows = "\n".join(f"{a},{b}" for a, b in zip(X[:, 0], y, strict=True)).replace("nan", "")
    (tmp_path / "t.csv").write_text(f"a,y\n{rows}\n")
    arguments = [str(tmp_path / "t.csv"), "--target", "y", "-o", str(tmp_path / "m.dsfr")]
    result = CliRunner().invoke(main, ["fit", *arguments, "--tensorboard", str(tmp_path / "runs")])
    assert result.exit_code == 0, result.output
    assert any(tag == "clusters/objective" for tag, *_ in scalars_in(tmp_path / "runs"))


@pytest.fixture
def mlflow(monkeypatch):
    """A stand-in with the one function that is used, recording what it is given."""
    fake = types.ModuleType("mlflow")
    fake.logged = []
    fake.log_metrics = lambda metrics, step: fake.logged.append((metrics, step))
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    return fake


def test_mlflow_gets_every_round(mlflow):
    X, _, y = make_table(0)
    estimator = SFRRegressor(n_agents=2, on_round=MLflow(), random_state=0).fit(X, y)
    assert mlflow.logged == [(metrics_of(info), info.round) for info in estimator.history_]


def test_a_search_shares_one_monitor(mlflow):
    X, y, _ = make_table(0)
    GridSearchCV(
        SFRRegressor(on_round=MLflow(), random_state=0), {"ridge": [0.1, 1.0]}, scoring=nrmse_scorer, cv=2
    ).fit(X, y)
    assert len(mlflow.logged) > 10


def test_unknown_numbers_are_not_written():
    info = RoundInfo("weights", 1, float("nan"), float("inf"), 0.5, float("inf"))
    assert metrics_of(info) == {"weights/dual_residual": 0.5}


def test_several_callbacks_are_called_in_order():
    said = []
    together(lambda info: said.append(("a", info)), lambda info: said.append(("b", info)))("round")
    assert said == [("a", "round"), ("b", "round")]


def test_without_the_packages_the_cure_is_told(monkeypatch, tmp_path):
    for name in ("mlflow", "tensorboardX", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match="pip install mlflow"):
        MLflow()
    with pytest.raises(ImportError, match=r"dsfr\[tensorboard\]"):
        TensorBoard(tmp_path)
