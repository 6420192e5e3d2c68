"""Owners answer what they agreed to, once, and write it down; everything else is refused and written down too."""

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from dsfr import Policy, SFRRegressor
from dsfr.cli import main
from dsfr.disclosure.owner import ADMIT, STATE
from dsfr.disclosure.statements import Statement, pack_statements
from dsfr.engines import EngineError, RefusedError
from dsfr.federation import messages
from dsfr.federation.fit import federated_fit, fit_plan
from dsfr.federation.journal import AuditJournal, JournalError
from dsfr.federation.kits import used_by_one
from dsfr.federation.messages import Message, sealed, unsealed
from dsfr.federation.owner_site import OwnerSite, SiteConfiguration, plan_digest
from dsfr.federation.plans import asked_plan, describe_plan
from dsfr.federation.roster import Roster, fingerprint_of
from dsfr.pipeline.options import FitOptions
from dsfr.storage.bundles import from_bytes, to_bytes
from dsfr.training import TASKS, make_shards
from tests.disclosure.crypto import needs_cryptography
from tests.federation.owners import FEATURES, RANGES, asking, make_kit, make_owners, table
from tests.tables import SumsAlone

needs_cryptography()


def bundle_of(answer):
    return from_bytes(unsealed(answer))


def plan_of(**options):
    return fit_plan(
        FitOptions(**{"target": "y", "method": "sfr-icr", "rules": 3, "solver": "sums", **options}), FEATURES, RANGES
    )


def in_process(X, y, n_owners, **params):
    """The same fit with plain sums in this process."""
    names = np.array(["a", "b", "c", "d", "e"])[np.arange(len(y)) % n_owners]
    model = SFRRegressor(solver="sums", scaling=RANGES, random_state=0, **params)
    return model.fit_over(lambda settings: SumsAlone(make_shards(X, y, names), TASKS), FEATURES, "y").model_


@pytest.mark.parametrize("options", [{}, {"tune": "evidence"}, {"rules": 2, "method": "sfr-g"}])
def test_a_federated_fit_gives_the_model_of_plain_sums(tmp_path, options):
    X, y = table()
    owners, roster = make_owners(tmp_path, X=X, y=y)
    model = federated_fit(plan_of(**options), roster, asking(owners), "run", tmp_path / "checkpoints")
    params = {"n_rules": options.get("rules", 3), "tune": options.get("tune")}
    if options.get("method") == "sfr-g":
        params["unlabeled"] = "graph"
    expected = in_process(X, y, 3, **params)
    assert np.abs(model.predict(X) - expected.predict(X)).max() <= 1e-8 * np.nanstd(y)
    assert model.training["federation"]["roster"] == dict(roster.fingerprints)


def test_a_killed_fit_resumes_from_the_owners_memories(tmp_path):
    X, y = table()
    owners, roster = make_owners(tmp_path, X=X, y=y)
    expected = federated_fit(plan_of(), roster, asking(owners), "whole", tmp_path / "other")
    left = iter(range(24))

    def failing(data):
        if next(left, None) is None:
            raise EngineError("b did not answer")
        return asking(owners)(data)

    with pytest.raises(EngineError, match="b did not answer"):
        federated_fit(plan_of(), roster, failing, "first", tmp_path / "checkpoints")
    asked = []

    def counting(data):
        asked.append(Message.of(data).task)
        return asking(again)(data)

    again = {name: OwnerSite(tmp_path / f"kit-{name}") for name in owners}  # as after a restart
    resumed = federated_fit(plan_of(), roster, counting, "second", tmp_path / "checkpoints")
    assert "load_memory" in asked
    assert "row_moments" not in asked
    np.testing.assert_allclose(resumed.predict(X), expected.predict(X), rtol=0, atol=1e-9)


def opened(tmp_path, **configuration):
    owners, _ = make_owners(tmp_path, **configuration)
    first = Message("run", 1, STATE, {}, plan_of()).to_bytes()
    return owners, first, {name: bundle_of(owner.answer(first)) for name, owner in owners.items()}


