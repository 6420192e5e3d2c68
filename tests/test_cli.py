"""The command line as people use it, on good and on bad files."""

import csv
import gzip
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import dsfr
import dsfr.pipeline.fit  # before a test replaces a function that it takes
from dsfr.cli import METHOD_NAMES, main
from dsfr.cli.explaining import _about_models
from dsfr.cli.group import SOLVERS
from dsfr.cli.training import OPTION_GROUPS
from dsfr.estimators.methods import METHODS
from dsfr.estimators.parameters import read_parameters
from dsfr.paper.datasets import hide_labels
from dsfr.pipeline.options import FitOptions, make_estimator
from dsfr.training.solvers import Solver, Sums
from tests.tables import make_table

X_OF_TABLE = make_table(0)[0]


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refused(*arguments):
    """The message of a command that must fail with exit code 2, one message and no traceback."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
    return result.stderr


@pytest.fixture
def frame():
    X, _, y = make_table(0)
    table = pd.DataFrame(X, columns=["speed", "angle", "depth"])
    table["site"] = np.where(np.arange(len(y)) % 3 == 0, "north", "south")
    table["noise"] = y
    return table


@pytest.fixture
def table(frame, tmp_path):
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


PAPER = ("--method", "sfr-icr")


@pytest.fixture
def model(table, tmp_path):
    path = tmp_path / "model.dsfr"
    told = ["--target", "noise", "--ignore", "site", "--method", "sfr-icr"]
    assert run("fit", table, *told, "-o", path).exit_code == 0
    return path


def test_the_default_method_makes_short_rules_prints_them_and_takes_edits(table, frame, tmp_path):
    path, edited, out = tmp_path / "rules.dsfr", tmp_path / "edited.yaml", tmp_path / "out.csv"
    told = ["fit", table, "--target", "noise", "--ignore", "site"]
    fitted = run(*told, "--rules", 3, "-o", path)
    assert fitted.exit_code == 0, fitted.output
    names = ["speed", "angle", "depth"]
    expected = dsfr.RuleRegressor(max_rules=3, random_state=0).fit(frame[names], frame["noise"])
    assert str(expected.rules_) in fitted.output
    assert run("predict", path, table, "--interval", "0.8", "-o", out).exit_code == 0
    np.testing.assert_allclose(pd.read_csv(out)["prediction"], expected.predict(frame[names]), rtol=1e-12)
    assert run("explain", path, "--as-file", edited).output.strip() == str(expected.rules_)
    assert run("explain", path, "--row", f"{table}:1").exit_code == 0
    # Of a feature along which the target bends: a prescribed word is used only where a rule is worth reading.
    of_speed = "speed:\n  thresholds: [[2.6, 3]]\n  words: [slow, fast]\n"
    edited.write_text(f'angle:\n  condition: no\n  slope: "+"\n{of_speed}')
    again = run(*told, "--rules", edited, "-o", path)
    assert again.exit_code == 0, again.output
    assert "angle is" not in again.output
    assert "speed is slow: below 2.6 fully, above 3 not at all" in again.output
    assert "Price of readability" in again.output


def test_bad_edits_name_the_line(table, tmp_path):
    edited = tmp_path / "edited.yaml"
    told = ["fit", table, "--target", "noise", "--ignore", "site", "-o", tmp_path / "m.dsfr", "--rules", edited]
    for text, message in (
        ("speed:\n  condition: no\nnonsense\n", "line 3: 'nonsense' must be 'feature:'"),
        ("  slope: 1\n", "line 1: 'slope' belongs to no feature"),
        ("speed: 3\n", "line 1: 'speed' is a feature"),
        ("speed:\nspeed:\n", "line 2: 'speed' is there twice"),
        ("speed:\n  thresholds: [[1, 2]\n", "line 2: '[[1, 2]' is no list of pairs"),
        ("speed:\n  slope: up\n", "line 2: slope='up' must be '+', '-' or '0'"),
        ("spede:\n  condition: no\n", "line 1: there is no feature 'spede'; there are speed, angle"),
    ):
        edited.write_text(text)
        assert message in refused(*told)
    assert "must be a number of rules, or a file" in refused(*told[:-1], tmp_path / "nowhere.yaml")
    edited.write_text("speed:\n  condition: no\n")
    assert "--method auto has no use for a file of --rules" in refused(*told, "--method", "auto")


def test_fit_predict_explain(table, model, frame, tmp_path):
    out = tmp_path / "out.csv"
    result = run("predict", model, table, "-o", out)
    assert result.exit_code == 0, result.output
    predicted = pd.read_csv(out)
    assert list(predicted.columns) == [*frame.columns, "prediction"]
    expected = dsfr.load(model).predict(frame)
    np.testing.assert_array_equal(predicted["prediction"], expected)
    text = run("explain", model).output
    assert "5 rules for noise, from 120 rows (30 labelled) of 1 agent(s)" in text
    assert re.search(r"^(IF |AND)  angle +is (very )?(low|medium|high) \(about ", text, flags=re.MULTILINE)
    assert text.count("THEN noise = ") == 5


def test_the_command_line_trains_what_the_estimator_trains(table, model, frame):
    names = ["speed", "angle", "depth"]
    estimator = dsfr.SFRRegressor(random_state=0).fit(frame[names], frame["noise"])
    np.testing.assert_allclose(dsfr.load(model).predict(frame), estimator.predict(frame[names]), rtol=1e-12)


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet"])
def test_every_kind_of_file_goes_in_and_out(frame, model, tmp_path, ending):
    source, out = tmp_path / f"data.{ending}", tmp_path / f"out.{ending}"
    frame.to_parquet(source) if ending == "parquet" else frame.to_csv(source, index=False)
    fitted = tmp_path / "m.dsfr"
    result = run("fit", source, "--target", "noise", "--ignore", "site", *PAPER, "-o", fitted)
    assert result.exit_code == 0, result.output
    assert fitted.read_bytes() == model.read_bytes()
    assert run("predict", fitted, source, "-o", out).exit_code == 0
    back = pd.read_parquet(out) if ending == "parquet" else pd.read_csv(out)
    np.testing.assert_array_equal(back["prediction"], dsfr.load(fitted).predict(frame))


def test_other_columns_pass_through_untouched(model, tmp_path):
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    rows = [
        ["id", "depth", "note", "angle", "speed"],
        ["007", "1.50", 'a "b", c', "2", "3"],
        ["", "-1e2", "über\nzwei Zeilen", "0", " 4 "],
    ]
    with source.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    assert run("predict", model, source, "-o", out).exit_code == 0
    with out.open(newline="") as file:
        back = list(csv.reader(file))
    assert [row[:-1] for row in back] == rows
    X = np.array([[3.0, 2.0, 1.5], [4.0, 0.0, -100.0]])
    np.testing.assert_array_equal([float(row[-1]) for row in back[1:]], dsfr.load(model).predict(X))


def test_without_an_output_predictions_go_to_standard_output(table, model):
    result = run("predict", model, table, "--column", "guess")
    assert result.stdout.splitlines()[0] == "speed,angle,depth,site,noise,guess"
    assert len(result.stdout.splitlines()) == 121


@pytest.mark.parametrize("method", ["sfr-icr", "sfr-g", "s-sfr", "fr", "lapwnn"])
@pytest.mark.parametrize("solver", ["conjugate", "sums", "admm"])
def test_every_method_over_owners(table, tmp_path, method, solver):
    out = tmp_path / "m.dsfr"
    told = ["--target", "noise", "--agent-column", "site", "--method", method, "--solver", solver]
    result = run("fit", table, *told, "-o", out)
    assert result.exit_code == 0, result.output
    assert "Communication" in result.output
    training = dsfr.load(out).training
    assert training["n_agents"] == 2
    assert training["n_samples"] == (30 if method == "fr" else 120)


def test_agents_and_hidden_labels(table, tmp_path):
    out = tmp_path / "m.dsfr"
    result = run("fit", table, "--target", "noise", "--ignore", "site", "--agents", 4, "--labels", 12, "-o", out)
    assert result.exit_code == 0, result.output
    training = dsfr.load(out).training
    assert (training["n_agents"], training["n_labeled"]) == (4, 12)
    assert "NRMSE on the 18 hidden labels" in result.output


def test_errors_on_used_and_hidden_labels_are_what_one_gets_by_hand(tmp_path):
    X, truth, _ = make_table(4, n_rows=90)
    truth[::9] = np.nan  # some rows have no label at all, and count for neither
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=truth)
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run("fit", tmp_path / "t.csv", "--target", "y", "--labels", 25, "--seed", 7, "-o", tmp_path / "m.dsfr")
    predicted = dsfr.load(tmp_path / "m.dsfr").predict(frame[["a", "b", "c"]])
    used = ~np.isnan(hide_labels(truth, 25, np.random.default_rng(7)))
    for what, rows in (("used", used), ("hidden", ~used & ~np.isnan(truth))):
        error = np.sqrt(np.mean((predicted[rows] - truth[rows]) ** 2)) / np.std(truth[rows], ddof=1)
        told = re.search(rf"NRMSE on the {rows.sum()} .*{what}.* (\d\.\d{{4}})", result.output)
        assert told, result.output
        assert float(told[1]) == pytest.approx(error, abs=5.1e-5)


GIVEN = {
    "--rules": (3, "n_rules", 3),
    "--weight": (0.7, "unlabeled__weight", 0.7),
    "--pairs": (77, "unlabeled__n_pairs", 77),
    "--ridge": (0.3, "ridge", 0.3),
    "--tune": ("loo", "tune", "loo"),
    "--fuzzifier": (1.7, "rules__fuzzifier", 1.7),
    "--width-scale": (1.9, "rules__width_scale", 1.9),
    "--solver": ("sums", "solver", Sums()),
    "--tol": (0.003, "solver__tol", 0.003),
    "--max-rounds": (4321, "solver__max_rounds", 4321),
    "--topology": ("ring", "engine__topology", "ring"),
    "--seed": (5, "random_state", 5),
}
"""By option, a value, the parameter of the estimator that it sets, and the value of that."""
ALONG = {("auto", "--ridge"): ["--tune", "none"], ("auto", "--weight"): ["--tune", "none"]}
UNUSED = {
    "auto": [],
    "sfr-icr": [],
    "sfr-g": ["--pairs"],
    "s-sfr": ["--pairs", "--weight"],
    "fr": ["--pairs", "--weight"],
    "lapwnn": ["--pairs", "--fuzzifier", "--width-scale"],
}


def test_every_option_of_the_method_is_tried():
    elsewhere = {
        "method",
        "paper",
        "engine",
        "scheduler",
        "checkpoint",
        "resume",
        "policy",
        "masks",
        "agents",
        "agent_column",
    }
    names = {f"--{name.replace('_', '-')}" for group in ("Method", "Agents") for name in OPTION_GROUPS[group]}
    assert set(GIVEN) == names - {f"--{name.replace('_', '-')}" for name in elsewhere}


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_every_option_wins_or_is_refused(table, tmp_path, method):
    """What is given reaches the training, also with --method auto; what the method has no use for is refused."""
    fit = ["fit", table, "--target", "noise", "--ignore", "site", "--method", method]
    for option, (value, parameter, expected) in GIVEN.items():
        out = tmp_path / f"{option}.dsfr"
        if option in UNUSED[method]:
            message = refused(*fit, option, value, "-o", out)
            assert f"--method {method} has no use for {option}: leave out what has no effect, or take" in message
            assert not out.exists()
            continue
        options = make_options(method, {option: value}, ALONG.get((method, option), []))
        estimator = make_estimator(options, None)
        if method == "lapwnn" and option == "--rules":
            parameter, expected = "n_nodes", 60
        found = estimator.component("solver") if parameter == "solver" else estimator.get_params()[parameter]
        assert found == expected


def make_options(method, given, along):
    """Options as the command line makes them of what is given."""
    seen = []
    command = [*map(str, (word for pair in given.items() for word in pair)), *along]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("dsfr.pipeline.options.FitOptions", lambda **told: seen.append(FitOptions(**told)) or seen[0])
        patched.setattr("dsfr.pipeline.options.make_estimator", lambda *_: sys.exit(7))
        result = run("fit", "none.csv", "--target", "y", "-o", "m.dsfr", "--method", method, *command)
    assert result.exit_code == 7, result.output
    return seen[0]


@pytest.mark.parametrize("method", ["sfr-icr", "sfr-g", "lapwnn"])
def test_options_change_the_model(table, tmp_path, method):
    fit = ["fit", table, "--target", "noise", "--ignore", "site", "--method", method]
    plain = tmp_path / "plain.dsfr"
    assert run(*fit, "-o", plain).exit_code == 0
    for option in ("--rules", "--weight", "--ridge", "--tune", "--fuzzifier", "--width-scale", "--pairs"):
        if option not in UNUSED[method]:
            out = tmp_path / f"{option}.dsfr"
            assert run(*fit, option, GIVEN[option][0], "-o", out).exit_code == 0
            assert (dsfr.load(out).predict(X_OF_TABLE) != dsfr.load(plain).predict(X_OF_TABLE)).any(), option


def test_every_option_without_effect_is_named_with_the_methods_that_have_use_for_it(table, tmp_path):
    fit = ["fit", table, "--target", "noise", "-o", tmp_path / "m.dsfr", "--method"]
    message = refused(*fit, "lapwnn", "--pairs", 9, "--width-scale", 2)
    assert (
        "no use for --pairs, --width-scale: leave out what has no effect, or take --method rules or auto or sfr-icr\n"
        in message
    )
    message = refused(*fit, "FR", "--weight", 0.1)
    assert (
        "no use for --weight: leave out what has no effect, or take --method rules or auto or lapwnn or sfr-g"
        in message
    )
    assert "--solver few-rounds has no use for --max-rounds" in refused(
        *fit, "sfr-icr", "--solver", "few-rounds", "--max-rounds", 3
    )


@pytest.mark.parametrize("solver", ["admm", "conjugate", "few-rounds"])
def test_auto_with_a_solver_that_it_cannot_use_is_refused_with_the_reason(table, tmp_path, solver):
    fit = ["fit", table, "--target", "noise", "--agent-column", "site", "-o", tmp_path / "m.dsfr"]
    message = refused(*fit, "--method", "auto", "--solver", solver)
    assert "does not go with" in message
    assert "because" in message
    assert "or take solver='sums'" in message
    assert not (tmp_path / "m.dsfr").exists()


@pytest.mark.parametrize("method", ["sfr-icr", "sfr-g", "s-sfr", "fr", "lapwnn"])
def test_paper_is_the_preset_of_the_method_and_options_win(table, tmp_path, method):
    fit = ["fit", table, "--target", "noise", "--agent-column", "site", "--method", method, "--paper"]
    assert run(*fit, "--ridge", 0.7, "--max-rounds", 7, "-o", tmp_path / "m.dsfr").exit_code == 0
    stored = read_parameters(dsfr.load(tmp_path / "m.dsfr").settings)
    expected = METHODS[method].as_printed(ridge=0.7, solver__max_rounds=7)
    for name in ("solver", "scaling", "unlabeled", "ridge", *(["rules"] if method != "lapwnn" else [])):
        assert stored[name] == getattr(expected, name), name


def test_paper_does_not_go_with_the_automatic_method(table, tmp_path):
    message = refused("fit", table, "--target", "noise", "--method", "auto", "--paper", "-o", tmp_path / "m.dsfr")
    assert "--paper does not go with --method auto" in message


def test_help_groups_the_options():
    text = run("fit", "--help").output
    places = [text.index(f"\n{heading}:\n") for heading in ("Data", "Method", "Agents", "Output", "Other")]
    assert places == sorted(places)
    assert text[places[1] :].index("--ridge") < places[2] - places[1]
    assert re.findall(r"^  (?:-\w, )?--(\S+)", text[places[-1] :], flags=re.MULTILINE) == ["help"]  # all are grouped


def test_the_help_of_a_plan_states_the_rounds_that_it_uses():
    text = " ".join(run("plan", "--help").output.split()).replace("- ", "-")  # names break at hyphens
    told = ["plan", "--rows", 100, "--features", 2, "--agents", 3]
    for name, kind in Solver.choices.items():
        if kind.usual_rounds is None:
            continue
        clusters, weights = kind.usual_rounds
        assert re.search(rf"Rounds of clustering\. \[x>=1\] \[default: [^]]*\b{name} {clusters}\b", text)
        assert re.search(rf"Rounds of solving\. \[x>=1\] \[default: [^]]*\b{name} {weights}\b", text)
        graph = ["--topology", "complete"] if kind.gossips else []
        rows = re.findall(r"^ +(\w+) +(\d+) ", run(*told, "--solver", name, *graph).output, flags=re.MULTILINE)
        counts = {task: int(rounds) for task, rounds in rows}
        asked = {"cluster_sums", "cluster_consensus", "count_and_sum"}
        assert sum(counts.get(task, 0) for task in asked) == clusters
        asked = {"statistics", "first_gradient", "weight_gradient", "weight_consensus"}
        assert sum(counts.get(task, 0) for task in asked) == weights


def test_the_command_line_knows_the_methods_without_loading_them():
    assert sorted(METHOD_NAMES) == sorted(["rules", "auto", *METHODS])
    assert sorted(SOLVERS) == sorted(Solver.choices)


def test_auto_trains_what_the_estimator_trains_and_knows_how_sure_it_is(table, frame, tmp_path):
    path, out = tmp_path / "auto.dsfr", tmp_path / "out.csv"
    told = run("fit", table, "--target", "noise", "--agent-column", "site", "--method", "auto", "-o", path)
    assert told.exit_code == 0, told.output
    assert "Models in the average" in told.output
    assert run("predict", path, table, "--interval", "0.8", "-o", out).exit_code == 0
    X = frame[["speed", "angle", "depth"]].to_numpy()
    expected = dsfr.AutoSFRRegressor(random_state=0).fit(X, frame["noise"], agents=frame["site"])
    written = pd.read_csv(out)
    np.testing.assert_allclose(written["prediction"], expected.predict(X), rtol=1e-9)
    ends = written[["prediction_low", "prediction_high"]].to_numpy()
    np.testing.assert_allclose(ends, np.stack(expected.predict_interval(X, 0.8), axis=1), rtol=1e-9)
    assert re.search(r"average of \d+ (rule bases|sums of effects)", run("explain", path).output)


def test_what_auto_and_intervals_cannot_do_is_said(table, model, tmp_path):
    fit = ("fit", table, "--target", "noise", "--ignore", "site", "-o", tmp_path / "m.dsfr")
    auto = ("--method", "auto")
    assert "--method auto chooses --ridge by --tune evidence: leave out --ridge" in refused(*fit, *auto, "--ridge", "1")
    assert "--tune loo chooses --ridge, --weight" in refused(*fit, "--tune", "loo", "--ridge", "1", "--weight", "1")
    assert "train it with uncertainty=True" in refused("predict", model, table, "--interval", "0.9")
    assert "0<x<1" in refused("predict", model, table, "--interval", "1.5")
    assert run(*fit, *auto).exit_code == 0
    assert "needs at least 999 labelled rows" in refused("predict", tmp_path / "m.dsfr", table, "--interval", "0.999")


def test_the_seed_changes_the_model(table, tmp_path):
    seeds = []
    for seed in (0, 1):
        out = tmp_path / f"{seed}.dsfr"
        run("fit", table, "--target", "noise", "--ignore", "site", *PAPER, "--seed", seed, "-o", out)
        seeds.append(dsfr.load(out).settings["random_state"])
    assert seeds[0] != seeds[1]


def test_few_rounds(table, tmp_path):
    out = tmp_path / "m.dsfr"
    assert (
        run(
            "fit", table, "--target", "noise", "--agent-column", "site", *PAPER, "--solver", "few-rounds", "-o", out
        ).exit_code
        == 0
    )
    assert dsfr.load(out).training["rounds"] == 6


def test_features_can_be_chosen(table, tmp_path):
    out = tmp_path / "m.dsfr"
    assert run("fit", table, "--target", "noise", "--features", "depth, speed", *PAPER, "-o", out).exit_code == 0
    assert dsfr.load(out).feature_names == ("depth", "speed")


def test_not_converging_is_a_warning_on_standard_error(table, tmp_path):
    told = ["--target", "noise", "--agent-column", "site", "--max-rounds", 2, "-o", tmp_path / "m.dsfr"]
    result = run("fit", table, *told, *PAPER)
    assert result.exit_code == 0
    assert "Warning: the weights did not reach tol" in result.stderr
    assert "max_rounds" in result.stdout


@pytest.mark.parametrize("moment", ["training", "writing"])
def test_an_interrupted_command_ends_at_once_and_leaves_no_trace(table, tmp_path, moment):
    """Ctrl-C: the exit code of convention, one word, no traceback; the old model is still there, and nothing else."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "m.dsfr").write_text("old")
    patched = {"training": "dsfr.training.scaling.survey, 'first_look'", "writing": "os, 'fsync'"}[moment]
    code = f"""
import os, sys, time, unittest.mock, dsfr.training.scaling.survey
from dsfr.cli import main
def hang(*_, **__):
    print("ready", os.listdir("."), flush=True)
    time.sleep(60)
with unittest.mock.patch.object({patched}, hang):
    main(sys.argv[1:])
"""
    told = ["--target", "noise", "--ignore", "site", *PAPER, "-o", "m.dsfr"]
    command = [sys.executable, "-c", code, "fit", table, *told]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=work) as process:
        ready = process.stdout.readline()
        assert ready.startswith("ready")
        assert ready.count(",") == (1 if moment == "writing" else 0)  # a temporary file beside the old one
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == "Interrupted.\n"
    assert [path.name for path in work.iterdir()] == ["m.dsfr"]
    assert (work / "m.dsfr").read_text() == "old"


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,y\n", "a header and no rows"),
        ("a,y\n1,\n2,\n", "no row is labelled"),
        ("a,b\n1,2\n", "no column 'y'; it has a, b"),
        ("a,y\n1,2\nx,3\n", "column 'a' has text where a number is needed: 'x' in row 2"),
        ("a,y\n1,2\n2,many\n", "column 'y' has text where a number is needed: 'many' in row 2"),
        ("a,y\n1,2\n,3\n", "too few values in a (1 values)"),
        ("a,y\n1,2\nNaN,3\n", "too few values in a (1 values)"),
        ("a,y\n1,2\ninf,3\n", "column 'a' is infinite in row 2"),
        ("a,y\n1,2\n2,-inf\n", "column 'y' is infinite in row 2"),
        ("a,a,y\n1,2,3\n", "several columns named a"),
        ("y\n1\n", "no feature column is left"),
        ("a,y\n1,2\n1,2,3\n", "cannot be read"),
        ("a,y\n1,2\n3\n", "cannot be read"),
    ],
)
def test_a_bad_table_is_one_message_with_a_remedy(tmp_path, text, message):
    source = write(tmp_path / "bad.csv", text)
    assert message in refused("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr")
    assert not (tmp_path / "m.dsfr").exists()


