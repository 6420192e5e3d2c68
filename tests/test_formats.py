"""File formats: every one serves every command, what is written reads back the same, and a new one is a single file."""

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dsfr
from dsfr.io import formats
from dsfr.io.columns import TableError, matrix
from dsfr.io.files import column_names, count_rows, read_batches
from dsfr.io.tables import read_table, write_table, write_tables
from dsfr.model.schema import Schema
from tests.tables import make_table
from tests.test_cli import PAPER, refused, run

ENDINGS = [".csv", ".csv.gz", ".parquet", ".npy"]
NAMES = ["x0", "x1", "x2", "x3"]

JSON_LINES = '''
"""One JSON object per line: the whole of a new format."""

import json
from contextlib import contextmanager

import pyarrow as pa

from dsfr.io.formats.contract import TableFormat


class JsonLines(TableFormat):
    endings = (".jsonl",)

    def column_names(self, path, delimiter):
        with path.open() as file:
            return list(json.loads(file.readline()))

    def read_batches(self, path, names, delimiter):
        with path.open() as file:
            for line in file:
                row = json.loads(line)
                yield pa.table({name: pa.array([row[name]], pa.float64()) for name in names})

    @contextmanager
    def writer(self, file, path, delimiter):
        yield lambda table: file.writelines(f"{json.dumps(row)}\\n".encode() for row in table.to_pylist())


FORMAT = JsonLines()
'''


@pytest.fixture
def with_json_lines(tmp_path, monkeypatch):
    """The recipe of CONTRIBUTING, carried out: one module in the folder of the formats."""
    folder = tmp_path / "new_format"
    folder.mkdir()
    (folder / "json_lines.py").write_text(JSON_LINES)
    monkeypatch.setattr(formats, "__path__", [*formats.__path__, str(folder)])
    monkeypatch.setattr(formats, "find_formats", formats.find_formats.__wrapped__)


def rows_and_labels(seed=0):
    X, _, y = make_table(seed, n_rows=60)
    return pa.table({name: column for name, column in zip(NAMES, np.column_stack([X, y]).T, strict=True)})


def outputs_of(tmp_path, ending):
    """What every command that reads a table prints or writes for the same rows in one format."""
    folder = tmp_path / ending.strip(".")
    folder.mkdir()
    data, model, page = folder / f"rows{ending}", folder / "m.dsfr", folder / "page.html"
    write_table(rows_and_labels(), data)
    out = folder / f"predicted{ending}"
    commands = {
        "fit": ("fit", data, "--target", "x3", "--method", "sfr-icr", "--rules", 3, "--agents", 2, "-o", model),
        "predict": ("predict", model, data, "-o", out),
        "explain": ("explain", model, data),
        "one row": ("explain", model, "--row", f"{data}:7"),
        "simplify": ("simplify", model, data, "-o", folder / "simple.dsfr"),
        "report": ("report", model, data, "-o", page),
        "several files": ("fit", "--engine", "in-process", data, "--target", "x3", *PAPER, "-o", model),
    }
    texts = {}
    for name, command in commands.items():
        result = run(*command)
        assert result.exit_code == 0, (name, result.output)
        texts[name] = result.stdout.replace(str(folder), "")
    predictions = np.asarray(matrix(read_table(out), Schema.of(column_names(out, ",")[-1:])))
    return texts, predictions, page.read_text()


@pytest.mark.parametrize("ending", ENDINGS[1:])
def test_every_format_serves_every_command(tmp_path, ending, monkeypatch):
    monkeypatch.setattr("dsfr.cli.training.SLOW_SECONDS", np.inf)
    (texts, predictions, page), (expected, same, same_page) = (
        outputs_of(tmp_path, kind) for kind in (ending, ENDINGS[0])
    )
    np.testing.assert_array_equal(predictions, same)
    assert page == same_page
    for name in ("explain", "one row"):
        assert texts[name] == expected[name]


def test_a_new_format_is_one_file(tmp_path, with_json_lines, monkeypatch):
    monkeypatch.setattr("dsfr.cli.training.SLOW_SECONDS", np.inf)
    (texts, predictions, page), (expected, same, same_page) = (
        outputs_of(tmp_path, kind) for kind in (".jsonl", ENDINGS[0])
    )
    np.testing.assert_array_equal(predictions, same)
    assert page == same_page
    assert texts["explain"] == expected["explain"]
    folder = tmp_path / "jsonl"
    (folder / "predicted.jsonl").unlink()
    assert dsfr.scan(folder, target="x3").count_rows() == 60


