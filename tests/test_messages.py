"""What the command line says: which file, which option, what to do; and nothing that steers a terminal."""

import csv
import io
import json

import numpy as np
import pytest

from tests.test_cli import refused, run, write

ROWS = "\n".join(f"{a},{b},{a + b * b}" for a, b in np.random.default_rng(0).normal(size=(30, 2)))


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "table.csv", f"a,b,y\n{ROWS}\n")


def fitted(source, path, *options):
    result = run("fit", source, "--target", "y", "-o", path, *options)
    assert result.exit_code == 0, result.output
    return path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("größe,y\n1,2\n".encode("latin-1"), "is not UTF-8 text (byte 3 is 0xf6): save it as UTF-8"),
        ("a,y\nö,2\n".encode("latin-1"), "is not UTF-8 text (byte 5 is 0xf6): save it as UTF-8"),
        ("a,y\n1,2\n".encode("utf-16"), "is UTF-16 text: save it as UTF-8"),
        (b'a,y\n"1,5",2\n', "column 'a' has decimal commas ('1,5' in row 1): read it with --decimal ,"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_text_file_of_another_kind_is_named_with_the_remedy(tmp_path, content, message, streamed):
    (tmp_path / "rows").mkdir()
    path = tmp_path / "rows" / "odd.csv"
    path.write_bytes(content)
    said = refused("fit", path.parent if streamed else path, "--target", "y", "-o", tmp_path / "m.dsfr")
    assert message in said
    assert "odd.csv" in said or "row 1" in said


@pytest.mark.parametrize(
    ("option", "value"),
    [("--rules", "0"), ("--labels", "99"), ("--agents", "99"), ("--max-rounds", "0"), ("--tol", "0")],
)
def test_a_value_that_is_refused_is_named_by_its_option(table, tmp_path, option, value):
    said = refused("fit", table, "--target", "y", "-o", tmp_path / "m.dsfr", option, value)
    assert said.startswith(f"Error: {option} {value}")
    assert "must be" in said


def test_a_row_of_no_file_is_refused(table, tmp_path):
    model = fitted(table, tmp_path / "m.dsfr")
    for told in (":3", f"{tmp_path}:3", f"{tmp_path / 'nowhere.csv'}:3"):
        assert f"--row {told}: there is no file" in refused("explain", model, "--row", told)


def test_parts_of_a_prediction_are_all_there_whatever_features_are_called(tmp_path):
    names = ["mean output", "prediction", "rules that fired"]
    rows = np.random.default_rng(0).normal(size=(40, 3))
    lines = [",".join([*names, "y"]), *(",".join(map(str, [*row, row.sum()])) for row in rows)]
    source = write(tmp_path / "named.csv", "\n".join(lines))
    model = fitted(source, tmp_path / "m.dsfr")
    records = json.loads(run("explain", model, "--row", f"{source}:3", "--format", "json").stdout)
    assert [record["part"] for record in records[2:-1]] == names
    assert records[-1]["value"] == pytest.approx(sum(record["value"] for record in records[:-1]))
    assert list(csv.DictReader(io.StringIO(run("explain", model, "--row", f"{source}:3", "--format", "csv").stdout)))


def test_names_do_not_steer_a_terminal(tmp_path):
    escape = "\x1b[2J"
    lines = "\n".join(f"{i},{i % 5},{2 * i},{'NS'[i % 2]}{escape}" for i in range(30))
    source = write(tmp_path / "odd.csv", f"a,b{escape},y{escape},site\n{lines}\n")
    model = tmp_path / "m.dsfr"
    said = [
        run("fit", source, "--target", f"y{escape}", "--agent-column", "site", "-o", model),
        run("fit", source, "--target", "nothing", "-o", tmp_path / "n.dsfr"),
        run("explain", model),
        run("explain", model, "--row", f"{source}:3"),
    ]
    assert [result.exit_code for result in said] == [0, 2, 0, 0]
    for result in said:
        assert "\x1b" not in result.output
        assert "\\x1b[2J" in result.output or "\\u001b[2J" in result.output


def test_a_simplified_average_says_that_it_has_no_intervals_any_more(table, tmp_path):
    model, simple = fitted(table, tmp_path / "m.dsfr", "--method", "auto"), tmp_path / "s.dsfr"
    shown = run("simplify", model, "-o", simple, "--similarity", "0.3").output
    assert "intervals     lost" in shown
    assert "simplifying a model discards its uncertainty" in refused("predict", simple, table, "--interval", "0.5")
    assert "intervals" not in run("simplify", fitted(table, model), "-o", simple, "--similarity", "0.3").output


def test_a_simplified_model_that_did_not_change_keeps_its_intervals(table, tmp_path):
    model, simple = fitted(table, tmp_path / "m.dsfr", "--method", "auto"), tmp_path / "s.dsfr"
    shown = run("simplify", model, "-o", simple, "--similarity", "1", "--min-strength", "0").output
    assert "intervals" not in shown
    assert run("predict", simple, table, "--interval", "0.5").exit_code == 0


def test_targets_in_extreme_units_have_an_error(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 2))
    lines = ["a,y", *(f"{x},{1e95 * (x + 0.1 * e)}" for x, e in rows)]
    source = write(tmp_path / "huge.csv", "\n".join(lines))
    result = run("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr")
    assert "nan" not in result.stdout
    assert result.stderr == ""
    shown = run("simplify", tmp_path / "m.dsfr", source, "-o", tmp_path / "s.dsfr", "--similarity", "0.3")
    assert "nan" not in shown.output
    assert "inf" not in shown.output
    assert "Warning" not in shown.output


def test_a_column_with_hardly_a_range_has_no_histogram_but_a_report(tmp_path):
    lines = ["a,b,y", *(f"{1e16 + 2 * (i % 3)},{i},{i}" for i in range(30))]
    source = write(tmp_path / "flat.csv", "\n".join(lines))
    model = fitted(source, tmp_path / "m.dsfr")
    assert run("report", model, source, "-o", tmp_path / "r.html").exit_code == 0
