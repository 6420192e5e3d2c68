"""A check tells yes and no about every owner's table, names who does not fit, and shows no value."""

import json

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from dsfr.cli import main
from dsfr.disclosure import Policy
from dsfr.disclosure.owner import STATE
from dsfr.engines import EngineError
from dsfr.federation.check import NO, UNKNOWN, YES, Expected, check_table, mismatches
from dsfr.federation.fit import federated_check, fit_plan
from dsfr.federation.messages import CHECK, Message
from dsfr.pipeline.options import FitOptions
from dsfr.pipeline.ranges import read_ranges, read_units
from dsfr.training import RangeScaling
from tests.disclosure.crypto import needs_cryptography
from tests.federation.owners import FEATURES, RANGES, make_owners, table, write_tables


def plan_of(ranges=RANGES, units=None, features=FEATURES):
    return fit_plan(FitOptions(target="y"), features, ranges, units)


def replies_of(owners):
    def ask(data):
        found = {}
        for name, owner in owners.items():
            try:
                found[name] = owner.answer(data)
            except EngineError as error:
                found[name] = error
        return found

    return ask


def checked(path, plan, policy=None, stated=None):
    """Answers by the text of their question."""
    expected = Expected.of(plan)
    answers = check_table(path, expected, policy or Policy(), stated)
    asked = expected.questions()
    assert len(answers) == len(asked)
    return {question.text: answer for question, answer in zip(asked, answers, strict=True)}, mismatches(asked, answers)


@pytest.fixture
def path(tmp_path):
    write_tables(tmp_path, ["a"], *table())
    return tmp_path / "a.csv"


def changed(path, old, new, n=-1):
    path.write_text(path.read_text().replace(old, new, n))
    return path


def test_a_table_that_fits_has_no_mismatch(path):
    answers, wrong = checked(path, plan_of(), stated={})
    assert wrong == []
    assert set(answers.values()) == {YES}


@pytest.mark.parametrize(
    ("change", "wrong", "void"),
    [
        (("a,b,c,y", "a,bb,c,y"), ["b: the column is there"], 3),
        (("a,b,c,y\n", "a,b,c,y\n3.0,much,1.0,\n"), ["b: values are numbers"], 2),
        (("a,b,c,y\n", "a,b,c,y\n99.0,1.0,1.0,\n"), ["a: values are within the declared range"], 0),
        (("a,b,c,y\n", "a,b,c,y\n3.0,1.0,1.0,-1\n"), ["y: values are within the declared range"], 0),
        (("a,b,c,y\n", "a,b,c,y\n3.0,1.0,1.0,low\n"), ["y: values are numbers"], 2),
        (("a,b,c,y\n", "a,b,c,y\n3.0,1.0,inf,\n"), ["c: values are numbers"], 2),
    ],
)
def test_what_does_not_fit_is_named_and_nothing_else(path, change, wrong, void):
    answers, found = checked(changed(path, *change), plan_of())
    assert found == wrong
    assert list(answers.values()).count(UNKNOWN) == void


def test_order_and_missing_values_are_told_and_do_no_harm(path):
    changed(path, "a,b,c,y\n", "b,a,c,y\n1.0,,1.0,\n")
    ranges = RangeScaling(lower=(-99.0,) * 3, upper=(200.0,) * 3, target_range=(0.0, 100.0))
    answers, wrong = checked(path, plan_of(ranges))
    assert wrong == []
    assert answers["columns are in the order of the plan (they are read by name)"] == NO
    assert answers["a: no value is missing"] == NO
    assert answers["b: no value is missing"] == YES


def test_rows_labels_columns_and_units_are_compared(path):
    tight = Policy(min_rows=1000, min_labels=1000, columns=("a", "b"))
    _, wrong = checked(path, plan_of(units={"a": "degC", "b": "m", "z": "kg"}), tight, {"a": "degF"})
    assert wrong == [
        "a: the unit is degC",
        "columns are allowed by the owner's policy",
        "rows are enough for the owner's policy",
        "labels are enough for the owner's policy, or none",
    ]


def test_a_category_is_checked_by_its_levels(tmp_path):
    (tmp_path / "t.csv").write_text("kind,x,y\n" + "red,1.0,2.0\nblue,2.0,\n" * 40)
    options = FitOptions(target="y", category=("kind=red,blue",))
    ranges = RangeScaling(lower=(0.0, 0.0), upper=(1.0, 9.0), target_range=(0.0, 9.0))
    expected = Expected.of(fit_plan(options, ("kind", "x"), ranges))
    assert mismatches(expected.questions(), check_table(tmp_path / "t.csv", expected, Policy())) == []
    (tmp_path / "t.csv").write_text("kind,x,y\n" + "red,1.0,2.0\ngreen,2.0,\n" * 40)
    found = dict(
        zip([q.text for q in expected.questions()], check_table(tmp_path / "t.csv", expected, Policy()), strict=True)
    )
    assert found["kind: no value is missing, or another level"] == NO


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20), st.floats(-1e3, 1e3), st.floats(0.1, 1e3))
def test_within_means_within(tmp_path_factory, values, low, width):
    path = tmp_path_factory.mktemp("rows") / "t.csv"
    path.write_text("x,y\n" + "".join(f"{value!r},\n" for value in values))
    ranges = RangeScaling(lower=(low,), upper=(low + width,), target_range=(0.0, 1.0))
    answers, _ = checked(path, plan_of(ranges, features=("x",)))
    assert answers["x: values are within the declared range"] == int(low <= min(values) and max(values) <= low + width)