@pytest.mark.parametrize("content", [b"\x1f\x8b broken", b"", gzip.compress(b"a,y\n1,2\n" * 99, mtime=0)[:-20]])
def test_a_damaged_gzip_file_is_refused(tmp_path, content):
    source = tmp_path / "bad.csv.gz"
    source.write_bytes(content)
    refused("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr")


@pytest.mark.parametrize("content", [b"PAR1 no", b"", b"a,y\n1,2\n"])
def test_a_damaged_parquet_file_is_refused(tmp_path, content):
    source = tmp_path / "bad.parquet"
    source.write_bytes(content)
    assert "bad.parquet" in refused("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr")


def test_binary_text_is_refused(tmp_path):
    source = tmp_path / "bad.csv"
    source.write_bytes(b"a,y\n\xff\xfe,2\n1,2\n")
    assert "is not UTF-8 text" in refused("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr")


def test_columns_of_the_wrong_kind_in_parquet_are_refused(tmp_path):
    source = tmp_path / "bad.parquet"
    pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2020-01-02"]), "y": [1.0, 2.0]}).to_parquet(source)
    message = refused("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr")
    assert "column 'a' holds dates: turn it into numbers" in message
    pd.DataFrame({"a": [1.0, np.inf], "y": [1.0, 2.0]}).to_parquet(source)
    assert "infinite in row 2" in refused("fit", source, "--target", "y", "-o", tmp_path / "m.dsfr")


