"""The command line on folders, arrays and large files, good and bad: they are read in batches."""

import gzip
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import dsfr
from dsfr.cli.console import FitWatch
from dsfr.core.consensus.admm import RoundInfo
from dsfr.io import agent_rows
from tests.tables import make_table
from tests.test_cli import PAPER, refused, run


def make_frame(seed=0, n_rows=150):
    X, truth, y = make_table(seed, n_rows=n_rows)
    frame = pd.DataFrame(X, columns=["speed", "angle", "depth"])
    frame["site"] = np.where(np.arange(n_rows) % 3 == 0, "north", "south")
    frame["noise"] = y
    return frame, truth


@pytest.fixture
def frame():
    return make_frame()[0]


@pytest.fixture
def folder(frame, tmp_path):
    (tmp_path / "rows").mkdir()
    for i, start in enumerate(range(0, 150, 50)):
        frame[start : start + 50].to_parquet(tmp_path / "rows" / f"part-{i}.parquet")
    return tmp_path / "rows"


@pytest.fixture
def table(frame, tmp_path):
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


OPTIONS = (
    (),
    (*PAPER, "--agents", 3),
    (*PAPER, "--agent-column", "site"),
    (*PAPER, "--labels", 12),
    ("--labels", 12, "--method", "fr", "--agents", 2),
    ("--method", "sfr-g", "--solver", "sums"),
    ("--method", "lapwnn", "--rules", 1),
)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_folder_gives_the_model_of_the_same_rows_in_one_file(frame, folder, table, tmp_path, monkeypatch, options):
    monkeypatch.setattr("dsfr.cli.training.SLOW_SECONDS", np.inf)  # on a busy machine only one of them may be slow
    rest = () if "--agent-column" in options else ("--ignore", "site")
    outputs = []
    for source, model in ((folder, tmp_path / "folder.dsfr"), (table, tmp_path / "table.dsfr")):
        result = run("fit", source, "--target", "noise", *rest, *options, "-o", model)
        assert result.exit_code == 0, result.output
        text = " ".join(result.output.split())  # a long path breaks lines
        outputs.append(re.sub(r"\S+\.dsfr \([^)]*\)", "", text).split())
    streamed, whole = (dsfr.load(tmp_path / name) for name in ("folder.dsfr", "table.dsfr"))
    np.testing.assert_array_equal(streamed.predict(frame), whole.predict(frame))
    assert outputs[0] == outputs[1]  # errors on used and hidden labels among it
    assert streamed.feature_names == whole.feature_names


def test_a_large_file_is_streamed_and_gives_the_same(table, frame, tmp_path, monkeypatch):
    told = ("--target", "noise", "--ignore", "site", *PAPER, "--agents", 2, "-o")
    assert run("fit", table, *told, tmp_path / "whole.dsfr").exit_code == 0
    monkeypatch.setattr(agent_rows, "MEMORY_BYTES", 100)
    assert run("fit", table, *told, tmp_path / "streamed.dsfr").exit_code == 0
    whole, streamed = (dsfr.load(tmp_path / f"{name}.dsfr") for name in ("whole", "streamed"))
    np.testing.assert_array_equal(whole.predict(frame), streamed.predict(frame))


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_predictions_are_streamed_into_one_file(folder, frame, tmp_path, ending):
    model, output = tmp_path / "m.dsfr", tmp_path / f"predicted.{ending}"
    assert run("fit", folder, "--target", "noise", "--ignore", "site", *PAPER, "-o", model).exit_code == 0
    result = run("predict", model, folder, "-o", output)
    assert result.exit_code == 0, result.output
    assert "150 predictions" in result.stderr
    back = pd.read_parquet(output) if ending == "parquet" else pd.read_csv(output)
    np.testing.assert_array_equal(back["prediction"], dsfr.load(model).predict(frame))
    np.testing.assert_array_equal(back["site"], frame["site"])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["rows", "m.dsfr", output.name])
    shown = run("predict", model, folder)
    assert shown.stdout == (back.to_csv(index=False) if ending == "parquet" else _text(output))


def _text(path):
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def test_arrays_have_numbered_columns(frame, tmp_path):
    columns = ["speed", "angle", "depth", "noise"]
    np.save(tmp_path / "rows.npy", frame[columns].to_numpy())
    model = tmp_path / "m.dsfr"
    assert run("fit", tmp_path / "rows.npy", "--target", "x3", "-o", model).exit_code == 0
    assert dsfr.load(model).feature_names == ("x0", "x1", "x2")


