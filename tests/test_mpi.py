"""Training over real MPI processes: the same model, errors on all ranks, resuming after kills."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import dsfr
from tests.mpi_jobs import MPIEXEC, ROOT, SECONDS, TWO_MACHINES, mpiexec, program
from tests.tables import make_table, owners_of

pytest.importorskip("mpi4py", reason="the MPI engine needs mpi4py: pip install 'dsfr[mpi-wheel]'")
pytestmark = pytest.mark.skipif(not MPIEXEC.exists(), reason="no mpiexec beside this Python: pip install mpich")


def dsfr_fit(n_ranks, *arguments):
    return mpiexec(n_ranks, sys.executable, "-m", "dsfr", "fit", "--engine", "mpi", *arguments)


@pytest.mark.slow
def test_every_kind_of_training_equals_the_one_in_process():
    code, out, err, _ = program(4, "equality")
    assert code == 0, err
    found = json.loads(out)
    assert len(found) == 18
    assert max(found.values()) < 1e-8, found


def test_a_rank_may_have_several_agents():
    code, out, err, _ = program(2, "several")
    assert code == 0, err
    assert json.loads(out)["apart"] < 1e-8
    assert json.loads(out)["agents"] == 5


@pytest.mark.slow
def test_ranks_with_different_graphs_are_an_error():
    code, _, err, _ = program(4, "failing", "graph")
    assert code != 0
    assert "ranks have different graphs: use the same topology" in err


@pytest.mark.parametrize("launcher", [(), TWO_MACHINES], ids=["one machine", "two machines"])
@pytest.mark.slow
def test_more_ranks_than_cores_give_the_same_model(launcher):
    code, out, err, _ = program(4, "several", n_cores=1, launcher=launcher)
    assert code == 0, err
    assert json.loads(out)["oversubscribed"]
    assert json.loads(out)["apart"] < 1e-8


def test_ranks_with_a_core_each_are_not_oversubscribed():
    code, out, err, _ = program(2, "several", launcher=TWO_MACHINES[:4])
    assert code == 0, err
    assert not json.loads(out)["oversubscribed"]


def test_an_exception_in_a_task_is_the_same_error_on_all_ranks():
    code, out, _, _ = program(3, "failing", "task")
    assert code == 2
    assert json.loads(out) == {
        "error": "RankError: rank 1: ZeroDivisionError: nothing to divide by (in task 'cluster_sums' of agent 'site-1')"
    }


@pytest.mark.parametrize(
    ("how", "complaint"), [("task", "rank 1: ZeroDivisionError: nothing"), ("told", "differ between ranks")]
)
def test_ranks_that_differ_in_a_later_round_are_an_error_in_that_round(how, complaint):
    code, out, err, _ = program(2, "later", how)
    assert code == 0, err
    assert json.loads(out)["round"] == 3
    assert complaint in json.loads(out)["error"]


@pytest.mark.slow
def test_an_exception_outside_a_task_ends_the_job_for_all_with_one_message():
    code, _, err, _ = program(3, "failing", "outside")
    assert code != 0
    assert err.count("Error: rank 1: the disk is full") == 1
    assert err.count("Error: rank") == 1


@pytest.mark.slow
def test_an_exception_on_a_graph_ends_the_job_for_all():
    code, out, err, _ = program(4, "failing", "task", "ring")
    assert code != 0
    assert "rank 1: ZeroDivisionError: nothing to divide by" in out + err


@pytest.mark.parametrize(("how", "complaint"), [("settings", "differ between ranks"), ("layout", "ranks")])
@pytest.mark.parametrize("n_cores", [None, 1], ids=["", "oversubscribed"])
@pytest.mark.slow
def test_ranks_with_different_settings_are_an_error(how, complaint, n_cores):
    code, out, err, _ = program(2, "failing", how, n_cores=n_cores)
    assert code != 0
    assert complaint in out + err


@pytest.mark.parametrize(
    ("victim", "launcher"), [(0, ()), (1, ()), (2, TWO_MACHINES)], ids=["rank 0", "rank 1", "another machine"]
)
@pytest.mark.slow
def test_a_killed_rank_is_named_once_and_ends_the_job_within_seconds_for_all(victim, launcher):
    command = [MPIEXEC, *launcher, "-n", "4", sys.executable, "-m", "tests.mpi_program", "asleep"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as job:
        pids = json.loads(job.stdout.readline())
        os.kill(pids[victim], signal.SIGKILL)
        start = time.perf_counter()
        assert job.wait(timeout=20) != 0
        assert time.perf_counter() - start < 10
        told = job.stdout.read() + job.stderr.read()
    assert told.count("Error: rank") == 1, told
    assert f"Error: rank {victim} (process {pids[victim]} on " in told
    assert "was killed or has crashed, and the job ends" in told
    time.sleep(0.2)
    assert not [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and is_running(pid)]
    assert not watchers_of(pids)


def watchers_of(pids):
    """Watchers of these processes that still run."""
    marks = [f"(process {pid} on ".encode() for pid in pids]
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [path for mark in marks if mark in path.read_bytes() and is_running(path.parent.name)]
    return found


def is_running(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"


@pytest.mark.slow
def test_a_killed_job_is_resumed_on_another_number_of_ranks(tmp_path):
    for rank, after in ((0, 9), (3, 25)):
        code, _, _, _ = program(4, "killed", tmp_path, rank, after)
        assert code != 0
    code, out, err, _ = program(2, "resumed", tmp_path)
    assert code == 0, err
    assert json.loads(out)["apart"] < 1e-8
    assert json.loads(out)["replayed"] >= 20


@pytest.mark.slow
def test_agents_without_a_coordinator_resume_from_their_journals(tmp_path):
    (code, first, err, _), (_, again, _, _) = (program(3, "resumed", tmp_path, "ring") for _ in range(2))
    assert code == 0, err
    assert json.loads(again)["replayed"] > 5
    assert json.loads(again)["apart"] == json.loads(first)["apart"] < 1e-8


@pytest.mark.slow
def test_agents_far_apart_in_a_graph_resume_from_the_last_round_that_all_have(tmp_path):
    """A sum needs something from everybody: nobody is more than one ahead of another."""
    code, _, _, _ = program(9, "killed", tmp_path, 0, 6, "line")
    assert code != 0
    last = [int(max(home.glob("memory-*")).name.removeprefix("memory-")) for home in sorted(tmp_path.iterdir())]
    assert 0 < max(last) - 1 <= min(last)
    code, out, err, _ = program(9, "resumed", tmp_path, "line")
    assert code == 0, err
    assert json.loads(out)["replayed"] == min(last)


@pytest.mark.parametrize("n_cores", [None, 1], ids=["", "oversubscribed"])
@pytest.mark.slow
def test_engines_free_their_communicators(n_cores):
    code, out, err, _ = program(2, "many", n_cores=n_cores)
    assert code == 0, err[-2000:]
    assert json.loads(out) == {"total": 3.0}


@pytest.mark.parametrize(("n_cores", "n_open"), [(None, 5), (1, 6)], ids=["", "oversubscribed"])
def test_ranks_free_the_communicators_of_all_engines(n_cores, n_open):
    code, out, err, _ = program(2, "closing", n_cores=n_cores)
    assert code == 0, err
    assert json.loads(out) == {"open": n_open, "freed": n_open + 2}  # both graphs are in both lists


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    """Five files and the same rows in one, with the owners in a column."""
    folder = tmp_path_factory.mktemp("sites")
    X, _, y = make_table(1, n_rows=150)
    owners = owners_of(1, len(y), 5)
    columns = {f"f{j}": X[:, j] for j in range(X.shape[1])}
    table = pa.table(columns | {"y": pa.array(y, from_pandas=True), "who": owners})
    pa.parquet.write_table(table, folder / "all.parquet")
    (folder / "sites").mkdir()
    for name in np.unique(owners):
        own = table.filter(pa.array(owners == name)).drop_columns(["who"])
        pa.parquet.write_table(own, folder / "sites" / f"{name}.parquet")
    return folder, X


@pytest.mark.slow
def test_the_command_gives_the_model_of_one_process(sites):
    folder, X = sites
    reference = folder / "reference.dsfr"
    command = [sys.executable, "-m", "dsfr", "fit", folder / "all.parquet", "--target", "y", "--agent-column", "who"]
    subprocess.run([*command, "-o", reference], check=True, capture_output=True, timeout=SECONDS)
    expected = dsfr.load(reference).predict(X)
    for n_ranks, files in ((5, "sites/site-{rank}.parquet"), (2, "sites")):
        code, out, err, _ = dsfr_fit(n_ranks, folder / files, "--target", "y", "-o", folder / "mpi.dsfr")
        assert (code, err) == (0, "")
        assert out.count("Trained") == 1
        model = dsfr.load(folder / "mpi.dsfr")
        assert np.abs(model.predict(X) - expected).max() < 1e-8
        assert model.training["n_agents"] == 5


@pytest.mark.slow
def test_gaps_and_categories_over_ranks_give_the_model_of_one_process(tmp_path):
    rng = np.random.default_rng(0)
    X, _, y = make_table(1, n_rows=150)
    owners = owners_of(1, len(y), 4)
    rows = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    region = np.where(rng.random(len(y)) < 0.1, None, rng.choice(["east", "north", "south"], len(y)))
    columns = {f"f{j}": pa.array(rows[:, j], from_pandas=True) for j in range(X.shape[1])}
    table = pa.table(columns | {"region": region.tolist(), "y": pa.array(y, from_pandas=True), "who": owners})
    pa.parquet.write_table(table, tmp_path / "all.parquet")
    (tmp_path / "sites").mkdir()
    for name in np.unique(owners):
        own = table.filter(pa.array(owners == name)).drop_columns(["who"])
        pa.csv.write_csv(own, tmp_path / "sites" / f"{name}.csv")
    told = ("--target", "y", "--method", "sfr-icr", "-o")
    command = [sys.executable, "-m", "dsfr", "fit", tmp_path / "all.parquet", "--agent-column", "who", *told]
    subprocess.run([*command, tmp_path / "here.dsfr"], check=True, capture_output=True, timeout=SECONDS)
    code, _, err, _ = dsfr_fit(4, tmp_path / "sites/site-{rank}.csv", *told, tmp_path / "mpi.dsfr")
    assert (code, err) == (0, "")
    here, there = (dsfr.load(tmp_path / name) for name in ("here.dsfr", "mpi.dsfr"))
    assert there.columns == here.columns
    assert there.columns.categories == {"region": ("east", "north", "south")}
    frame = table.drop_columns(["who", "y"])
    assert np.abs(there.predict(frame) - here.predict(frame)).max() < 1e-7


@pytest.mark.parametrize("named", [True, False], ids=["names", "numbers"])
@pytest.mark.slow
def test_the_command_takes_links_from_a_file(sites, tmp_path, named):
    folder, X = sites
    links = [(0, 1), (1, 2), (2, 3), (1, 4)]
    text = "\n".join(f"site-{one}, site-{other}" if named else f"{one} {other}  # numbers" for one, other in links)
    (tmp_path / "links.txt").write_text(text)
    command = ["--target", "y", "--topology", tmp_path / "links.txt", "-o"]
    code, _, err, _ = dsfr_fit(5, folder / "sites/site-{rank}.parquet", *command, tmp_path / "mpi.dsfr")
    assert (code, err) == (0, "")
    here = ["fit", "--engine", "in-process", folder / "sites", *command, tmp_path / "here.dsfr"]
    subprocess.run([sys.executable, "-m", "dsfr", *here], check=True, capture_output=True, timeout=SECONDS)
    found, expected = (dsfr.load(tmp_path / name) for name in ("mpi.dsfr", "here.dsfr"))
    assert np.abs(found.predict(X) - expected.predict(X)).max() < 1e-8
    messages = {agent["agent"]: agent["messages"] for agent in found.training["agents"]}
    assert messages["site-1"] == 3 * messages["site-0"] > 0


@pytest.mark.parametrize("text", ["0 1\n1 2\n3 4", "0 1\n1 2\n2 3\n3 9", "0 1 2"], ids=["apart", "unknown", "no pair"])
@pytest.mark.slow
def test_a_bad_file_of_links_is_one_message(sites, tmp_path, text):
    folder, _ = sites
    (tmp_path / "links.txt").write_text(text)
    command = ["--target", "y", "--topology", tmp_path / "links.txt", "-o", tmp_path / "model.dsfr"]
    code, out, err, _ = dsfr_fit(5, folder / "sites/site-{rank}.parquet", *command)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert err.startswith("Error: rank 0: ")
    assert not (tmp_path / "model.dsfr").exists()


@pytest.mark.parametrize(
    ("spoil", "complaint"),
    [
        (lambda path: path.unlink(), "there is no file"),
        (lambda path: path.write_text("junk"), "cannot be read"),
        (lambda path: path.write_bytes(renamed(path)), "lacks the column(s) f2 that the first file has"),
    ],
    ids=["missing", "damaged", "columns"],
)
@pytest.mark.slow
def test_a_bad_file_of_one_rank_is_one_message_and_no_model(sites, tmp_path, spoil, complaint):
    folder, _ = sites
    for number in range(3):
        (tmp_path / f"site-{number}.parquet").write_bytes((folder / f"sites/site-{number}.parquet").read_bytes())
    spoil(tmp_path / "site-2.parquet")
    code, out, err, _ = dsfr_fit(3, tmp_path / "site-{rank}.parquet", "--target", "y", "-o", tmp_path / "model.dsfr")
    assert code == 2
    assert out == ""
    assert err.count("Error: rank 2: ") == 1
    assert complaint in err
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "model.dsfr").exists()


def renamed(path):
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.parquet.read_table(path).rename_columns(["f0", "f1", "g2", "y"]), sink)
    return sink.getvalue().to_pybytes()
