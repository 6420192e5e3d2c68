"""Locales, odd names of files, very wide tables and very many agents do not change what a command does."""

import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import dsfr
from tests.faults.cases import record, write_rows
from tests.test_cli import PAPER, refused, run

NAMES = [
    " two  spaces .csv",
    "quote'\".csv",
    "new\nline.csv",
    "-dash.csv",
    "ümlaut ☃.csv",
    "e\u0301 is not \u00e9.csv",
    "star*.csv",
    "[a-z].csv",
    "100%s {0}.csv",
    "$HOME;true.csv",
    "x" * 240 + ".csv",
    "\x1b[31mred.csv",
]
NOT_UTF8 = os.fsdecode(b"latin-\xe9.csv")


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_odd_names_of_files(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / name)
    write_rows(tmp_path / "plain.csv")
    model, output = name[:-4] + ".dsfr", name[:-4] + "-out.csv"
    for source, target in ((name, model), ("plain.csv", "plain.dsfr")):
        result = run("fit", "--target", "y", *PAPER, "-o", target, "--", source)
        assert result.exit_code == 0, result.output
    assert run("predict", "-o", output, "--", model, name).exit_code == 0
    assert run("predict", "-o", "plain-out.csv", "--", "plain.dsfr", "plain.csv").exit_code == 0
    assert (tmp_path / output).read_bytes() == (tmp_path / "plain-out.csv").read_bytes()


def test_odd_names_of_agents_and_their_checkpoint(tmp_path):
    """Names of agents are names of files; a folder of a checkpoint is made from them."""
    (tmp_path / "sites").mkdir()
    for name in NAMES:
        write_rows(tmp_path / "sites" / name, n_rows=12)
    told = ["--engine", "in-process", "--target", "y", "--max-rounds", "4", "--checkpoint", tmp_path / "kept"]
    result = run("fit", tmp_path / "sites", *told, *PAPER, "-o", tmp_path / "m.dsfr")
    assert result.exit_code == 0, result.output
    assert dsfr.load(tmp_path / "m.dsfr").training["n_agents"] == len(NAMES)
    assert "\x1b[31m" not in result.output


def test_names_that_are_not_utf8_are_refused(tmp_path):
    write_rows(tmp_path / NOT_UTF8)
    told = ["--engine", "in-process", "--target", "y", "-o", tmp_path / "m.dsfr"]
    assert "cannot be read: 'utf-8' codec can't encode" in refused("fit", tmp_path, *told)


LOCALES = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE.UTF-8"},
]


FIT_AND_PREDICT = """
from dsfr.cli import main
main(["fit", "rows.csv", "--target", "y", "-o", "m.dsfr"], standalone_mode=False)
main(["predict", "m.dsfr", "rows.csv", "-o", "out.csv"])
"""


@pytest.mark.slow
def test_locales_do_not_change_a_byte(tmp_path, record_property):
    text = write_rows(tmp_path / "rows.csv").read_text().replace("a,b,c,y", "größe,Iı,c,y", 1)
    results = []
    for number, locale in enumerate([{}, *LOCALES]):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "rows.csv").write_text(text, encoding="utf-8")
        command = [sys.executable, "-c", FIT_AND_PREDICT]
        done = subprocess.run(command, cwd=folder, env=os.environ | locale, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        results.append([(folder / name).read_bytes() for name in ("m.dsfr", "out.csv")])
    assert all(result == results[0] for result in results)
    record(record_property, Counter({"same bytes": len(LOCALES)}))


N_COLUMNS = 10_000


@pytest.mark.slow
def test_ten_thousand_columns(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.uniform(-1.0, 1.0, (30, N_COLUMNS)).round(3)
    names = [f"c{number}" for number in range(N_COLUMNS)]
    lines = [",".join(names), *(",".join(map(str, row)) for row in values.tolist())]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    model, output = tmp_path / "m.dsfr", tmp_path / "out.csv"
    message = refused("fit", tmp_path / "wide.csv", "--target", "c9", "-o", model)
    assert "weights (from 9999 features) are too many" in message
    assert len(message) < 500
    assert (
        run("fit", tmp_path / "wide.csv", "--target", "c9", "--features", "c3,c7000", *PAPER, "-o", model).exit_code
        == 0
    )
    assert run("predict", model, tmp_path / "wide.csv", "-o", output).exit_code == 0
    header, first = output.read_text().splitlines()[:2]
    assert header == lines[0] + ",prediction"
    assert first.startswith(lines[1] + ",")


@pytest.mark.slow
def test_a_thousand_agents(tmp_path):
    write_rows(tmp_path / "rows.csv", n_rows=3000)
    out = tmp_path / "m.dsfr"
    fit = ["fit", tmp_path / "rows.csv", "--target", "y", "--method", "sfr-icr", "--tol", "0.01", "-o", out]
    assert run(*fit, "--agents", 1000).exit_code == 0
    many = dsfr.load(out)
    assert many.training["n_agents"] == 1000
    assert run(*fit, "--agents", 1).exit_code == 0
    rows = np.random.default_rng(0).uniform(-0.9, 0.9, (200, 3))
    truth = np.sin(2.0 * rows[:, 0]) + rows[:, 1]
    assert np.abs(many.predict(rows) - truth).max() < 0.3
    assert np.abs(dsfr.load(out).predict(rows) - truth).max() < 0.3
