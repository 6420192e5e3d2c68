"""The matrix of bad input: every way a table comes x every odd column is a clear error or documented behaviour."""

import importlib.util
import json
import re

import pytest

import dsfr
from dsfr import SFRRegressor
from tests.bad_input import EXPECTED, frame_of, outcome
from tests.mpi_jobs import MPIEXEC, program
from tests.test_cli import run

HAS_DASK = importlib.util.find_spec("distributed") is not None


def small():
    return SFRRegressor(2, random_state=0)


def check(found):
    wrong = {cell: said for cell, said in found.items() if not re.search(EXPECTED[cell], said)}
    assert set(found) == set(EXPECTED)
    assert not wrong


def test_frames():
    frames = {cell: frame_of(cell) for cell in EXPECTED}
    check({cell: outcome(lambda X=X: small().fit(X.drop(columns="y"), X["y"]).model_) for cell, X in frames.items()})


def test_the_command_line(tmp_path):
    found = {}
    for cell in EXPECTED:
        source, model = tmp_path / "rows.csv", tmp_path / f"{cell}.dsfr"
        frame_of(cell).to_csv(source, index=False)
        result = run("fit", source, "--target", "y", "--method", "sfr-icr", "--rules", 2, "-o", model)
        if result.exit_code == 0:
            said = result.stderr.strip().removeprefix("Warning: ")
            found[cell] = f"fitted: {', '.join(dsfr.load(model).feature_names)} | {said}"
        else:
            assert result.exit_code == 2
            found[cell] = "refused: " + " ".join(result.stderr.removeprefix("Error: ").split())
    check(found)


def write_parts(folder, cell):
    """Two files of one table: Parquet, which has types, or CSV where Parquet cannot have the columns."""
    folder.mkdir()
    frame = frame_of(cell)
    for number, part in enumerate((frame[: len(frame) // 2], frame[len(frame) // 2 :])):
        if cell == "duplicate":
            part.to_csv(folder / f"part-{number}.csv", index=False)
        else:
            part.to_parquet(folder / f"part-{number}.parquet")
    return folder


def test_streams(tmp_path):
    folders = {cell: write_parts(tmp_path / cell, cell) for cell in EXPECTED}
    check({cell: outcome(lambda at=at: small().fit(dsfr.scan(at, target="y")).model_) for cell, at in folders.items()})


@pytest.mark.slow
@pytest.mark.skipif(not HAS_DASK, reason="needs dask")
def test_dask():
    import dask.dataframe as dd  # noqa: PLC0415
    import distributed  # noqa: PLC0415

    found = {}
    with distributed.Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):
        for cell in EXPECTED:
            frame = frame_of(cell)

            def fit(frame=frame):
                lazy = dd.from_pandas(frame.drop(columns="y"), npartitions=2)
                y = dd.from_pandas(frame["y"], npartitions=2)
                return SFRRegressor(2, engine="dask", solver="few-rounds", random_state=0).fit(lazy, y).model_

            found[cell] = outcome(fit)
    check(found)


@pytest.mark.slow
@pytest.mark.skipif(not MPIEXEC.exists(), reason="needs mpich")
def test_mpi(tmp_path):
    for cell in EXPECTED:
        write_parts(tmp_path / cell, cell)
    code, said, error, _ = program(2, "bad_input", tmp_path)
    assert code == 0, error
    check(json.loads(said))
