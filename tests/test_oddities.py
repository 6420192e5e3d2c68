"""Files, values and terminals as they come: what once went wrong must not again."""

import errno
import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.model_selection import GridSearchCV

import dsfr
from dsfr import SFRRegressor
from dsfr.io.columns import numbers
from dsfr.io.tables import read_table
from dsfr.storage.atomic import replacing
from tests.tables import make_table
from tests.test_cli import PAPER, refused, run, write


@pytest.fixture
def model(tmp_path):
    source = write(tmp_path / "train.csv", "x,y\n" + "\n".join(f"{i},{i % 7}" for i in range(40)))
    path = tmp_path / "model.dsfr"
    assert run("fit", source, "--target", "y", *PAPER, "-o", path).exit_code == 0
    return path


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_full_disk_is_told_with_the_file_and_leaves_the_old_one(tmp_path, model, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    before = model.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    source = write(tmp_path / "rows.csv", "x,y\n" + "\n".join(f"{i},{i % 5}" for i in range(40)))
    said = refused("fit", source, "--target", "y", "-o", model)
    assert f"No space left on device: {model} was not written; free disk space, or write elsewhere" in said
    assert "Errno" not in said
    assert model.read_bytes() == before
    assert not list(tmp_path.glob(".dsfr-*"))


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_has_the_permissions_of_any_other(tmp_path, mask):
    code = (
        "import sys; from dsfr.storage.atomic import replacing\nwith replacing(sys.argv[1]) as file: file.write(b'x')"
    )
    command = ["sh", "-c", f'umask {mask:04o} && exec "$@"', "sh", sys.executable, "-c", code, tmp_path / "new"]
    subprocess.run(command, check=True)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666 & ~mask


def test_writing_does_not_touch_the_mask_of_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("another thread may create a file just now"))
    with replacing(tmp_path / "new") as file:
        file.write(b"x")


def test_a_replaced_file_keeps_its_permissions_even_while_it_is_written(tmp_path):
    path = write(tmp_path / "secret", "old")
    path.chmod(0o600)
    with replacing(path) as file:
        file.write(b"new")
        assert [other.stat().st_mode & 0o777 for other in tmp_path.iterdir()] == [0o600, 0o600]
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = write(tmp_path / "kept", "old")

    def interrupted():
        with replacing(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [other.name for other in tmp_path.iterdir()] == ["kept"]
    assert path.read_text() == "old"


@pytest.mark.parametrize("owner", ["NA", "nan", "None", "null"])
def test_an_owner_may_be_called_what_elsewhere_means_missing(tmp_path, owner):
    rows = "\n".join(f"{i},{i % 7},{owner if i % 2 else 'EU'}" for i in range(40))
    source = write(tmp_path / "owners.csv", f"x,y,region\n{rows}\n")
    out = tmp_path / "m.dsfr"
    assert run("fit", source, "--target", "y", "--agent-column", "region", *PAPER, "-o", out).exit_code == 0
    assert dsfr.load(out).training["n_agents"] == 2


@pytest.mark.parametrize("column", [["a", "  ", "b"], ["a", None, "b"], [1.0, np.nan, 2.0], [1, None, 2]])
def test_a_row_without_an_owner_is_refused(tmp_path, column):
    source = tmp_path / "owners.parquet"
    pa.parquet.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 3.0], "region": column}), source)
    told = ["--target", "y", "--agent-column", "region", "-o", tmp_path / "m.dsfr"]
    assert "column 'region' has no name in row 2" in refused("fit", source, *told)


def test_standard_output_as_a_file_is_written_in_place(model, tmp_path):
    source = write(tmp_path / "in.csv", "x\n1\n2\n")
    command = [sys.executable, "-m", "dsfr", "predict", str(model), str(source), "-o", "/dev/stdout"]
    with (tmp_path / "out.csv").open("wb") as out:
        subprocess.run(command, stdout=out, stderr=subprocess.PIPE, check=True)
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 3
    assert os.path.islink("/dev/stdout")