def test_ranges_may_have_units_and_are_refused_otherwise(tmp_path):
    path = tmp_path / "ranges.toml"
    path.write_text('a = [0, 1, "m"]\nb = [0, 2]\ny = [0, 3]\nc = "kg"\n')
    schema = Expected.of(plan_of(RangeScaling(lower=(0, 0), upper=(1, 1), target_range=(0, 1)), features=("a", "b")))
    assert read_ranges(path, schema.columns.schema, "y").upper == (1.0, 2.0)
    assert read_units(path) == {"a": "m", "c": "kg"}
    for line in ("a = 3", "a = [0]", 'a = ["0", 1]', "a = [0, 1, 2]", "a = [true, 1]", "[a]\nb = 1"):
        path.write_text(line + "\n")
        with pytest.raises(ValueError, match="ranges"):
            read_units(path)


def test_every_owner_answers_for_itself(tmp_path):
    needs_cryptography()
    owners, _ = make_owners(tmp_path, units={"a": "m"})
    changed(tmp_path / "b.csv", "a,b,c,y", "a,b,secret,y")
    found = federated_check(plan_of(units={"a": "m"}), replies_of(owners), "run")
    asked = Expected.of(plan_of(units={"a": "m"})).questions()
    assert {name: mismatches(asked, answers) for name, answers in found.items()} == {
        "a": [],
        "b": ["c: the column is there"],
        "c": [],
    }
    lines = owners["a"].journal.entries()
    assert lines[-1]["event"] == "checked"


def test_ranges_cannot_be_narrowed_check_by_check(tmp_path):
    """The rule that stops bisection; the same table may be asked for again."""
    needs_cryptography()
    owners, _ = make_owners(tmp_path)
    for number in range(5):
        ranges = RangeScaling(lower=RANGES.lower, upper=(4.0 - number / 10, 13.0, 103.0), target_range=(0.0, 100.0))
        for _ in range(2):
            assert isinstance(federated_check(plan_of(ranges), replies_of(owners), "run")["a"], list)
    narrower = plan_of(RangeScaling(lower=RANGES.lower, upper=(2.5, 13.0, 103.0), target_range=(0.0, 100.0)))
    refused = federated_check(narrower, replies_of(owners), "run")["a"]
    assert "policy rule 'checks': 5 checks of a.csv" in refused
    assert "max_checks is 5" in refused


def test_a_refusal_shows_no_name_or_value_of_the_table(tmp_path):
    needs_cryptography()
    owners, _ = make_owners(tmp_path)
    changed(tmp_path / "a.csv", "a,b,c,y\n", "a,b,secret,y\n")
    changed(tmp_path / "b.csv", "a,b,c,y\n", "a,b,c,y\n3.0,4321,private,\n")
    for name, hidden in (("a", "secret"), ("b", "private")):
        with pytest.raises(EngineError, match="its table does not fit the plan") as error:
            owners[name].answer(Message("run", 1, STATE, {}, plan_of()).to_bytes())
        assert hidden not in str(error.value)
        assert str(tmp_path) not in str(error.value)
        assert hidden in json.dumps(owners[name].journal.entries()[-1])


@pytest.mark.parametrize(
    "plan", [{}, {"columns": "{"}, {**plan_of(), "ranges": {"lower": [1.0], "upper": [2.0], "target_range": [0, 1]}}]
)
def test_a_check_of_something_else_is_refused(tmp_path, plan):
    needs_cryptography()
    owners, _ = make_owners(tmp_path)
    with pytest.raises(EngineError, match="agent 'a'"):
        owners["a"].answer(Message("run", 1, CHECK, {}, plan).to_bytes())


def test_a_fit_in_other_units_is_refused(tmp_path):
    needs_cryptography()
    owners, _ = make_owners(tmp_path, units={"a": "degF"})
    with pytest.raises(EngineError, match="the plan has a in degC, and not degF"):
        owners["a"].answer(Message("run", 1, STATE, {}, plan_of(units={"a": "degC"})).to_bytes())
    assert owners["a"].answer(Message("run", 1, STATE, {}, plan_of(units={"b": "m"})).to_bytes())


def test_the_command_checks_the_own_table(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        f"{name} = [{low}, {high}]\n" for name, low, high in zip(FEATURES, RANGES.lower, RANGES.upper, strict=True)
    ]
    (tmp_path / "ranges.toml").write_text("".join(lines) + 'y = [0.0, 100.0, "kW"]\n')
    columns = ["--target", "y", "--features", "a,b,c", "--ranges", "ranges.toml"]
    result = CliRunner().invoke(main, ["federation", "check", "a.csv", *columns])
    assert result.exit_code == 0, result.output
    assert "?   y: the unit is kW" in result.output
    changed(path, "a,b,c,y", "a,b,d,y")
    result = CliRunner().invoke(main, ["federation", "check", "a.csv", *columns])
    assert result.exit_code == 2
    assert "NO  c: the column is there" in result.output
    result = CliRunner().invoke(main, ["federation", "check", *columns])
    assert "check the own table (DATA), or those of all owners" in result.output
