"""Several files, each an agent, in one process: what is read, what is refused, and checkpoints on the command line."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner

import dsfr
from dsfr.cli import main
from dsfr.io.agent_files import Columns, find_agent_files, read_movable, read_shards
from dsfr.io.columns import TableError
from tests.tables import make_table


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        X, _, y = make_table(number, n_rows=40, n_labels=10)
        table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": pa.array(y, from_pandas=True)})
        pa.parquet.write_table(table, tmp_path / f"site-{number}.parquet")
    return tmp_path


def fit(folder, *arguments, files="site-*.parquet"):
    command = ["fit", "--engine", "in-process", str(folder / files), "--target", "y", "-o", str(folder / "model.dsfr")]
    return CliRunner().invoke(main, [*command, *map(str, arguments)])


def test_every_file_is_an_agent(folder):
    done = fit(folder)
    assert done.exit_code == 0, done.output
    model = dsfr.load(folder / "model.dsfr")
    assert (model.training["n_agents"], model.training["n_samples"]) == (3, 120)
    assert model.feature_names == ("a", "b")


def test_ranks_share_the_files_of_a_folder(folder):
    shares = [list(find_agent_files(str(folder), rank=rank, n_ranks=2)) for rank in range(2)]
    assert shares == [["site-0", "site-2"], ["site-1"]]


def test_a_checkpoint_resumes_to_the_same_model_and_refuses_others(folder):
    kept = ("--method", "sfr-icr", "--checkpoint", folder / "kept")
    assert fit(folder, *kept).exit_code == 0
    before = dsfr.load(folder / "model.dsfr").predictor.weights
    again = fit(folder, *kept)
    assert again.exit_code == 2
    assert "has the journal of an earlier training" in again.output
    other = fit(folder, *kept, "--resume", "--ridge", "0.5")
    assert other.exit_code == 2
    assert "ridge was None and is 0.5" in other.output
    resumed = fit(folder, *kept, "--resume")
    assert resumed.exit_code == 0, resumed.output
    np.testing.assert_array_equal(dsfr.load(folder / "model.dsfr").predictor.weights, before)


@pytest.mark.parametrize(
    ("arguments", "files", "complaint"),
    [
        (("--resume",), "site-*.parquet", "--resume needs the folder of the checkpoint"),
        (("--agents", "3"), "site-*.parquet", "--agents is for a table in one file"),
        (("--scheduler", "tcp://x:1"), "site-*.parquet", "--scheduler is for --engine dask"),
        ((), "nothing-*.parquet", "there is no file"),
        (("--ignore", "q"), "site-*.parquet", "the table has no column 'q'"),
    ],
)
def test_what_makes_no_sense_is_refused(folder, arguments, files, complaint):
    done = fit(folder, *arguments, files=files)
    assert done.exit_code == 2
    assert complaint in done.output
    assert not (folder / "model.dsfr").exists()


def test_a_checkpoint_needs_an_engine(folder):
    command = ["fit", str(folder / "site-0.parquet"), "--target", "y", "-o", str(folder / "m"), "--checkpoint", "x"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 2
    assert "--checkpoint needs --engine" in done.output


def test_two_files_of_one_name_are_refused(folder):
    (folder / "more").mkdir()
    (folder / "more" / "site-1.parquet").write_bytes((folder / "site-1.parquet").read_bytes())
    done = fit(folder, files="")
    assert done.exit_code == 2
    assert "several files are named site-1" in done.output


def test_an_additional_column_is_named(folder):
    table = pa.parquet.read_table(folder / "site-1.parquet")
    pa.parquet.write_table(table.append_column("c", table["a"]), folder / "site-1.parquet")
    done = fit(folder)
    assert done.exit_code == 2
    assert "site-1.parquet: has the column(s) c that the first file lacks" in done.output
    assert fit(folder, "--features", "a,b").exit_code == 0


@pytest.mark.parametrize("labeled_only", [False, True])
def test_a_file_that_is_read_in_every_pass_has_the_same_rows_and_can_be_sent(folder, labeled_only):
    path = folder / "site-1.parquet"
    columns = Columns(features=("b", "a"), target="y", exact=True, labeled_only=labeled_only)
    held, passed = (read_movable("1", str(path), most, columns=columns) for most in (1e9, 0.0))
    passed = pickle.loads(pickle.dumps(passed))  # noqa: S301
    assert (held.nbytes > 0, passed.nbytes) == (True, 0)
    assert (passed.n_samples, passed.n_features, passed.key) == (held.n_samples, held.n_features, held.key)
    assert passed.rows.n_labeled == held.rows.n_labeled == 10
    for _ in range(2):
        for found, expected in zip(zip(*passed.batches(), strict=True), zip(*held.batches(), strict=True), strict=True):
            np.testing.assert_array_equal(np.concatenate(found), np.concatenate(expected))
    np.testing.assert_array_equal(read_shards({"1": path}, columns)["1"].rows.X, held.rows.X)


@pytest.mark.parametrize("most", [0.0, 1e9])
def test_a_file_without_rows_is_named(folder, most):
    path = folder / "site-1.parquet"
    pa.parquet.write_table(pa.parquet.read_table(path)[:0], path)
    with pytest.raises(TableError, match=r"site-1.parquet: has a header and no rows"):
        read_movable("1", str(path), most, columns=Columns(features=("a", "b"), target="y", exact=True))