@pytest.mark.parametrize(
    "header",
    ["\nx,id,flag", 'x,"id\nfoo",flag', "x,i\u0085d,flag", '"x",id,"flag"'],
    ids=["blank", "newline", "nel", "quoted"],
)
def test_columns_pass_through_unchanged_whatever_the_header(model, tmp_path, header):
    source = write(tmp_path / "odd.csv", f"{header}\n1,007,true\n3,2020-01-01,0012\n")
    out = tmp_path / "out.csv"
    assert run("predict", model, source, "-o", out).exit_code == 0
    assert pd.read_csv(out, dtype=str).iloc[:, 1:3].to_numpy().tolist() == [["007", "true"], ["2020-01-01", "0012"]]


def test_an_empty_line_in_a_single_column_is_a_missing_value(model, tmp_path):
    source = write(tmp_path / "gap.csv", "x\n1\n\n3\n")
    lines = run("predict", model, source).stdout.splitlines()
    assert lines[2].startswith(",")
    assert np.isfinite(float(lines[2].split(",")[1]))


def test_tabs_are_found_and_can_be_said(tmp_path):
    source = write(tmp_path / "tab.csv", "x\ty\n1\t2\n2\t3\n")
    assert r"is read as separated by '\t'" in run("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr").stderr
    assert run("fit", source, "--target", "y", "--delimiter", r"\t", "-o", tmp_path / "m.dsfr").exit_code == 0
    result = run("predict", tmp_path / "m.dsfr", source, "--delimiter", r"\t")
    assert result.stdout.splitlines()[0] == "x\ty\tprediction"


def test_numpy_numbers_as_settings_can_be_saved(tmp_path):
    X, _, y = make_table(0)
    search = GridSearchCV(SFRRegressor(random_state=0), {"n_rules": np.arange(2, 4), "ridge": np.array([0.1, 1.0])})
    best = search.fit(X[~np.isnan(y)], y[~np.isnan(y)]).best_estimator_
    settings = dsfr.load(best.save(tmp_path / "m.dsfr")).settings
    assert isinstance(settings["n_rules"], int)
    assert isinstance(settings["ridge"], float)


def test_more_weights_than_fit_are_refused_at_once():
    X = np.random.default_rng(0).standard_normal((10, 2000))
    with pytest.raises(
        ValueError, match=r"10005 weights \(from 2000 features\) are too many.*fewer rules or fewer col"
    ):
        SFRRegressor().fit(X, X[:, 0])


def test_many_column_names_are_not_all_listed(tmp_path):
    source = write(tmp_path / "wide.csv", ",".join(f"c{j}" for j in range(100)) + "\n" + ",".join(["1"] * 100) + "\n")
    message = refused("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr")
    assert "c19 and 80 more" in message
    assert "c50" not in message


@pytest.mark.parametrize("unit", [1e-300, 1e-200, 1e60, 1e97])
@pytest.mark.parametrize("solver", ["conjugate", "sums"])
def test_targets_in_extreme_units_are_learnt_like_others(unit, solver):
    X, _, y = make_table(0)
    plain = SFRRegressor(n_agents=3, solver=solver, random_state=0).fit(X, y).predict(X)
    extreme = SFRRegressor(n_agents=3, solver=solver, random_state=0).fit(X, unit * y).predict(X)
    np.testing.assert_allclose(extreme / unit, plain, rtol=1e-3)


def test_predictions_stay_finite_however_far_outside():
    X = np.arange(40.0)[:, None] * np.array([1e-12, 1e-11, 1e-320])
    model = SFRRegressor(random_state=0).fit(X, np.arange(40.0))
    assert np.isfinite(model.predict([[1e300, -1e300, 1e300]])).all()
    assert np.isfinite([rule.coefficients for rule in model.rules_]).all()