def admitted(tmp_path, **configuration):
    owners, _, found = opened(tmp_path, **configuration)
    second = Message("run", 2, ADMIT, pack_statements([Statement.of(part) for part in found.values()])).to_bytes()
    for owner in owners.values():
        owner.answer(second)
    return owners


ROUND = {"mask_round": np.asarray(1)}


def moments(**changed):
    """A question that would be answered, but for what is changed in it."""
    asked = {"seed": np.asarray(0), "low": np.array(RANGES.lower), "high": np.array(RANGES.upper), **ROUND}
    return Message("run", 3, "row_moments", asked | changed).to_bytes()


def with_nan():
    """The same with NaN, which nobody's own bundle has."""
    low = np.array(RANGES.lower)
    return sealed(unsealed(moments()).replace(low.tobytes(), (low + np.nan).tobytes()))


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "its digest does not fit"),
        (b"\x00" * 100, "its digest does not fit"),
        (Message("run", 3, "identify", ROUND).to_bytes()[:-1], "its digest does not fit"),
        (sealed(b"\x00" * 100), "header|bundle"),
        (sealed(to_bytes({"x": np.zeros(1)})), "run, number, task and about"),
        (Message("run", 4, "identify", ROUND).to_bytes(), "question 4 does not follow question 2"),
        (Message("run", 2, "identify", ROUND).to_bytes(), "question 2 does not follow question 2"),
        (Message("another", 3, "identify", ROUND).to_bytes(), "'another' is not the one that was begun"),
        (Message("run", 3, "halve", ROUND).to_bytes(), "unknown task 'halve'"),
        (Message("run", 3, "measure", {**ROUND, "seed": np.asarray(0)}).to_bytes(), "refused"),
        (Message("run", 3, "identify", {**ROUND, "x": np.zeros(2)}).to_bytes(), "'x' is not declared"),
        (Message("run", 3, "row_moments", {**ROUND, "seed": np.asarray(0)}).to_bytes(), "other ranges than the plan"),
        (with_nan(), "'low' contains NaN"),
        (moments(low=np.zeros(2)), "'low' has other ranges than the plan"),
        (moments(low=np.array(RANGES.lower, dtype=np.int64)), "'low' .*(float64|int64)"),
        (moments(seed=np.asarray(0.5)), "'seed' .*(float64|int64)"),
        (moments(seed=np.zeros(2, dtype=np.int64)), "'seed' .*shape"),
        ("text", "a message is bytes"),
    ],
)
def test_unexpected_messages_are_refused_and_written_down(tmp_path, data, match):
    owner = admitted(tmp_path)["a"]
    with pytest.raises(EngineError, match=match):
        owner.answer(data)
    assert owner.journal.entries()[-1]["event"] == "refused"


def test_a_lost_answer_is_sent_again_and_is_the_same(tmp_path):
    owner = admitted(tmp_path)["a"]
    message = Message("run", 3, "identify", ROUND).to_bytes()
    assert owner.answer(message) == owner.answer(message)
    assert owner.journal.count("sent", number=3) == 1


def test_the_journal_says_to_whom_and_under_which_rules(tmp_path):
    owners, _ = make_owners(tmp_path)
    server = {"servers": [{"service": {"target": "localhost:8402"}}]}
    (tmp_path / "kit-a" / "startup" / "fed_client.json").write_text(json.dumps(server))
    first = Message("run", 1, STATE, {}, plan_of()).to_bytes()
    found = [Statement.of(bundle_of(owner.answer(first))) for owner in owners.values()]
    owners["a"].answer(Message("run", 2, ADMIT, pack_statements(found)).to_bytes())
    owners["a"].answer(moments())
    fit, *_, last = (entry for entry in owners["a"].journal.entries() if entry["event"] in ("fit", "sent"))
    assert (fit["coordinator"], fit["partners"]) == ("localhost:8402", ["b", "c"])
    assert (last["task"], last["rules"]) == ("row_moments", ["ranges"])


