"""A damaged checkpoint, or one of another training, is refused or resumes to the same bits: never to another model."""

import multiprocessing
import shutil
from collections import Counter

import numpy as np
import pytest

import dsfr
from dsfr.engines.checkpoint.journal import Journal
from tests.faults.cases import n_cases, random_of, record, write_rows
from tests.faults.test_model_files import cut, flipped, lengthened, moved, removed
from tests.test_cli import run

ROWS = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 3))


def fit(folder, *options):
    told = ["--engine", "in-process", "--target", "y", "--method", "sfr-icr", "--max-rounds", 8]
    return run("fit", folder / "sites", *told, "--checkpoint", folder / "kept", "-o", folder / "model.dsfr", *options)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with the files of three agents, their checkpoint, and the model."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "sites").mkdir()
    for number in range(3):
        write_rows(folder / "sites" / f"site-{number}.csv", n_rows=20 + number)
    assert fit(folder).exit_code == 0
    return folder


def lose_the_last_round(folder):
    """As a process leaves it that is killed in a round: to go on, it needs the memories."""
    (path,) = (folder / "kept").glob("*/journal")
    journal = Journal(path)
    journal.replace(journal.read()[:-1])


def outcome_of(folder, expected):
    """``"same model"`` or ``"refused"``; anything else fails."""
    (folder / "model.dsfr").unlink()
    result = fit(folder, "--resume")
    if result.exit_code == 2:
        assert result.stderr.startswith("Error: "), result.stderr
        assert isinstance(result.exception, SystemExit)
        assert not (folder / "model.dsfr").exists()
        return "refused"
    assert result.exit_code == 0, (result.output, result.exception)
    np.testing.assert_array_equal(dsfr.load(folder / "model.dsfr").predict(ROWS), expected)
    return "resumed to the same bits"


def test_damaged_journals_and_memories(trained, tmp_path, record_property):
    rng, outcomes = random_of("checkpoints"), Counter()
    expected = dsfr.load(trained / "model.dsfr").predict(ROWS)
    for number in range(n_cases(30)):
        folder = shutil.copytree(trained, tmp_path / "copy")
        if rng.random() < 0.5:
            lose_the_last_round(folder)
        path = rng.choice(
            sorted(path for path in (folder / "kept").rglob("*") if path.is_file() and path.name != "lock")
        )
        mutation = (flipped, cut, lengthened, moved, removed, None)[number % 6]
        if mutation is None:
            path.unlink()
        else:
            path.write_bytes(mutation(path.read_bytes(), rng))
        outcomes[outcome_of(folder, expected)] += 1
        shutil.rmtree(folder)
    record(record_property, outcomes)


def test_a_journal_of_another_training_is_refused(trained, tmp_path):
    for options, complaint in [(["--seed", "9"], "seed"), (["--ridge", "0.7"], "ridge")]:
        folder = shutil.copytree(trained, tmp_path / options[0])
        result = fit(folder, "--resume", *options)
        assert result.exit_code == 2
        assert f"{complaint} was" in result.stderr
    folder = shutil.copytree(trained, tmp_path / "rows")
    write_rows(folder / "sites" / "site-1.csv", n_rows=21, offset=1e-9)
    result = fit(folder, "--resume")
    assert result.exit_code == 2
    assert "other rows" in result.stderr


def train_at_once(folder, started, results):
    started.wait()
    results.put(fit(folder, "--resume").exit_code)


def test_two_processes_at_once_in_one_checkpoint(trained, tmp_path, record_property):
    """The second is refused, or comes when the first is done; afterwards the checkpoint gives the same model."""
    expected = dsfr.load(trained / "model.dsfr").predict(ROWS)
    context, outcomes = multiprocessing.get_context("spawn"), Counter()
    for number in range(n_cases(1)):
        folder = shutil.copytree(trained / "sites", tmp_path / str(number) / "sites").parent
        started, results = context.Barrier(2), context.Queue()
        processes = [context.Process(target=train_at_once, args=(folder, started, results)) for _ in range(2)]
        for process in processes:
            process.start()
        codes = sorted(results.get() for _ in processes)
        for process in processes:
            process.join()
        assert codes in ([0, 0], [0, 2]), codes
        outcomes["one after the other" if codes == [0, 0] else "the second refused"] += 1
        assert outcome_of(folder, expected) == "resumed to the same bits"
    record(record_property, outcomes)
