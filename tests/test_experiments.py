"""Experiments: specs are checked, runs resume and do not depend on jobs, results are never mixed or overwritten."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dsfr
from dsfr.cli import main
from dsfr.paper.experiments import results as stored
from dsfr.paper.experiments.deviations import DEVIATIONS
from dsfr.paper.experiments.folds import Unit, make_fold, owners_by, units
from dsfr.paper.experiments.results import ResultsError, Store, read_results
from dsfr.paper.experiments.run import TimeEstimate, open_stores, run_experiments
from dsfr.paper.experiments.selection import best_on_test, chosen_by_leave_one_out
from dsfr.paper.experiments.shared_rounds import SharedRounds
from dsfr.paper.experiments.spec import KINDS, PARTITIONS, Spec, SpecError, find_specs, read_spec, read_specs
from dsfr.paper.experiments.table import PRINTED, make_estimator
from dsfr.paper.reproduction.published import ADMM_PENALTY
from dsfr.training import Conjugate
from tests.invented import EXPERIMENTS

SMALL = {
    "datasets": ["artificial"],
    "repetitions": 1,
    "folds": 5,
    "test_folds": 2,
    "rules": 2,
    "grid": [1e-2, 1.0],
    "nodes": 10,
    "alphas": [1.0, 10.0],
    "trees": 5,
    "max_rounds": 20,
}
QUICKEST = ("grid", "fits", "baselines", "pairs")
EXTRA = {
    "fits": {"needs": "grid"},
    "admm": {"needs": "grid"},
    "complexity": {"values": [100, 200]},
    "pairs": {"values": [10, 100]},
    "rules": {"values": [2, 3], "label_counts": [50, 100]},
    "agents": {"values": [2], "partitions": list(PARTITIONS)},
}


def write_spec(folder, kind, **values):
    folder.mkdir(exist_ok=True)
    table = {"kind": kind, **SMALL, **EXTRA.get(kind, {}), **values}
    path = folder / f"{kind}.toml"
    path.write_text("\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items()))
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """One small spec of every kind, and its results by one job."""
    folder = tmp_path_factory.mktemp("small")
    for kind in KINDS:
        write_spec(folder / "specs", kind)
    for kind in QUICKEST:
        write_spec(folder / "quickest", kind)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "dsfr.paper.experiments.complexity.VALUES", {"features": (8, 16), "rules": (5, 10), "agents": (5, 7)}
        )
        run_experiments(read_specs(folder / "specs"), folder / "results", jobs=1)
    return folder


def without_seconds(rows):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


def same_results(one, other, names=KINDS):
    return all(without_seconds(read_results(one, name)) == without_seconds(read_results(other, name)) for name in names)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_tidy_finite_rows(small, kind):
    rows = read_results(small / "results", kind)
    about = json.loads((small / "results" / f"{kind}.json").read_text())
    assert {(row["repetition"], row["fold"]) for row in rows} == {(0, 0), (0, 1)}
    assert about["version"] == dsfr.__version__
    assert about["spec"]["seed"] == 0
    assert about["rows"] == len(rows)
    assert about["machine"]["cores"] >= 1
    columns = ("nrmse", "nrmse_paper", "seconds")
    errors = [row[name] for row in rows for name in columns if row.get(name) is not None]
    assert errors
    assert np.isfinite(errors).all()
    assert not (small / "results" / f"{kind}.parts").exists()


def test_nothing_in_the_results_names_a_host_or_folder(small):
    for path in (small / "results").glob("*.json"):
        assert not re.search(rf"{os.uname().nodename}|/tmp|/home|/root|/work", path.read_text())


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_jobs(small, tmp_path):
    run_experiments(read_specs(small / "quickest"), tmp_path, jobs=2)
    assert same_results(small / "results", tmp_path, QUICKEST)


@pytest.mark.slow
def test_a_killed_run_resumes_to_the_same_results(small, tmp_path):
    code = (
        "import sys\nfrom dsfr.paper.experiments.run import run_experiments\n"
        "from dsfr.paper.experiments.spec import read_specs\n"
        "if __name__ == '__main__':\n    run_experiments(read_specs(sys.argv[1]), sys.argv[2], jobs=2)\n"
    )
    script = tmp_path / "run.py"
    script.write_text(code)
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, str(script), str(small / "quickest"), str(out)])
    deadline = time.monotonic() + 120
    while not list(out.glob("*.parts/artificial-*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = {path: path.read_bytes() for path in out.glob("*.parts/artificial-*.json")}
    assert kept
    assert list(out.glob("*.parts")), "the run was complete before it was killed"
    seen = []
    run_experiments(read_specs(small / "quickest"), out, jobs=1, watch=seen.append)
    assert 0 < seen[0].total <= 2 * len(QUICKEST) - len(kept)
    assert same_results(small / "results", out, QUICKEST)


def test_complete_results_are_not_computed_again(small):
    before = {path: path.read_bytes() for path in (small / "results").iterdir()}
    run_experiments(read_specs(small / "specs"), small / "results", jobs=1, watch=lambda _: pytest.fail("computed"))
    assert before == {path: path.read_bytes() for path in (small / "results").iterdir()}


def test_results_of_another_version_are_refused_and_kept(small, tmp_path, monkeypatch):
    shutil.copytree(small / "results", tmp_path / "results")
    monkeypatch.setattr(stored, "__version__", "9.9.9")
    before = (tmp_path / "results" / "pairs.parquet").read_bytes()
    message = rf"holds results of .* made by dsfr {dsfr.__version__} \(this is dsfr 9.9.9\): .*--output.*--force"
    with pytest.raises(ResultsError, match=message):
        run_experiments(read_specs(small / "specs"), tmp_path / "results", jobs=1)
    assert (tmp_path / "results" / "pairs.parquet").read_bytes() == before


def test_results_of_another_spec_are_refused_unless_forced(small, tmp_path):
    shutil.copytree(small / "results", tmp_path / "results")
    spec = read_spec(write_spec(tmp_path / "specs", "pairs", values=[10, 50]))
    with pytest.raises(ResultsError, match="holds results of 'pairs' made by another spec"):
        run_experiments([spec], tmp_path / "results", jobs=1)
    run_experiments([spec], tmp_path / "results", jobs=1, force=True)
    assert {row["pairs"] for row in read_results(tmp_path / "results", "pairs")} == {10, 50}
    assert (tmp_path / "results" / "grid.parquet").exists()


def test_parts_of_another_spec_are_refused(tmp_path):
    spec = read_spec(write_spec(tmp_path / "specs", "pairs"))
    Store.open(tmp_path / "results", spec).begin()
    other = read_spec(write_spec(tmp_path / "specs", "pairs", labels=60))
    with pytest.raises(ResultsError, match="another spec"):
        Store.open(tmp_path / "results", other)


def test_parts_of_another_commit_are_refused_and_complete_results_are_not(small, tmp_path, monkeypatch):
    spec = read_spec(write_spec(tmp_path / "specs", "baselines"))
    store = Store.open(tmp_path / "results", spec)
    store.begin()
    monkeypatch.setattr(stored, "describe_source", lambda: {"version": dsfr.__version__, "git": "f" * 40})
    with pytest.raises(ResultsError, match=rf"made by commit .*, incomplete \(this is {'f' * 40}\): .*--force"):
        Store.open(tmp_path / "results", spec)
    Store.open(tmp_path / "results", spec, force=True).begin()
    assert json.loads((store.parts / "run.json").read_text())["git"] == "f" * 40
    assert all(store.complete for store in open_stores(read_specs(small / "specs"), small / "results"))


def test_the_fingerprint_includes_the_needed_experiment(tmp_path):
    fits, grid = (read_spec(write_spec(tmp_path, kind)) for kind in ("fits", "grid"))
    other = read_spec(write_spec(tmp_path, "grid", labels=60))
    assert fits.fingerprint(grid.fingerprint()) != fits.fingerprint(other.fingerprint())
    with pytest.raises(SpecError, match="needs the results of 'grid': give the folder that holds both"):
        run_experiments([fits], tmp_path / "results", jobs=1)


@pytest.mark.parametrize("damage", [b"", b"{", b"PAR1"])
def test_damaged_results_are_refused(small, tmp_path, damage):
    shutil.copytree(small / "results", tmp_path / "results")
    (tmp_path / "results" / "grid.parquet").write_bytes(damage)
    with pytest.raises(ResultsError, match=r"grid.parquet cannot be read"):
        read_results(tmp_path / "results", "grid")
    (tmp_path / "results" / "grid.json").write_bytes(damage)
    with pytest.raises(ResultsError, match=r"grid.json cannot be read"):
        Store.open(tmp_path / "results", read_spec(small / "specs" / "grid.toml"))


def test_the_error_names_a_damaged_part(tmp_path):
    store = Store.open(tmp_path, read_spec(write_spec(tmp_path / "specs", "pairs")))
    store.begin()
    for unit in units(store.spec):
        (store.parts / f"{unit.name}.json").write_text("{")
    with pytest.raises(ResultsError, match=r"artificial-00-0.json cannot be read .*: delete it and run again"):
        store.finish(jobs=1, wall_seconds=None)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"repetitons": 3}, "unknown key 'repetitons': did you mean 'repetitions'"),
        ({"datasets": ["airfoi"]}, "datasets = 'airfoi' must be one of airfoil"),
        ({"datasets": []}, "datasets must not be empty"),
        ({"kind": "grids"}, "kind = 'grids' must be one of grid"),
        ({"repetitions": "3"}, "repetitions = '3' must be int"),
        ({"repetitions": 0}, "repetitions = 0 must be a whole number >= 1"),
        ({"labels": True}, "labels = True must be int"),
        ({"grid": 0.1}, "grid = 0.1 must be a list of float"),
        ({"grid": [0.1, -1.0]}, "be > 0"),
        ({"test_folds": 6}, "test_folds = 6 at most 5"),
        ({"partitions": ["rows"]}, "partitions = 'rows' must be one of random"),
        ({"quick": 3}, "quick must be a table"),
    ],
)
def test_an_invalid_spec_raises_and_names_the_key(tmp_path, values, message):
    with pytest.raises(SpecError, match=re.escape(message)):
        read_spec(write_spec_raw(tmp_path, {"kind": "grid", **SMALL, **values}))


def write_spec_raw(folder, table):
    lines = (f"{key} = {json.dumps(value)}" for key, value in table.items())
    (folder / "mine.toml").write_text("\n".join(lines))
    return folder / "mine.toml"


def test_missing_and_broken_specs_raise(tmp_path):
    (tmp_path / "broken.toml").write_text("kind = [")
    with pytest.raises(SpecError, match="is not a TOML file"):
        read_spec(tmp_path / "broken.toml")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SpecError, match="holds no experiment"):
        read_specs(tmp_path / "empty")
    (tmp_path / "kindless.toml").write_text('datasets = ["ch"]')
    with pytest.raises(SpecError, match="the key 'kind' is missing"):
        read_spec(tmp_path / "kindless.toml")


def test_the_specs_follow_the_protocol_of_the_paper():
    for quick in (False, True):
        specs = {spec.name: spec for spec in read_specs(EXPERIMENTS, quick=quick)}
        fewer = {"deviations": 5, "complexity": 3}  # than the paper's ten
        one_fold = ("admm", "penalties", "deviations", "complexity")  # of the five of a repetition
        for name, spec in specs.items():
            assert spec.repetitions == (2 if quick else fewer.get(name, 10)), name
            assert quick or spec.test_folds == (1 if name in one_fold else 5), name
        grid = specs["grid"]
        assert (grid.folds, grid.test_folds, grid.labels, grid.agents, grid.rules) == (5, 5, 50, 5, 5)
        assert (grid.fuzzifier, grid.tol, grid.grid) == (1.1, 1e-4, (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0))
        assert list(specs)[-1] == "fits"
        doubled, printed = DEVIATIONS["eq. (14): no 1/2 before gamma"], DEVIATIONS["plain ADMM, rho_s = rho_p = 0.1"]
        assert doubled.paper["unlabeled__weight"] == 2.0 * specs["deviations"].consistency
        assert printed.paper["solver"].penalty == printed.paper["solver"].cluster_penalty == ADMM_PENALTY
    assert find_specs().resolve() == EXPERIMENTS.resolve() or find_specs().is_dir()


METHODS_AND_SOLVERS = [
    ("s-SFR", Conjugate()),
    ("SFR-ICR", Conjugate()),
    ("SFR-ICR", replace(PRINTED, max_rounds=20)),
    ("SFR-G", replace(PRINTED, max_rounds=20)),
    ("FR", replace(PRINTED, max_rounds=20)),
    ("LapWNN", replace(PRINTED, max_rounds=20)),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fits_that_share_rounds_of_clustering_are_those_that_do_not():
    spec = Spec(name="s", kind="fits", datasets=("artificial",), rules=3, nodes=10)
    fold = make_fold(spec, Unit(0, 0, "artificial"))
    fold = replace(fold, X=fold.X[:300], y=fold.y[:300], owners=fold.owners[:300], known=fold.known[:300])
    for owners in (fold.owners, None):
        rounds, spared = SharedRounds(fold), 0
        for name, solver in METHODS_AND_SOLVERS:
            shared, alone = (
                make_estimator(name, spec, ridge=0.1, weight=0.1, random_state=fold.seed, solver=solver) for _ in "12"
            )
            targets = fold.y if name == "FR" else fold.known
            known = len(rounds)
            rounds.fit(shared, targets, owners)
            spared += len(rounds) == known
            alone.fit(fold.X, targets, agents=owners)
            np.testing.assert_array_equal(shared.predict(fold.X_test), alone.predict(fold.X_test))
            assert shared.ledger_ == alone.ledger_
            assert shared.history_ == alone.history_
            assert shared.termination_ == alone.termination_
        assert spared >= 4, "fits with the same rules do not cluster again"


def test_folds_hide_labels_and_separate_test_rows():
    spec = Spec(name="s", kind="grid", datasets=("artificial",))
    fold = make_fold(spec, Unit(1, 2, "artificial"))
    known = ~np.isnan(fold.known)
    assert np.bincount(fold.owners[known]).tolist() == [10] * 5
    np.testing.assert_array_equal(fold.known[known], fold.y[known])
    train, test = ({tuple(row) for row in X} for X in (fold.X, fold.X_test))
    assert not train & test
    assert len(train) + len(test) == 5000
    again = make_fold(spec, Unit(1, 2, "artificial"))
    np.testing.assert_array_equal(again.known, fold.known)
    assert again.seed == fold.seed
    assert make_fold(spec, Unit(1, 3, "artificial")).seed != fold.seed


@pytest.mark.parametrize("partition", PARTITIONS)
def test_every_partition_uses_all_agents(partition):
    fold = make_fold(Spec(name="s", kind="agents", datasets=("artificial",)), Unit(0, 0, "artificial"))
    owners = owners_by(partition, fold, 4, fold.rng(0))
    assert set(owners.tolist()) == set(range(4))


def test_the_closed_form_agrees_with_full_fits(small):
    grid = {
        (row["fold"], row["setting"], row["method"], row["ridge"], row["weight"]): row["nrmse"]
        for row in read_results(small / "results", "grid")
    }
    for row in read_results(small / "results", "fits"):
        pooled = grid[row["fold"], row["setting"], row["method"], row["ridge"], row["weight"]]
        limit = 2e-6 if row["setting"] == "centralised" else 1e-3
        assert abs(row["nrmse"] - pooled) < limit, row


def test_selection_on_test_folds_and_by_leave_one_out():
    def row(fold, ridge, nrmse, loo):
        place = {"dataset": "d", "setting": "s", "method": "m", "repetition": 0, "fold": fold, "weight": 0.0}
        return place | {"ridge": ridge, "nrmse": nrmse, "loo": loo}

    rows = [row(0, 0.1, 0.5, 0.9), row(0, 1.0, 0.6, 0.8), row(1, 0.1, 0.5, 0.7), row(1, 1.0, 0.1, 0.8)]
    assert best_on_test(rows) == {("d", "s", "m"): (1.0, 0.0)}
    chosen = chosen_by_leave_one_out(rows)["d", "s", "m"]
    assert [chosen[0, fold]["ridge"] for fold in (0, 1)] == [1.0, 0.1]


def test_the_remaining_time_is_unknown_until_every_kind_is_measured():
    estimate = TimeEstimate(2, {"grid": "", "fits": "grid"}, [("grid", "a"), ("grid", "a"), ("fits", "a")])
    assert estimate.remaining() is None
    estimate.done(("grid", "a"), 4.0)
    assert estimate.remaining() == pytest.approx((4.0 + 4.0) / 2)
    estimate.done(("fits", "a"), 10.0)
    assert estimate.remaining() == pytest.approx(4.0 / 2)


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_command_reports_errors_without_a_traceback(small, tmp_path):
    typo = write_spec_raw(tmp_path, {"kind": "grid", **SMALL, "repetitons": 1})
    other = write_spec(tmp_path / "specs", "pairs", values=[7])
    for arguments, message in (
        ((typo, "-o", tmp_path / "x"), "did you mean 'repetitions'"),
        ((tmp_path / "nowhere",), "does not exist"),
        ((other, "-o", small / "results"), "another spec"),
        (("--render", "-o", tmp_path / "none"), "has no complete results of 'grid'"),
    ):
        result = run("reproduce", *arguments)
        assert result.exit_code == 2
        assert message in result.stderr
        assert "Traceback" not in result.output


def test_the_command_runs_a_single_spec(tmp_path):
    path = write_spec(tmp_path / "specs", "pairs")
    result = run("reproduce", path, "-o", tmp_path / "results", "--jobs", 1)
    assert result.exit_code == 0, result.output
    assert "The report needs all experiments" in result.output
    assert Path(tmp_path / "results" / "pairs.parquet").exists()
    again = run("reproduce", path, "-o", tmp_path / "results", "--jobs", 1)
    assert again.exit_code == 0
