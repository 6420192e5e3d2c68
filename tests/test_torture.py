"""`make torture` keeps what every file of tests has given, and goes on where it was stopped."""

import re
from argparse import Namespace
from pathlib import Path

import pytest
from benchmarks import torture

TOY = """
'''Toys are safe.

More about toys.
'''
from pathlib import Path
import os

def test_counts(record_property):
    with Path("runs").open("a") as file:
        file.write(os.environ["DSFR_TORTURE"] + " " + os.environ["DSFR_TEST_SEED"])
    record_property("kept", 3)

def test_counts_more(record_property):
    record_property("kept", 4)
"""
BROKEN = """
'''Toys never break.'''

def test_it():
    assert False
"""
CRASHING = """
import os

def test_it():
    os._exit(7)
"""
TOLD = Namespace(factor=2.0, seed=5, processes=2)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Function that writes files of tests."""
    monkeypatch.setattr(torture, "ROOT", tmp_path)
    folder = tmp_path / "tests" / "faults"
    folder.mkdir(parents=True)

    def write(**texts):
        for name, text in texts.items():
            (folder / f"test_{name}.py").write_text(text)
        return sorted(folder.glob("test_*.py"))

    return write


def test_results_are_kept_and_not_run_again(files, tmp_path):
    found = files(toy=TOY, broken=BROKEN)
    for _ in range(2):
        broken, toy = torture.run_all(found, tmp_path / "kept", TOLD)
        assert toy.text == "Toys are safe."
        assert (toy.passed, toy.failed, dict(toy.outcomes)) == (2, 0, {"kept": 7})
        assert (broken.text, broken.passed, broken.failed) == ("Toys never break.", 0, 1)
    assert (tmp_path / "runs").read_text() == "2.0 5"
    assert "assert False" in (tmp_path / "kept" / "test_broken.log").read_text()


def test_a_file_that_does_not_run_to_its_end_is_a_failure_and_runs_again(files, tmp_path):
    (crashed,) = torture.run_all(files(toy=CRASHING), tmp_path / "kept", TOLD)
    assert crashed.failed == 1
    assert "test_toy did not run to its end (7)" in crashed.text
    (again,) = torture.run_all(files(toy=TOY), tmp_path / "kept", TOLD)
    assert (again.passed, again.failed) == (2, 0)


def test_a_file_that_hangs_is_a_failure(files, tmp_path, monkeypatch):
    monkeypatch.setattr(torture, "LONGEST", 0.01)
    (hung,) = torture.run_all(files(toy=TOY), tmp_path / "kept", TOLD)
    assert "still running after" in hung.text
    assert hung.failed == 1


def test_a_change_of_a_file_or_of_what_all_share_is_other_code(files, tmp_path):
    toy, other = files(toy=TOY, unlike=BROKEN)
    before = torture.digest_of(toy), torture.digest_of(other)
    files(unlike=TOY)
    assert torture.digest_of(toy) == before[0]
    assert torture.digest_of(other) != before[1]
    (tmp_path / "tests" / "faults" / "cases.py").write_text("N = 1")
    shared = torture.digest_of(toy)
    assert shared != before[0]
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "code.py").write_text("N = 1")
    assert torture.digest_of(toy) != shared


def test_every_promise_of_the_page_names_its_tests_and_every_file_of_tests_has_one():
    root = Path(__file__).parent.parent
    page = (root / "docs" / "reliability.md").read_text()
    table = page.partition("## What is guaranteed")[2].partition("## What is not")[0]
    _, *promises = (line for line in table.splitlines() if line.startswith("| "))
    named = set()
    for row in promises:
        files = re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)`", row)
        assert files, row
        assert all((root / file).is_file() for file in files), row
        named.update(files)
    assert {f"tests/faults/{path.name}" for path in (root / "tests" / "faults").glob("test_*.py")} <= named
