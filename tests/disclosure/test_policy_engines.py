"""The same policy over files of agents: in this process, over MPI and over dask, by the command and in Python."""

import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from dsfr import Dask, Policy, PolicyError, RangeScaling, SFRRegressor, load
from dsfr.cli import main
from tests.disclosure.crypto import needs_cryptography
from tests.mpi_jobs import MPIEXEC, mpiexec
from tests.tables import make_table

N_OWNERS = 3
FIT = ["--target", "y", "--rules", "3", "--solver", "sums", "--ranges", "ranges.toml", "-o", "model.dsfr"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files of three owners, their ranges, and a policy that is tighter than the default."""
    X, _, y = make_table(0, n_rows=240, n_labels=90)
    (tmp_path / "sites").mkdir()
    for owner in range(N_OWNERS):
        rows = np.column_stack([X, y])[owner::N_OWNERS]
        text = "\n".join(",".join("" if np.isnan(value) else repr(float(value)) for value in row) for row in rows)
        (tmp_path / "sites" / f"{owner}.csv").write_text(f"a,b,c,y\n{text}\n")
    ranges = {
        name: [float(low), float(high)] for name, low, high in zip("abc", X.min(axis=0), X.max(axis=0), strict=True)
    }
    lines = [f"{name} = {ends}" for name, ends in (ranges | {"y": [0.0, 100.0]}).items()]
    (tmp_path / "ranges.toml").write_text("\n".join(lines))
    (tmp_path / "tight.toml").write_text("min_rows = 100\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_here(*arguments):
    result = CliRunner().invoke(main, ["fit", "sites", *arguments])
    return result.exit_code, result.output


def run_mpi(*arguments):
    pytest.importorskip("mpi4py", reason="the MPI engine needs mpi4py: pip install 'dsfr[mpi-wheel]'")
    if not MPIEXEC.exists():
        pytest.skip("no mpiexec beside this Python: pip install mpich")
    given = [str(Path(one).absolute()) if Path(one).suffix in (".toml", ".dsfr") else one for one in arguments]
    sites = str(Path("sites").absolute())  # the launcher has a working folder of its own
    code, out, err, _ = mpiexec(N_OWNERS, sys.executable, "-m", "dsfr", "fit", sites, *given)
    return code, out + err


def test_the_command_takes_a_policy_and_names_what_it_refuses(folder):
    code, output = run_here(*FIT, "--engine", "in-process", "--policy", "default")
    assert code == 0, output
    model = load("model.dsfr")
    assert (model.is_student, model.training["n_labeled"]) == (True, 90)
    code, output = run_here(*FIT, "--engine", "in-process", "--policy", "tight.toml")
    assert code != 0
    assert "80 own rows, and min_rows is 100" in " ".join(output.split())


def test_policy_and_masks_over_mpi_give_the_same_rules(folder):
    """A refusal of one rank is one of all ranks, which then ask for less."""
    needs_cryptography()
    assert run_here(*FIT, "--engine", "in-process", "--policy", "default")[0] == 0
    here = load("model.dsfr")
    code, output = run_mpi(*FIT, "--engine", "mpi", "--policy", "default", "--masks")
    assert code == 0, output
    X = make_table(0, n_rows=240)[0]
    np.testing.assert_allclose(load("model.dsfr").predict(X), here.predict(X), rtol=0, atol=1e-8)


def test_the_usual_method_needs_no_policy_to_take_ranges(folder):
    code, output = run_here(*FIT, "--engine", "in-process")
    assert code == 0, output
    model = load("model.dsfr")
    assert model.is_student
    assert model.training["n_labeled"] == 90


def test_a_policy_needs_ranges_for_every_column(folder):
    (folder / "ranges.toml").write_text("a = [0.0, 1.0]\n")
    code, output = run_here(*FIT, "--engine", "in-process", "--policy", "default")
    assert code != 0
    assert "column 'b' needs a line such as b = [0.0, 100.0]" in " ".join(output.split())


def test_a_policy_needs_an_engine(folder):
    code, output = run_here(*FIT, "--policy", "default")
    assert code != 0
    assert "--policy needs --engine" in output


def test_workers_of_dask_keep_the_policy_and_mask_what_they_send():
    needs_cryptography()
    distributed = pytest.importorskip("distributed", reason="the dask engine needs dask: pip install 'dsfr[dask]'")
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    X, _, y = make_table(0, n_rows=240, n_labels=90)
    rows = dd.from_pandas(pd.DataFrame(X, columns=list("abc")).assign(y=y), npartitions=N_OWNERS)
    scaling = RangeScaling(lower=X.min(axis=0), upper=X.max(axis=0), target_range=(0.0, 100.0))
    options = {"n_workers": 1, "threads_per_worker": 2, "processes": False, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):

        def fit(n_rules):
            where = Dask(client=client, policy=Policy(), masks=True)
            model = SFRRegressor(n_rules=n_rules, solver="sums", scaling=scaling, engine=where, random_state=0)
            return model.fit(rows[list("abc")], rows["y"])

        assert fit(3).termination_ == "converged"
        with pytest.raises(PolicyError, match="is refused by policy rule"):
            fit(10)