def test_one_row_and_constant_columns_work(tmp_path):
    for name, text in (
        ("one", "a,y\n1,2\n"),
        ("two", "size,age,rooms,price\n134.7,22,4,365.95\n68.6,42,6,276.03\n"),
        ("constant", "a,b,y\n1,1,2\n1,2,3\n1,3,\n"),
        ("bom", "\ufeffa,y\n1,2\n2,3\n"),
    ):
        source, out = write(tmp_path / f"{name}.csv", text), tmp_path / f"{name}.dsfr"
        assert run("fit", source, "--target", text.split("\n")[0].split(",")[-1], *PAPER, "-o", out).exit_code == 0
        assert run("predict", out, source, "-o", tmp_path / "p.csv").exit_code == 0


def test_whole_numbers_truth_values_and_gaps_in_parquet_work(tmp_path):
    source, out = tmp_path / "t.parquet", tmp_path / "m.dsfr"
    table = pd.DataFrame({"a": range(20), "b": [True, False] * 10, "y": pd.array([1, 2, None, 4] * 5, dtype="Int64")})
    table.to_parquet(source)
    assert run("fit", source, "--target", "y", *PAPER, "-o", out).exit_code == 0
    assert dsfr.load(out).training["n_labeled"] == 15


def test_options_that_cannot_be_met_are_refused(table, tmp_path):
    out = tmp_path / "m.dsfr"
    fit = ["fit", table, "--target", "noise", "-o", out]
    assert "exclude each other" in refused(*fit, "--agents", 2, "--agent-column", "site")
    assert "no column 'where'" in refused(*fit, "--agent-column", "where")
    assert "no column 'where'" in refused(*fit, "--ignore", "where")
    assert "has no column where" in refused(*fit, "--features", "where")
    assert "names one that is the target" in refused(*fit, "--features", "speed,noise")
    assert "or ignored" in refused(*fit, "--features", "speed", "--ignore", "speed")
    assert "must be one character" in refused(*fit, "--delimiter", ";;")
    assert "--labels 31 must be 1 to 30" in refused(*fit, "--agent-column", "site", "--labels", 31)
    assert "--fuzzifier 0.5 must be a number > 1" in refused(*fit, "--ignore", "site", "--fuzzifier", 0.5)
    assert "--agents 500" in refused(*fit, "--ignore", "site", "--agents", 500)
    assert "Invalid value for '--method'" in refused(*fit, "--method", "magic")
    assert "Missing option '--target'" in refused("fit", table, "-o", out)
    assert "does not exist" in refused("fit", tmp_path / "none.csv", "--target", "y", "-o", out)
    assert "No such command" in refused("train")