def test_strangers_are_refused(tmp_path):
    _, _, found = opened(tmp_path)
    make_kit(tmp_path / "kit-eve", "c", whose="eve")
    statements = {name: Statement.of(part) for name, part in found.items()}
    configuration = SiteConfiguration.read(tmp_path / "kit-c")
    configuration.write(tmp_path / "kit-eve")
    eve = Statement.of(
        bundle_of(OwnerSite(tmp_path / "kit-eve").answer(Message("run", 1, STATE, {}, plan_of()).to_bytes()))
    )
    forged = Statement(500, statements["c"].public_key, "c", statements["c"].signature)
    for others, match in {
        (statements["b"], eve): "certificate of 'c' is not that of the roster",
        (statements["b"], forged): "statement of 'c' was not signed",
        (statements["b"],): "the roster has .* take part|partners",
    }.items():
        owner = OwnerSite(tmp_path / "kit-a")
        own = Statement.of(bundle_of(owner.answer(Message("run", 1, STATE, {}, plan_of()).to_bytes())))
        with pytest.raises(EngineError, match=match):
            owner.answer(Message("run", 2, ADMIT, pack_statements([own, *others])).to_bytes())


def test_an_expired_certificate_is_refused(tmp_path):
    owners, roster = make_owners(tmp_path)
    make_kit(tmp_path / "kit-old", "c", whose="old", days=-1)
    SiteConfiguration.read(tmp_path / "kit-c").write(tmp_path / "kit-old")
    fingerprint = fingerprint_of(tmp_path / "kit-old" / "startup" / "client.crt")
    text = (tmp_path / "roster.toml").read_text().replace(roster.fingerprints["c"], fingerprint)
    (tmp_path / "roster.toml").write_text(text)
    owners = {name: OwnerSite(tmp_path / f"kit-{name}") for name in ("a", "b", "old")}
    first = Message("run", 1, STATE, {}, plan_of()).to_bytes()
    statements = [Statement.of(bundle_of(owner.answer(first))) for owner in owners.values()]
    with pytest.raises(EngineError, match="certificate of 'c' has expired"):
        owners["a"].answer(Message("run", 2, ADMIT, pack_statements(statements)).to_bytes())


def test_a_message_that_is_too_long_is_refused_before_it_is_read(tmp_path, monkeypatch):
    owner = admitted(tmp_path)["a"]
    monkeypatch.setattr(messages, "MAX_BYTES", 100)
    monkeypatch.setattr(messages, "MAX_HEADER_BYTES", 100)
    with pytest.raises(EngineError, match="a message of 1032 bytes is too long"):
        owner.answer(sealed(b"x" * 1000))
    assert owner.journal.entries()[-1]["event"] == "refused"


def test_refusals_are_counted_and_end_a_fit(tmp_path):
    (tmp_path / "tight.toml").write_text("max_refusals = 2\n")
    owner = admitted(tmp_path, policy=str(tmp_path / "tight.toml"))["a"]
    for number in (3, 4):
        with pytest.raises(EngineError, match="is refused"):
            owner.answer(Message("run", number, "measure", {**ROUND, "seed": np.asarray(0)}).to_bytes())
    with pytest.raises(EngineError, match="2 questions of this fit were refused, and max_refusals is 2") as error:
        owner.answer(Message("run", 5, "identify", ROUND).to_bytes())
    assert not isinstance(error.value, RefusedError), "the fit ends, and does not ask for less"


def test_other_ranges_than_those_of_the_plan_are_refused(tmp_path):
    owner = admitted(tmp_path)["a"]
    asked = {"seed": np.asarray(0), "low": np.array(RANGES.lower), "high": np.array(RANGES.upper), **ROUND}
    with pytest.raises(EngineError, match="'high' has other ranges than the plan"):
        owner.answer(Message("run", 3, "row_moments", asked | {"high": asked["high"] + 1.0}).to_bytes())
    assert owner.answer(Message("run", 4, "row_moments", asked).to_bytes())


