"""A command that is killed or interrupted at any moment leaves files whole; a checkpoint resumes to the same bits."""

import shutil
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import dsfr
from tests.faults.cases import n_cases, random_of, record, write_rows
from tests.faults.forked import Case, run_cases
from tests.test_cli import PAPER, run

COMMANDS = {
    "fit": ["fit", "rows.csv", "--target", "y", "-o", "new.dsfr"],
    "predict": ["predict", "model.dsfr", "rows.csv", "-o", "out.csv"],
    "resume": [
        "fit",
        "sites",
        "--engine",
        "in-process",
        "--target",
        "y",
        "--max-rounds",
        "8",
        "--checkpoint",
        "kept",
        "-o",
        "site.dsfr",
    ],
}
OUTPUTS = {"fit": "new.dsfr", "predict": "out.csv", "resume": "site.dsfr"}
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
ENDINGS = {signal.SIGKILL: (-signal.SIGKILL,), signal.SIGINT: (130, 1), signal.SIGTERM: (143, -signal.SIGTERM)}
"""Exit codes of a command that a signal has ended; the second while it still reads its arguments."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that the commands read."""
    folder = tmp_path_factory.mktemp("kills")
    write_rows(folder / "rows.csv")
    assert run("fit", folder / "rows.csv", "--target", "y", *PAPER, "-o", folder / "model.dsfr").exit_code == 0
    (folder / "sites").mkdir()
    for number in range(3):
        write_rows(folder / "sites" / f"site-{number}.csv", n_rows=30 + number)
    return folder


@pytest.fixture(scope="module")
def whole(folder, tmp_path_factory):
    """Where every command has run to its end, and how many function calls it made."""
    done = shutil.copytree(folder, tmp_path_factory.mktemp("whole"), dirs_exist_ok=True)
    ended = dict(zip(COMMANDS, run_cases([Case(command, str(done)) for command in COMMANDS.values()]), strict=True))
    assert all(outcome.code == 0 for outcome in ended.values()), ended
    return done, {name: outcome.calls for name, outcome in ended.items()}


def disturbed(name, folder, whole, tmp_path, signals, n):
    """A command in copies of the folder, each with a signal at a random moment."""
    rng, calls = random_of(name), whole[1][name]
    for number in range(n):
        place = shutil.copytree(folder, tmp_path / str(number))
        (place / OUTPUTS[name]).write_bytes(b"old")
        yield Case(COMMANDS[name], str(place), int(rng.integers(1, calls)), signals[number % len(signals)])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fit", "predict"])
def test_files_are_old_or_new_and_whole(folder, whole, tmp_path, record_property, name):
    cases = list(disturbed(name, folder, whole, tmp_path, SIGNALS, n_cases(30)))
    new, outcomes = (whole[0] / OUTPUTS[name]).read_bytes(), Counter()
    for case, ended in zip(cases, run_cases(cases), strict=True):
        outcomes[f"{signal.Signals(case.signal).name}: {how_it_ended(case, ended)}"] += 1
        assert Path(case.folder, OUTPUTS[name]).read_bytes() in (b"old", new), (case, ended)
        # Nobody can clean up after SIGKILL.
        assert case.signal == signal.SIGKILL or not list(Path(case.folder).glob(".dsfr-*")), (case, ended)
    record(record_property, outcomes)


def had_ended(case, ended):
    """Whether a command made fewer calls than when these were counted, and the signal was never sent."""
    return ended.code == 0 and ended.calls < case.at_call


def how_it_ended(case, ended):
    if had_ended(case, ended):
        return "had ended before the signal"
    if ended.code == 0 and "Exception ignored in" in ended.output:
        return "went on, Python ignores signals while it frees an object"
    assert "Traceback" not in ended.output, (case, ended)
    assert ended.code in ENDINGS[case.signal], (case, ended)
    return "ended"


@pytest.mark.slow
def test_a_killed_training_resumes_to_the_same_bits(folder, whole, tmp_path, record_property):
    cases = list(disturbed("resume", folder, whole, tmp_path, SIGNALS[:1], n_cases(12)))
    killed = run_cases(cases)
    resumed = run_cases([Case([*case.arguments, "--resume"], case.folder) for case in cases])
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 3))
    expected = dsfr.load(whole[0] / OUTPUTS["resume"]).predict(rows)
    for case, first, second in zip(cases, killed, resumed, strict=True):
        assert had_ended(case, first) or first.code == -signal.SIGKILL, (case, first, second)
        assert second.code == 0, (case, first, second)
        found = dsfr.load(Path(case.folder, OUTPUTS["resume"])).predict(rows)
        np.testing.assert_array_equal(found, expected)
    record(record_property, Counter({"killed and resumed to the same bits": len(cases)}))