def test_outputs_that_cannot_be_written_are_refused_before_any_work(table, model, tmp_path):
    nowhere = tmp_path / "nowhere" / "m.dsfr"
    assert "does not exist: create it" in refused("fit", table, "--target", "noise", "-o", nowhere)
    assert "is a folder" in refused("predict", model, table, "-o", tmp_path)
    before = table.read_bytes()
    assert "is an input file" in refused("predict", model, table, "-o", table)
    assert "is an input file" in refused("fit", table, "--target", "noise", "-o", table)
    assert table.read_bytes() == before


def test_predict_checks_columns_by_name(model, tmp_path):
    source = write(tmp_path / "p.csv", "speed,angle\n1,2\n")
    assert "lacks the column(s) depth; it has speed, angle" in refused("predict", model, source)
    source = write(tmp_path / "q.csv", "prediction,depth,speed,angle\n1,2,3,4\n")
    assert "column 'prediction' already" in refused("predict", model, source)
    source = write(tmp_path / "r.csv", "depth,speed,angle\n1,,3\n")
    assert run("predict", model, source).exit_code == 0


def test_a_file_that_is_no_model_is_refused(table):
    assert "is not a dsfr model file" in refused("explain", table)
    assert "is not a dsfr model file" in refused("predict", table, table)