def test_a_kit_is_used_by_one_process_at_a_time(tmp_path):
    make_kit(tmp_path / "kit", "a")
    lock = used_by_one(tmp_path / "kit")
    program = "from pathlib import Path; from dsfr.federation.kits import used_by_one; used_by_one(Path('kit'))"
    other = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert lock.acquired
    assert "ValueError: another process uses the kit" in other.stderr


def test_an_owner_agrees_first_and_to_this_fit_only(tmp_path):
    owners, _ = make_owners(tmp_path, standing_consent=False)
    owner = owners["a"]
    with pytest.raises(EngineError, match="has not agreed to this fit"):
        owner.answer(Message("run", 1, STATE, {}, plan_of()).to_bytes())
    asked = [entry for entry in owner.journal.entries() if entry["event"] == "asked"]
    assert json.loads(asked[0]["about"]) == json.loads(json.dumps(plan_of()))
    owner.journal.append("consent", plan=asked[0]["plan"])
    assert owner.answer(Message("run", 1, STATE, {}, plan_of()).to_bytes())
    with pytest.raises(EngineError, match="has not agreed"):
        owner.answer(Message("next", 1, STATE, {}, plan_of(rules=2)).to_bytes())
    assert plan_digest(plan_of()) != plan_digest(plan_of(rules=2))


def test_an_owner_sees_what_a_plan_makes_leave(tmp_path):
    owners, _ = make_owners(tmp_path, standing_consent=False)
    with pytest.raises(EngineError, match="has not agreed to this fit"):
        owners["a"].answer(Message("run", 1, STATE, {}, plan_of()).to_bytes())
    kit, name = owners["a"].journal.path.parent.parent, plan_digest(plan_of())
    text = "\n".join(describe_plan(asked_plan(kit, name), Policy()))
    assert "features (d = 3): a, b, c; target: y" in text
    assert "at most 1000 rounds" in text
    assert "cluster_sums: mass (k), total (k x d), objective" in text
    assert "count_below" not in text  # it is refused
    noisy = "\n".join(describe_plan(asked_plan(kit, name), Policy(epsilon=1.0)))
    assert "clipped_moments" in noisy
    assert "cluster_sums" not in noisy
    with pytest.raises(ValueError, match=f"plan 'other' was not asked for here; asked for: {name}"):
        asked_plan(kit, "other")


def test_fits_are_counted_and_other_targets_and_columns_refused(tmp_path):
    (tmp_path / "tight.toml").write_text("max_fits = 2\n")
    owner = make_owners(tmp_path, policy=str(tmp_path / "tight.toml"))[0]["a"]
    for number in range(2):
        owner.answer(Message(f"run {number}", 1, STATE, {}, plan_of()).to_bytes())
    with pytest.raises(EngineError, match=r"'fits': 2 fits on a.csv, and max_fits is 2"):
        owner.answer(Message("run 2", 1, STATE, {}, plan_of()).to_bytes())
    (tmp_path / "tight.toml").write_text("columns = ['a']\n")
    owner = OwnerSite(tmp_path / "kit-a")
    with pytest.raises(EngineError, match="'columns': b, c may not be used"):
        owner.answer(Message("run 3", 1, STATE, {}, plan_of()).to_bytes())
    with pytest.raises(EngineError, match="target 'z' is not 'y'"):
        owner.answer(Message("run 4", 1, STATE, {}, plan_of(target="z")).to_bytes())


@pytest.mark.parametrize("change", ["edit", "remove", "reorder", "cut"])
def test_a_changed_journal_is_noticed(tmp_path, change):
    journal = AuditJournal(tmp_path / "journal")
    for number in range(5):
        journal.append("sent", number=number)
    assert [entry["number"] for entry in journal.entries()] == list(range(5))
    lines = journal.path.read_text().splitlines()
    if change == "edit":
        lines[2] = lines[2].replace('"number": 2', '"number": 7')
    elif change == "remove":
        del lines[2]
    elif change == "reorder":
        lines[1], lines[2] = lines[2], lines[1]
    else:
        lines[3] = lines[3][:20]
    journal.path.write_text("\n".join(lines) + "\n")
    with pytest.raises(JournalError, match=r"line \d (was changed|is damaged)"):
        journal.entries()
    assert (tmp_path / "journal").stat().st_mode & 0o077 == 0


