"""The model of a federation is used like any other, and says who took part and under which limits."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

import dsfr
from dsfr.cli import main
from dsfr.federation.fit import federated_fit, fit_plan
from dsfr.federation.owner_site import plan_digest
from dsfr.model.participants import SHOWN_DIGITS, participant_notes
from dsfr.pipeline.options import FitOptions
from tests.disclosure.crypto import needs_cryptography
from tests.federation.owners import FEATURES, RANGES, asking, make_owners, table

needs_cryptography()
SIZED = {"method": "sfr-icr", "rules": 3, "solver": "sums"}


@pytest.fixture(scope="module", params=[SIZED, pytest.param({}, marks=pytest.mark.slow)], ids=["rules", "short rules"])
def federated(request, tmp_path_factory):
    """A folder with the model and a table of three owners, the model, their roster, and the plan."""
    folder = tmp_path_factory.mktemp("federated")
    X, y = table(n_rows=600, n_labels=240)
    owners, roster = make_owners(folder, X=X, y=y)
    plan = fit_plan(FitOptions(target="y", **request.param), FEATURES, RANGES)
    model = federated_fit(plan, roster, asking(owners), "run", folder / "checkpoints")
    model.save(folder / "model.dsfr")
    return folder, model, roster, plan


def run(*arguments):
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_the_file_says_who_took_part_and_under_which_policy(federated):
    folder, _, roster, plan = federated
    about = dsfr.load(folder / "model.dsfr").training["federation"]
    assert about["roster"] == dict(roster.fingerprints)
    assert about["loosest_policy"] == dsfr.Policy().limits()
    assert (about["masked"], about["plan"]) == (True, plan_digest(plan))


def test_predict_works_as_ever(federated):
    folder, model, _, _ = federated
    run("predict", folder / "model.dsfr", folder / "a.csv", "-o", folder / "predicted.csv")
    lines = (folder / "predicted.csv").read_text().splitlines()
    rows = np.genfromtxt(folder / "a.csv", delimiter=",", skip_header=1)[:, : len(FEATURES)]
    found = np.array([float(line.split(",")[-1]) for line in lines[1:]])
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-9)


def test_explain_and_the_report_name_owners_and_limits(federated):
    """The page has them in its data, as a note."""
    folder, model, roster, _ = federated
    said = " ".join(run("explain", folder / "model.dsfr").split())
    run("report", folder / "model.dsfr", "-o", folder / "page.html")
    page = (folder / "page.html").read_text()
    for note in participant_notes(model.training):
        assert note in said
        assert json.dumps(note)[1:-1] in page
    for name, fingerprint in roster.fingerprints.items():
        assert f"{name} {fingerprint[:SHOWN_DIGITS]}" in said
    assert {"min_rows 50", "min_labels 5", "max_rounds 1000"} <= set(re.findall(r"\w+ \d+\b", said))
    run("report", folder / "model.dsfr", folder / "a.csv", "-o", folder / "page.html")


def test_a_simpler_model_still_says_who_took_part(federated):
    _, model, roster, _ = federated
    if not model.is_student:
        simpler = model.simplify().model
        assert simpler.training["federation"]["roster"] == dict(roster.fingerprints)


def test_other_models_name_nobody():
    assert participant_notes({}) == participant_notes({"n_agents": 3}) == []