def test_without_its_module_the_format_is_unknown(tmp_path):
    (tmp_path / "rows").mkdir()
    (tmp_path / "rows" / "a.jsonl").write_text('{"x0": 1.0}\n')
    assert "has no file of rows" in refused("fit", tmp_path / "rows", "--target", "x0", "-o", tmp_path / "m.dsfr")
    with pytest.raises(TableError, match=r"cannot write a.jsonl: its ending must be one of .csv, .csv.gz, .tsv"):
        write_table(rows_and_labels(), tmp_path / "a.jsonl")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    ending=st.sampled_from(ENDINGS),
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=4),
    n_columns=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_what_is_written_in_parts_reads_back_the_same(tmp_path, ending, lengths, n_columns, seed):
    rng = np.random.default_rng(seed)
    parts = [rng.standard_normal((n, n_columns)) * 10.0 ** rng.integers(-200, 200) for n in lengths]
    names = [f"x{j}" for j in range(n_columns)]
    tables = [pa.table(dict(zip(names, part.T, strict=True))) for part in parts]
    path = tmp_path / f"rows{ending}"
    assert write_tables(tables, path) == sum(lengths) == count_rows(path, ",")
    assert column_names(path, ",") == names
    np.testing.assert_array_equal(matrix(read_table(path), Schema.of(names)), np.concatenate(parts))
    chosen = names[::-1][: 1 + seed % n_columns]
    read = [matrix(table, Schema.of(chosen)) for table in read_batches(path, chosen, ",")]
    np.testing.assert_array_equal(
        np.concatenate(read), np.concatenate(parts)[:, [names.index(name) for name in chosen]]
    )


def test_an_array_that_was_written_is_one_for_numpy_too(tmp_path):
    path = tmp_path / "rows.npy"
    write_tables([pa.table({"a": [1.0, None], "b": [2, 3]})] * 3, path)
    np.testing.assert_array_equal(np.load(path), [[1.0, 2.0], [np.nan, 3.0]] * 3)
    with pytest.raises(TableError, match="column 'a' has text where a number is needed"):
        write_table(pa.table({"a": ["one"]}), path)
    assert len(np.load(path)) == 6


@pytest.mark.parametrize("ending", [".parquet", ".npy"])
def test_contents_count_more_than_the_ending(tmp_path, ending):
    write_table(rows_and_labels(), tmp_path / f"rows{ending}")
    (tmp_path / f"rows{ending}").rename(tmp_path / "rows.csv")
    assert column_names(tmp_path / "rows.csv", ",") == NAMES
    assert read_table(tmp_path / "rows.csv").num_rows == 60


@pytest.mark.skipif(sys.platform == "win32", reason="/dev/stdin")
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_pipe_is_read_as_a_file(tmp_path, ending):
    write_table(rows_and_labels(), tmp_path / f"rows{ending}")
    command = [sys.executable, "-m", "dsfr", "fit", "/dev/stdin", "--target", "x3", *PAPER, "-o"]
    data = (tmp_path / f"rows{ending}").read_bytes()
    done = subprocess.run(
        [*command, tmp_path / "piped.dsfr"], input=data, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert run("fit", tmp_path / f"rows{ending}", "--target", "x3", *PAPER, "-o", tmp_path / "m.dsfr").exit_code == 0
    X = matrix(rows_and_labels(), Schema.of(NAMES[:3]))
    models = (dsfr.load(tmp_path / name) for name in ("piped.dsfr", "m.dsfr"))
    np.testing.assert_array_equal(*(model.predict(X) for model in models))


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".npy"])
def test_a_table_without_rows_is_refused_by_every_command(tmp_path, ending):
    full, empty, model = tmp_path / f"full{ending}", tmp_path / f"empty{ending}", tmp_path / "m.dsfr"
    write_table(rows_and_labels(), full)
    write_table(rows_and_labels()[:0], empty)
    assert run("fit", full, "--target", "x3", *PAPER, "-o", model).exit_code == 0
    for command in (
        ("fit", empty, "--target", "x3", "-o", tmp_path / "other.dsfr"),
        ("predict", model, empty, "-o", tmp_path / "out.csv"),
        ("explain", model, empty),
        ("report", model, empty, "-o", tmp_path / "page.html"),
    ):
        assert f"empty{ending} has a header and no rows" in refused(*command)
    assert not (tmp_path / "out.csv").exists()