def test_an_owner_with_a_changed_journal_refuses_and_tells_nobody_where_it_is(tmp_path):
    owner = make_owners(tmp_path)[0]["a"]
    owner.answer(Message("run", 1, STATE, {}, plan_of()).to_bytes())
    text = owner.journal.path.read_text()
    owner.journal.path.write_text(text.replace('"event": "fit"', '"event": "fat"'))
    with pytest.raises(EngineError, match="its journal was changed") as told:
        owner.answer(Message("other", 1, STATE, {}, plan_of()).to_bytes())
    assert str(tmp_path) not in str(told.value)


def test_a_roster_is_read_and_refused(tmp_path):
    make_kit(tmp_path / "kit", "a")
    path = tmp_path / "roster.toml"
    path.write_text(f'a = "{fingerprint_of(tmp_path / "kit" / "startup" / "client.crt")}"\n')
    assert list(Roster.read(path).fingerprints) == ["a"]
    for text, match in {"": "needs a line", "a = 3": "needs a line", "a": "not TOML"}.items():
        path.write_text(text)
        with pytest.raises(ValueError, match=match):
            Roster.read(path)


def test_owners_with_an_epsilon_answer_two_noisy_sums(tmp_path):
    X, y = table(n_rows=1500, n_labels=1200)
    (tmp_path / "tight.toml").write_text("epsilon = 10.0\n")
    owners, roster = make_owners(tmp_path, X=X, y=y, policy=str(tmp_path / "tight.toml"))
    plan = plan_of(method="s-sfr", solver="private-sums")
    model = federated_fit(plan, roster, asking(owners), "run", tmp_path / "checkpoints")
    assert np.isfinite(model.predict(X)).all()
    sent = [entry["task"] for entry in owners["a"].journal.entries() if entry["event"] == "sent"]
    assert sent == [STATE, ADMIT, "clipped_moments", "clipped_statistics"]
    with pytest.raises(EngineError, match="this owner answers sums with noise alone"):
        federated_fit(plan_of(), roster, asking(owners), "other", tmp_path / "checkpoints")


def test_the_command_agrees_to_plans_that_were_asked_for_alone(tmp_path):
    """A name with a slip would agree to nothing, and say that it did."""
    (tmp_path / "tight.toml").write_text("max_rounds = 77\n")
    owner = make_owners(tmp_path, standing_consent=False, policy=str(tmp_path / "tight.toml"))[0]["a"]
    first, kit = Message("run", 1, STATE, {}, plan_of()).to_bytes(), str(tmp_path / "kit-a")
    with pytest.raises(EngineError, match="has not agreed to this fit"):
        owner.answer(first)
    name = plan_digest(plan_of())

    def run(*arguments):
        done = CliRunner().invoke(main, ["federation", *arguments])
        return done.exit_code, " ".join(done.output.split())

    assert "at most 77 rounds" in run("plan", "--kit", kit, name)[1], "by the policy that the agent was started with"
    code, said = run("consent", "--kit", kit, name[:-1])
    assert (code, f"was not asked for here; asked for: {name}" in said) == (2, True)
    assert run("consent", "--kit", kit, name) == (0, f"agreed to {name}")
    assert owner.answer(first)


def test_an_agent_without_its_table_or_kit_does_not_start(tmp_path):
    make_owners(tmp_path)
    told = ["--target", "y", "--roster", str(tmp_path / "roster.toml")]
    for kit, data, wrong in (("kit-a", "typo.csv", "typo.csv"), ("kit-z", "a.csv", "kit-z")):
        run = ["federation", "agent", "--kit", str(tmp_path / kit), "--data", str(tmp_path / data), *told]
        done = CliRunner().invoke(main, run)
        assert done.exit_code == 2
        assert f"{wrong}' does not exist" in " ".join(done.output.split()).replace("│ ", "")
