"""A full disk, a device that takes nothing and a read-only folder are one message; old files stay as they were."""

import os
import subprocess
import sys
import tempfile
from collections import Counter

import numpy as np
import pytest

import dsfr
from dsfr.io import agent_rows
from tests.faults.cases import record, write_rows
from tests.faults.folders import fill, read_only, small_disk
from tests.test_cli import PAPER, refused, run

FULL = "No space left on device"


@pytest.fixture
def folder(tmp_path):
    """Rows, a model, and the files of two agents."""
    write_rows(tmp_path / "rows.csv", n_rows=400)
    assert run("fit", tmp_path / "rows.csv", "--target", "y", *PAPER, "-o", tmp_path / "model.dsfr").exit_code == 0
    (tmp_path / "sites").mkdir()
    for number in range(2):
        write_rows(tmp_path / "sites" / f"site-{number}.csv", n_rows=30)
    return tmp_path


def commands(folder, output):
    """Every command that writes, by the ending of what it writes."""
    rows, model = folder / "rows.csv", folder / "model.dsfr"
    return {
        "dsfr": ["fit", rows, "--target", "y", "-o", output / "out.dsfr"],
        "csv": ["predict", model, rows, "-o", output / "out.csv"],
        "csv.gz": ["predict", model, rows, "-o", output / "out.csv.gz"],
        "parquet": ["predict", model, rows, "-o", output / "out.parquet"],
        "html": ["report", model, "-o", output / "out.html"],
        "fml": ["export", model, "-o", output / "out.fml"],
    }


def test_a_full_disk_is_named_and_old_files_stay(folder, record_property):
    with small_disk(folder / "small", 64) as small:
        for ending in commands(folder, small):
            (small / f"out.{ending}").write_bytes(b"old")
        fill(small)
        before = sorted(small.iterdir())
        for ending, command in commands(folder, small).items():
            said = refused(*command)
            assert FULL in said
            assert f"out.{ending}" in said
            assert (small / f"out.{ending}").read_bytes() == b"old"
        assert sorted(small.iterdir()) == before
    record(record_property, Counter({"refused, old file kept": len(commands(folder, small))}))


def test_a_read_only_folder_is_named_before_any_work(folder, record_property):
    with read_only(folder / "fixed") as fixed:
        for command in commands(folder, fixed).values():
            assert f"the folder {fixed} cannot be written to: write elsewhere" in refused(*command)
        kept = ["--checkpoint", fixed / "kept", "-o", folder / "out.dsfr"]
        assert str(fixed) in refused("fit", folder / "sites", "--engine", "in-process", "--target", "y", *kept)
    record(record_property, Counter({"refused": len(commands(folder, fixed)) + 1}))


def test_a_checkpoint_on_a_disk_that_was_full_goes_on_when_there_is_room(folder):
    fit = ["fit", folder / "sites", "--engine", "in-process", "--target", "y", "--max-rounds", "8"]
    assert run(*fit, "-o", folder / "whole.dsfr").exit_code == 0
    with small_disk(folder / "small", 2048) as small:
        kept = [*fit, "--checkpoint", small / "kept", "-o", folder / "new.dsfr", "--resume"]
        (small / "room").write_bytes(bytes(16_000))
        filler = fill(small)
        (small / "room").unlink()
        assert FULL in refused(*kept)
        filler.unlink()
        assert run(*kept).exit_code == 0
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, (50, 3))
    whole, new = (dsfr.load(folder / name).predict(rows) for name in ("whole.dsfr", "new.dsfr"))
    np.testing.assert_array_equal(new, whole)


def test_a_full_disk_for_temporary_files_is_named_with_the_remedy(folder, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    with small_disk(folder / "small", 64) as small:
        monkeypatch.setenv("TMPDIR", str(small))
        write_rows(folder / "sites" / "more.csv", n_rows=4000)
        monkeypatch.setattr(agent_rows, "MEMORY_BYTES", 1)
        said = refused("fit", folder / "sites", "--target", "y", "-o", folder / "new.dsfr")
    assert FULL in said
    assert "set TMPDIR to a folder with more room" in said
    assert not (folder / "new.dsfr").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_device_that_takes_nothing(folder):
    assert FULL in refused("predict", folder / "model.dsfr", folder / "rows.csv", "-o", "/dev/full")
    assert FULL in refused("fit", folder / "rows.csv", "--target", "y", "-o", "/dev/full")


def as_program(folder, redirection):
    """A real process with its standard output redirected by a shell: exit code of dsfr, and what it says."""
    command = f'"$0" -m dsfr predict model.dsfr rows.csv {redirection}; exit "${{PIPESTATUS[0]}}"'
    done = subprocess.run(
        ["bash", "-c", command, sys.executable], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_standard_output_that_takes_nothing(folder):
    code, _, said = as_program(folder, "> /dev/full")
    assert code == 2
    assert said == f"Error: {FULL}\n"


def test_a_reader_that_leaves_early_is_no_error(folder):
    """``dsfr predict ... | head -1`` shows one line and no message, and ends as other programs do."""
    write_rows(folder / "rows.csv", n_rows=20_000)  # more than a pipe holds
    code, shown, said = as_program(folder, "| head -1")
    assert shown == "a,b,c,y,prediction\n"
    assert said == ""
    assert code in (0, 1, 141)