def test_models_without_rules_say_so(table, tmp_path):
    out = tmp_path / "m.dsfr"
    run("fit", table, "--target", "noise", "--ignore", "site", "--method", "lapwnn", "-o", out)
    assert "wavelets, not rules" in refused("explain", out)


def test_help_has_examples():
    for command in ([], ["demo"], ["fit"], ["predict"], ["explain"]):
        result = run(*command, "--help")
        assert result.exit_code == 0
        assert "Examples:" in result.output
        assert "  dsfr " in result.output


def test_as_a_program(table, tmp_path):
    """A real process: exit codes, streams, and `python -m dsfr`."""
    command = [sys.executable, "-m", "dsfr"]
    version = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert dsfr.__version__ in version.stdout
    bad = subprocess.run([*command, "explain", str(table)], capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("Error: ")
    assert "Traceback" not in bad.stderr
    fit = [*command, "fit", str(table), "--target", "noise", "--ignore", "site", *PAPER, "-o", "m.dsfr"]
    good = subprocess.run(fit, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert good.stderr == ""  # no progress without a terminal
    assert (tmp_path / "m.dsfr").exists()


def test_import_loads_nothing_heavy():
    """`import dsfr` and `dsfr --help` stay quick: numerical and table libraries load when they are needed."""
    code = "import sys, dsfr.cli; print([m for m in ('numpy', 'sklearn', 'pyarrow', 'rich') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert out.stdout.strip() == "[]"


def test_public_names_are_there():
    for name in dsfr.__all__:
        assert getattr(dsfr, name) is not None
    assert set(dsfr.__all__) <= set(dir(dsfr))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = dsfr.nothing


def test_fit_prints_the_leave_one_out_error_with_its_uncertainty(table, frame, tmp_path):
    """The root mean square and its standard error, from the errors that intervals are made of."""
    out = tmp_path / "m.dsfr"
    text = run("fit", table, "--target", "noise", "--ignore", "site", "-o", out).output
    error, standard_error = map(float, re.search(r"NRMSE, leave-one-out +([\d.]+) ± ([\d.]+)", text).groups())
    scores = dsfr.load(out).mixture.scores
    squares = np.repeat(scores.thresholds, np.diff(scores.counts, prepend=0.0).astype(int)) ** 2
    spread = frame["noise"].std()
    assert error * spread == pytest.approx(np.sqrt(squares.mean()), rel=5e-3)  # printed with four digits
    by_hand = squares.std(ddof=1) / np.sqrt(len(squares)) / (2 * np.sqrt(squares.mean()))
    assert standard_error == pytest.approx(by_hand / spread, abs=6e-5)  # printed with four digits
    assert re.search(r"The unlabelled rows (lower|raise|bring no measurable gain)", text)


def test_fit_says_nothing_about_unlabelled_rows_where_there_are_none(frame, tmp_path):
    frame.dropna().to_csv(tmp_path / "t.csv", index=False)
    text = run("fit", tmp_path / "t.csv", "--target", "noise", "--ignore", "site", "-o", tmp_path / "m.dsfr").output
    assert "NRMSE, leave-one-out" in text
    assert "The unlabelled rows" not in text


def fitted_text(frame, folder):
    frame.to_csv(folder / "t.csv", index=False)
    return run("fit", folder / "t.csv", "--target", "noise", "--ignore", "site", "-o", folder / "m.dsfr").output


def test_fit_says_that_a_model_is_not_better_than_the_mean(frame, tmp_path):
    said = "No signal was measured: always answering with the mean of the labels has NRMSE 1"
    assert said not in fitted_text(frame, tmp_path)
    labels = frame["noise"].notna()
    for seed in range(4):
        frame.loc[labels, "noise"] = np.random.default_rng(seed).normal(size=labels.sum())
        text = fitted_text(frame, tmp_path)
        error, uncertainty = map(float, re.search(r"NRMSE, leave-one-out +([\d.]+) ± ([\d.]+)", text).groups())
        assert (said in text) == (error + uncertainty >= 1.0)
        assert not (said in text and "The unlabelled rows" in text)
        if said in text:
            return
    raise AssertionError("four tables of noise, and signal was measured in all")


def test_one_label_and_equal_labels_have_no_error_to_tell(frame, tmp_path):
    frame["noise"] = np.where(np.arange(len(frame)) == 3, 5.0, np.nan)
    assert "leave-one-out   " not in fitted_text(frame, tmp_path)
    frame["noise"] = np.where(np.arange(len(frame)) < 30, 7.0, np.nan)
    text = fitted_text(frame, tmp_path)
    assert "The unlabelled rows" not in text
    assert "A result below" not in text
    assert text.rstrip().endswith("THEN noise = 7")


def test_labels_of_duplicates_are_told_as_such(frame, tmp_path):
    n_labels = int(frame["noise"].notna().sum())
    assert f"NRMSE on the {n_labels} labels used" in fitted_text(frame, tmp_path)
    twice = pd.concat([frame, frame])
    assert f"NRMSE on the {2 * n_labels} labels, duplicates included" in fitted_text(twice, tmp_path)


@pytest.mark.parametrize(
    ("agreement", "said"),
    [(0.87, "it explains 87.0%"), (-10.961, "worse than a constant"), (None, "not measured after simplifying")],
)
def test_a_member_explains_no_negative_share_of_the_average(agreement, said):
    models = [
        {"share": 0.6, "n_rules": 5.0, "agreement": agreement},
        {"share": 0.4, "n_rules": 10.0, "agreement": 0.9},
    ]
    text = _about_models(models, all_models=False)
    assert said in text
    assert not re.search(r"-\d", text)


def test_the_demo_shows_rules_errors_traffic_and_a_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dsfr.paper.demo.N_FOLDS", 2)
    result = run("demo")
    assert result.exit_code == 0, result.output
    rules, _, compared = result.output.partition("Error on wines")
    assert "THEN flavanoids = " in rules
    for method in (
        "RuleRegressor",
        "AutoSFRRegressor",
        "ridge regression",
        "extra trees",
        "FR (paper)",
        "LapWNN (paper)",
        "SFR-ICR (paper)",
    ):
        assert f"\n  {method} " in compared
    assert re.search(
        r"^Lowest error of dsfr's estimators on this table: .+ \(dsfr fit --method [\w-]+\)\.", compared, re.MULTILINE
    )
    assert len(re.findall(r"cellar \d [\d,]+ kB", compared)) == 5
    assert str(tmp_path / "demo.html") in result.output
    model = dsfr.load(tmp_path / "demo.dsfr")
    assert (model.training["n_labeled"], model.training["n_agents"]) == (50, 5)
    for command in re.findall(r"^  dsfr (explain .*?|predict .*?) +#", result.output, flags=re.MULTILINE):
        assert run(*command.split()).exit_code == 0


def test_training_over_a_graph_says_what_every_agent_sent(table, tmp_path):
    links = tmp_path / "links.txt"
    links.write_text("north south\n")
    told = ["fit", table, "--target", "noise", "--agent-column", "site", "--topology", links]
    for solver in ("sums", "decentralized"):
        result = run(*told, *PAPER, "--solver", solver, "-o", tmp_path / "model.dsfr")
        assert result.exit_code == 0, result.output
        rows = re.findall(
            r"^ +(north|south) +(\d+) of (\d+) +\d+ +[\d.]+ +[\d.]+ *$", result.output, flags=re.MULTILINE
        )
        assert {row[0] for row in rows} == {"north", "south"}
        assert all(taken == all_rounds for _, taken, all_rounds in rows)


def test_a_graph_in_pieces_is_refused_with_its_components(table, tmp_path):
    told = ["fit", table, "--target", "noise", "--ignore", "site", "--agents", 4, "-o", tmp_path / "model.dsfr"]
    links = tmp_path / "links.txt"
    links.write_text("0 1\n2 3\n")
    assert "its components are [0, 1]; [2, 3]" in refused(*told, "--topology", links)
    assert "neither a file nor one of complete, star" in refused(*told, "--topology", "triangle")
    assert not (tmp_path / "model.dsfr").exists()


def test_a_plan_shows_tasks_and_totals():
    result = run("plan", "--rows", "1e4", "--features", 3, "--agents", 4, "--solver", "few-rounds", "--latency", 500)
    assert result.exit_code == 0, result.output
    assert re.search(r"all +6 +[\d.]+ +6\.\d*|all +6 +[\d.]+ +6 ", result.output)
    assert "Kilobytes are exact for these rounds." in result.output
    assert "assumed" not in result.output
    ring = run("plan", "--rows", 100, "--features", 3, "--agents", 4, "--topology", "ring").output
    assert "Rounds of iterations are assumed" in ring
    assert "One agent sends nothing" in run("plan", "--rows", 100, "--features", 3, "--agents", 1).output


def kilobytes(output, pattern):
    return float(re.search(pattern, output)[1])


@pytest.mark.parametrize("graph", ["geometric", "erdos-renyi", "barabasi-albert", "ring"])
def test_a_plan_is_for_the_graph_that_a_fit_with_the_same_seed_draws(tmp_path, graph):
    rng = np.random.default_rng(0)
    table = tmp_path / "t.csv"
    np.savetxt(table, rng.normal(size=(60, 3)), delimiter=",", header="a,b,y", comments="")
    told = ["--agents", 12, "--topology", graph, "--solver", "few-rounds", "--seed", 5]
    trained = run("fit", table, "--target", "y", *told, *PAPER, "-o", tmp_path / "m.dsfr").output
    planned = run("plan", "--rows", 60, "--features", 2, *told).output
    assert kilobytes(planned, r"all +6 +([\d.]+)") == kilobytes(trained, r"\(([\d.]+) kB sent\)")


def test_a_plan_takes_a_file_with_names(tmp_path):
    links = tmp_path / "links.txt"
    links.write_text("north,east\neast,south side\n")
    result = run("plan", "--rows", 100, "--features", 3, "--agents", 3, "--topology", links)
    assert result.exit_code == 0, result.output
    assert "the agents are 0, 1, 2, 3" in refused(
        "plan", "--rows", 100, "--features", 3, "--agents", 4, "--topology", links
    )


@pytest.mark.parametrize(
    "wrong",
    [
        ["--rows", "0"],
        ["--rows", "nan"],
        ["--rows", "many"],
        ["--latency", "-1"],
        ["--bandwidth", "0"],
        ["--features", "0"],
        ["--rules", "0"],
        ["--rules", "100000"],
        ["--topology", "triangle"],
    ],
)
def test_impossible_plans_are_refused(wrong):
    told = {"--rows": "100", "--features": "3", "--agents": "4"} | dict([wrong])
    refused("plan", *(word for option in told.items() for word in option))


def test_what_the_automatic_mode_has_tuned_is_not_shown_unasked(table, tmp_path):
    told = ["fit", table, "--target", "noise", "--ignore", "site", "-o", tmp_path / "model.dsfr"]
    assert "tuned" not in run(*told).output


def test_tuning_shows_what_it_has_chosen(table, tmp_path):
    told = ["fit", table, "--target", "noise", "--ignore", "site", "--tune", "evidence", "-o", tmp_path / "model.dsfr"]
    output = run(*told).output
    for name in ("ridge", "unlabeled_weight", "noise", "log_evidence"):
        assert f"tuned {name}" in output
    assert "--tune evidence chooses --ridge" in refused(*told, "--ridge", 1)
