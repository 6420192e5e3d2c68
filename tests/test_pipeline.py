"""The pipeline of ``dsfr fit``: its processes are closed, and names of engines agree everywhere."""

import pytest

from dsfr.cli.distributed import ENGINE_NAMES, training_processes
from dsfr.engines.mpi import ranks
from dsfr.io.agent_files import Columns
from dsfr.pipeline.engines import ENGINES, EngineOptions
from dsfr.pipeline.processes import open_processes


class FakeRanks:
    """Writes down what is done with the ranks of an MPI job."""

    calls: list
    rank, size = 0, 2

    def __init__(self, comm=None):
        self.calls.append("open")

    def share_cores(self):
        self.calls.append("share cores")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        self.calls.append("close" if error is None else error)


@pytest.fixture
def fake_ranks(monkeypatch):
    monkeypatch.setattr(FakeRanks, "calls", [], raising=False)
    monkeypatch.setattr(FakeRanks, "rank", 0)
    monkeypatch.setattr(ranks, "Ranks", FakeRanks)
    return FakeRanks


def test_ranks_are_opened_once_and_closed(fake_ranks):
    with open_processes("mpi"):
        assert fake_ranks.calls == ["open", "share cores"]
    assert fake_ranks.calls == ["open", "share cores", "close"]


def test_after_an_error_ranks_leave_and_nothing_waits_for_closing(fake_ranks):
    error = ValueError("a file is missing")
    with pytest.raises(ValueError, match="a file is missing"), open_processes("mpi"):
        raise error
    assert fake_ranks.calls == ["open", "share cores", error]


@pytest.mark.parametrize(("rank", "expected"), [(0, ValueError), (1, SystemExit)])
def test_only_the_first_rank_raises_what_all_have_met(fake_ranks, monkeypatch, rank, expected):
    monkeypatch.setattr(FakeRanks, "rank", rank)
    with pytest.raises(expected), training_processes("mpi"):
        raise ValueError("no labels")


@pytest.mark.parametrize("engine", [None, "in-process", "dask"])
def test_other_engines_train_from_one_process(fake_ranks, engine):
    with open_processes(engine) as processes:
        assert (processes.rank, processes.size) == (0, 1)
        assert processes.run_on_all(lambda: 3) == 3
        assert processes.broadcast("text", 0) == "text"
    assert fake_ranks.calls == []


def test_the_command_offers_the_engines_there_are():
    assert tuple(ENGINES) == ENGINE_NAMES


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"checkpoint": "kept"}, "--checkpoint needs --engine"),
        ({"engine": "mpi", "scheduler": "tcp://x:1"}, "--scheduler is for --engine dask, not for mpi"),
        ({"engine": "mpi", "resume": True}, "--resume needs the folder of the checkpoint"),
    ],
)
def test_options_that_have_no_effect_are_refused(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        EngineOptions(**options)


def test_columns_are_the_same_on_another_process():
    columns = Columns(features=("a", "ü"), target="y", exact=True, ignored=("z",), delimiter=";")
    assert Columns.from_json(columns.to_json()) == columns