def write_parts(folder, *texts):
    folder.mkdir()
    for i, text in enumerate(texts):
        (folder / f"part-{i}.csv").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ((), "has no file of rows: their names end in .csv"),
        (("a,y\n1,2\n", "a,y\n1,2\nx,3\n"), "'x' in row 2 of part-1.csv"),
        (("a,y\n1,2\n", "a,y\n1,2\n2,many\n"), "'many' in row 2 of part-1.csv"),
        (("a,y\n1,2\n", "a,y\n,3\n"), "too few values in a (1 values)"),
        (("a,y\n1,2\n", "a,y\ninf,3\n"), "column 'a' is infinite in row 1 of part-1.csv"),
        (("a,y\n1,2\n", "b,y\n1,2\n"), "part-1.csv lacks the column(s) a of the first file"),
        (("a,y\n1,2\n", ""), "part-1.csv is empty"),
        (("a,y\n", "a,y\n"), "a header and no rows"),
        (("a,y\n1,\n", "a,y\n2,\n"), "no row is labelled"),
        (("b,z\n1,2\n",), "the table has no column 'y'"),
        (("a,a,y\n1,2,3\n",), "several columns named a"),
        (("a\0,y\n1,2\n",), "not a text file"),
    ],
)
def test_bad_folders_are_refused_with_file_and_row(tmp_path, texts, message):
    folder = write_parts(tmp_path / "rows", *texts)
    assert message in refused("fit", folder, "--target", "y", "-o", tmp_path / "m.dsfr")
    assert not (tmp_path / "m.dsfr").exists()


def test_damaged_files_are_refused_by_name(tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.parquet").write_bytes(b"PAR1 and then nothing that belongs there")
    assert "a.parquet cannot be read" in refused("fit", tmp_path / "rows", "--target", "y", "-o", tmp_path / "m.dsfr")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2)))
    assert "cube.npy holds float64 of shape (2, 2, 2)" in refused(
        "fit", tmp_path / "cube.npy", "--target", "x0", "-o", tmp_path / "m.dsfr"
    )
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    assert "objects.npy cannot be read" in refused(
        "fit", tmp_path / "objects.npy", "--target", "x0", "-o", tmp_path / "m.dsfr"
    )


def test_predicting_from_a_folder_without_a_feature_is_refused_and_leaves_nothing(folder, tmp_path):
    model, output = tmp_path / "m.dsfr", tmp_path / "out.csv"
    assert run("fit", folder, "--target", "noise", "--ignore", "site", *PAPER, "-o", model).exit_code == 0
    other = write_parts(tmp_path / "other", "speed,angle,depth\n1,2,3\n", "speed,angle,depth\n1,2,three\n")
    assert "'three' in row 1 of part-1.csv" in refused("predict", model, other, "-o", output)
    lacking = write_parts(tmp_path / "lacking", "speed,angle\n1,2\n")
    assert "depth" in refused("predict", model, lacking, "-o", output)
    assert not output.exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".dsfr")]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_an_interrupted_prediction_leaves_no_half_written_file(folder, tmp_path):
    model, output = tmp_path / "m.dsfr", tmp_path / "out.csv"
    assert run("fit", folder, "--target", "noise", "--ignore", "site", "-o", model).exit_code == 0
    rng = np.random.default_rng(0)
    large = pd.DataFrame(rng.standard_normal((2_000_000, 3)), columns=["speed", "angle", "depth"])
    (tmp_path / "large").mkdir()
    large.to_parquet(tmp_path / "large" / "rows.parquet")
    command = [sys.executable, "-m", "dsfr", "predict", str(model), str(tmp_path / "large"), "-o", str(output)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for _ in range(600):  # until something is being written
        if any(path.name.startswith(".dsfr") and path.stat().st_size for path in tmp_path.iterdir()):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in told
    assert not output.exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".dsfr")]


def test_progress_tells_rows_per_second():
    said = []
    watch = FitWatch(said.append)
    watch.on_rows(3_000_000)
    for number in (1, 2):
        watch.on_round(RoundInfo("clusters", number, 1.0, 0.0, 0.0, 0.5))
    assert re.fullmatch(r"reading: 3.00 million rows, .* rows/s", said[0])
    assert "rows/s" not in said[1]
    assert re.search(r"clusters: round 2, .*rows/s", said[2])


def test_empty_cells_train_and_predict_and_noise_is_given_by_column(tmp_path):
    X, _, y = make_table(0, n_rows=80, n_features=3)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    source, model = tmp_path / "gaps.csv", tmp_path / "m.dsfr"
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y).to_csv(source, index=False)
    assert run("fit", source, "--target", "y", "--method", "sfr-icr", "-o", model).exit_code == 0
    loaded = dsfr.load(model)
    out = tmp_path / "p.csv"
    assert run("predict", model, source, "-o", out, "--input-std", "b=0.5").exit_code == 0
    found = pd.read_csv(out)["prediction"].to_numpy()
    np.testing.assert_allclose(found, loaded.predict(X, X_std={"b": 0.5}), rtol=1e-9)
    assert not np.allclose(found, loaded.predict(X))
    np.testing.assert_allclose(loaded.predict(dsfr.scan(source), X_std={"b": 0.5}), found, rtol=1e-9)
    for text, message in (("d=1", "with a column of a, b, c"), ("b=x", "a number >= 0"), ("b=-1", "a number >= 0")):
        assert message in refused("predict", model, source, "--input-std", text)