def test_kinds_of_files_are_told_by_their_contents(model, tmp_path):
    text = "x\n" + "\n".join(map(str, range(9))) + "\n"
    (tmp_path / "a.csv").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "b.CSV.GZ").write_bytes(gzip.compress(text.encode()))
    pa.parquet.write_table(pa.table({"x": np.arange(9.0)}), tmp_path / "c.csv")
    outputs = [run("predict", model, tmp_path / name).stdout for name in ("a.csv", "b.CSV.GZ", "c.csv")]
    assert outputs[0] == outputs[1]
    assert all(len(output.splitlines()) == 10 for output in outputs)
    assert "is not a text file" in refused("predict", model, model)
    assert run("predict", model, tmp_path / "a.csv", "-o", tmp_path / "P.CSV.GZ").exit_code == 0
    assert gzip.decompress((tmp_path / "P.CSV.GZ").read_bytes()).decode() == outputs[0]
    assert "its ending must be" in refused("predict", model, tmp_path / "a.csv", "-o", tmp_path / "p.xlsx")


def test_a_pipe_can_be_read(model, tmp_path):
    command = f"{sys.executable} -m dsfr predict {model} <(printf 'x\\n1\\n2\\n')"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, None], pa.decimal128(10, 2)),
        pa.array(["1", " 2 ", None], pa.string_view()),
        pa.array(["1", "2", ""], pa.large_string()),
        pa.array([1, 2, None], pa.int8()),
        pa.array([1.0, 2.0, None], pa.float16()),
    ],
    ids=lambda column: str(column.type),
)
def test_numbers_of_every_type_are_read(column):
    np.testing.assert_array_equal(numbers(pa.table({"a": column}), "a"), [1.0, 2.0, np.nan])


def test_large_whole_numbers_are_read():
    assert numbers(pa.table({"a": pa.array([2**62])}), "a")[0] == 2.0**62


def test_python_s_own_ways_to_write_numbers_are_text(tmp_path):
    with pytest.raises(ValueError, match="'1_000' in row 2"):
        numbers(read_table(write(tmp_path / "t.csv", "a,b\n1,1\n1_000,2\n")), "a")


def test_frames_without_names_go_through_a_saved_model(tmp_path):
    X, _, y = make_table(0)
    estimator = SFRRegressor(random_state=0).fit(pd.DataFrame(X), y)
    loaded = dsfr.load(estimator.save(tmp_path / "m.dsfr"))
    np.testing.assert_array_equal(loaded.predict(pd.DataFrame(X)), estimator.predict(pd.DataFrame(X)))
    with pytest.raises(ValueError, match="cannot be read as numbers"):
        loaded.predict(pd.DataFrame({"x0": [pd.NA], "x1": [1], "x2": [1]}))


def test_nested_metadata_is_refused(tmp_path):
    X, _, y = make_table(0)
    whole = SFRRegressor(random_state=0).fit(X, y).save(tmp_path / "m.dsfr").read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    header["__metadata__"]["dsfr"] = "[" * 100_000
    text = json.dumps(header).encode()
    (tmp_path / "n.dsfr").write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + length :])
    with pytest.raises(dsfr.ModelFileError):
        dsfr.load(tmp_path / "n.dsfr")


def test_terminals_without_our_letters_are_no_error(tmp_path):
    source = write(tmp_path / "t.csv", "größe,y\n" + "".join(f"{x},{2 * x + 1}\n" for x in range(20)))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "dsfr"]
    subprocess.run(
        [*command, "fit", source, "--target", "y", "-o", "m.dsfr"], cwd=tmp_path, env=environment, check=True
    )
    done = subprocess.run(
        [*command, "explain", "m.dsfr"], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert b"THEN y = " in done.stdout
    assert b"*gr" in done.stdout


def test_a_narrow_terminal_shows_every_value(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("FORCE_COLOR", "1")
    source = write(tmp_path / "t.csv", "x,y\n1,2\n2,3\n3,\n")
    result = run("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr")
    assert "…" not in result.stdout
    assert "converged" in result.stdout
